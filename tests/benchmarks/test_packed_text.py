from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import make_document, make_tokenizer
from transformers import AutoTokenizer

from benchmarks import packed_text
from benchmarks.packed_text import (
    Masking,
    learn_word_pieces,
    pack,
    read_packed,
    word_piece_tokenizer,
    write_packed,
)
from simlte_st.data.document import Document
from simlte_st.data.epochs import EpochClock
from simlte_st.errors import ConfigurationError, EmptyCorpusError
from simlte_st.models.names import packaged_base_installed, packaged_base_path

CLS, SEP = 2, 3
TEXTS = [make_document(number, sentences=1 + number % 7) for number in range(30)]


def stream(texts: list[str]) -> list[int]:
    """Tokens of whole documents, as the tokenizer itself makes them, with [SEP] between two."""
    tokenizer = make_tokenizer()
    found: list[int] = []
    for text in texts:
        found += ([SEP] if found else []) + tokenizer(text, add_special_tokens=False)["input_ids"]
    return found


@settings(max_examples=30, deadline=None)
@given(length=st.integers(3, 130), rows=st.lists(st.integers(0, 29), min_size=1, max_size=30, unique=True))
def test_no_token_is_lost_but_those_of_the_last_incomplete_sequence(length: int, rows: list[int]) -> None:
    texts = [TEXTS[row] for row in rows]
    sequences = pack([*texts, "", " "], make_tokenizer(), length)  # what has no token leaves no trace
    assert all(len(each) == length and each[0] == CLS and each[-1] == SEP for each in sequences)
    joined = [token for each in sequences for token in each[1:-1]]
    expected = stream(texts)
    assert joined == expected[: len(joined)]
    assert len(expected) - len(joined) < length - 2


def test_a_sequence_with_no_room() -> None:
    with pytest.raises(ConfigurationError, match="2 tokens has no room"):
        pack(TEXTS, make_tokenizer(), 2)


def test_batches_of_documents_are_files_that_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_text, "BATCH", 8)
    documents = [Document(str(number), text) for number, text in enumerate(TEXTS)]

    def killed() -> Iterator[Document]:
        yield from documents[:20]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_packed(killed(), make_tokenizer(), 16, tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["000000.arrow", "000001.arrow"]
    before = (tmp_path / "000000.arrow").stat().st_mtime_ns
    write_packed(documents, make_tokenizer(), 16, tmp_path)
    assert (tmp_path / "000000.arrow").stat().st_mtime_ns == before
    expected = [each for start in range(0, 30, 8) for each in pack(TEXTS[start : start + 8], make_tokenizer(), 16)]
    rows = read_packed(tmp_path)
    assert [row["input_ids"].tolist() for row in rows] == expected
    assert rows[0]["input_ids"].dtype == torch.int64
    write_packed(documents[:1], make_tokenizer(), 200, tmp_path / "short")
    with pytest.raises(EmptyCorpusError, match="do not fill one sequence"):
        read_packed(tmp_path / "short")


@pytest.fixture
def rows() -> list[dict[str, torch.Tensor]]:
    return [{"input_ids": torch.tensor(each)} for each in pack(TEXTS, make_tokenizer(), 32)]


def test_masks_depend_on_seed_epoch_and_sequences_only(rows: list[dict[str, torch.Tensor]]) -> None:
    tokenizer, clock, few = make_tokenizer(), EpochClock(), rows[:8]
    before = torch.random.get_rng_state()
    first = Masking(tokenizer, 0, clock)(few)
    assert torch.equal(torch.random.get_rng_state(), before)
    masking = Masking(tokenizer, 0, clock)
    masking(few[:3])  # what came before has no effect
    again = masking(few)
    assert all(torch.equal(first[name], again[name]) for name in ("input_ids", "labels"))
    assert not torch.equal(Masking(tokenizer, 1, clock)(few)["labels"], first["labels"])
    clock.epoch = 1
    assert not torch.equal(masking(few)["labels"], first["labels"])
    assert torch.equal(Masking(tokenizer, 0)(few)["labels"], first["labels"])
    assert not torch.equal(Masking(tokenizer, 0)(rows[8:16])["labels"] == -100, first["labels"] == -100)


def test_masks_are_those_of_the_paper(rows: list[dict[str, torch.Tensor]]) -> None:
    tokenizer, clock = make_tokenizer(), EpochClock()
    ids = torch.stack([row["input_ids"] for row in rows])
    chosen = total = replaced = kept = 0
    for clock.epoch in range(60):
        batch = Masking(tokenizer, 0, clock)(rows)
        masked = batch["labels"] != -100
        special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
        assert not (masked & special).any()
        assert torch.equal(batch["labels"][masked], ids[masked])
        assert torch.equal(batch["input_ids"][~masked], ids[~masked])
        chosen += int(masked.sum())
        total += int((~special).sum())
        replaced += int((batch["input_ids"][masked] == tokenizer.mask_token_id).sum())
        kept += int((batch["input_ids"][masked] == ids[masked]).sum())
    assert chosen / total == pytest.approx(0.15, abs=0.005)
    assert replaced / chosen == pytest.approx(0.8, abs=0.02)
    assert kept / chosen == pytest.approx(0.1, abs=0.02)


def test_a_learned_vocabulary(tmp_path: Path) -> None:
    vocabulary = learn_word_pieces(lambda: TEXTS, 60)
    for _ in range(3):
        assert list(vocabulary.items()) == list(learn_word_pieces(lambda: TEXTS, 60).items())
    assert len(vocabulary) == 60
    assert list(vocabulary)[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = word_piece_tokenizer(vocabulary, 48)
    ids = tokenizer(TEXTS[0].upper())["input_ids"]
    assert ids == tokenizer(TEXTS[0])["input_ids"]
    assert (ids[0], ids[-1]) == (CLS, SEP)
    assert tokenizer.unk_token_id not in ids
    assert tokenizer.decode(ids, skip_special_tokens=True).replace(" ", "") == TEXTS[0].lower().replace(" ", "")
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(TEXTS[0])["input_ids"] == ids
    assert loaded.model_max_length == 48


@pytest.mark.skipif(not packaged_base_installed(), reason="the packaged base model is not installed")
def test_the_packaged_vocabulary_makes_the_packaged_tokens() -> None:
    packaged = AutoTokenizer.from_pretrained(packaged_base_path())
    tokenizer = word_piece_tokenizer(packaged.get_vocab(), 512)
    for text in [*TEXTS[:3], "Naïve Café-owners in São Paulo paid US$ 1,234.50; 東京 (Tōkyō) didn't."]:
        expected = packaged(text, truncation=False)["input_ids"]
        assert tokenizer(text)["input_ids"] == expected
