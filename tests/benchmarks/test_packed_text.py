from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from simlte_st.data.token_corpus import TokenCorpus
from support import make_document, make_tokenizer
from transformers import AutoTokenizer

from benchmarks.packed_text import Masking, PackedText, learn_word_pieces, tokenize_whole, word_piece_tokenizer
from simlte_st.data.document import Document
from simlte_st.data.epochs import EpochClock
from simlte_st.errors import ConfigurationError, EmptyCorpusError
from simlte_st.models.names import packaged_base_installed, packaged_base_path

CLS, SEP = 2, 3
TEXTS = [make_document(number, sentences=1 + number % 7) for number in range(30)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> TokenCorpus:
    documents = [Document(str(number), text) for number, text in enumerate(TEXTS)]
    return tokenize_whole(documents, make_tokenizer(), tmp_path_factory.mktemp("tokens"))


def stream(texts: list[str]) -> list[int]:
    """Tokens of whole documents, as the tokenizer itself makes them, with [SEP] between two."""
    tokenizer = make_tokenizer()
    found: list[int] = []
    for text in texts:
        found += ([SEP] if found else []) + tokenizer(text, add_special_tokens=False)["input_ids"]
    return found


@settings(max_examples=30, deadline=None)
@given(length=st.integers(3, 130), rows=st.lists(st.integers(0, 29), min_size=2, max_size=30, unique=True))
def test_no_token_is_lost_but_those_of_the_last_incomplete_sequence(
    corpus: TokenCorpus, length: int, rows: list[int]
) -> None:
    expected = stream([TEXTS[row] for row in rows])
    if len(expected) < length - 2:
        with pytest.raises(EmptyCorpusError, match="do not fill one sequence"):
            PackedText(corpus, np.array(rows), length, make_tokenizer())
        return
    text = PackedText(corpus, np.array(rows), length, make_tokenizer())
    sequences = [text[index]["input_ids"] for index in range(len(text))]
    assert all(len(each) == length and each[0] == CLS and each[-1] == SEP for each in sequences)
    packed = np.concatenate([each[1:-1] for each in sequences]).tolist()
    assert packed == expected[: len(packed)]
    rest = expected[len(packed) :]
    assert len(rest) < length - 2
    assert text.left_over == len([token for token in rest if token != SEP])
    assert text.tokens + text.left_over == len([token for token in expected if token != SEP])
    assert [text[index]["row"] for index in range(len(text))] == list(range(len(text)))


def test_a_sequence_with_no_room(corpus: TokenCorpus) -> None:
    with pytest.raises(ConfigurationError, match="2 tokens has no room"):
        PackedText(corpus, np.arange(30), 2, make_tokenizer())


def test_there_are_no_more_sequences_than_there_are(corpus: TokenCorpus) -> None:
    text = PackedText(corpus, np.arange(30), 32, make_tokenizer())
    with pytest.raises(IndexError):
        text[len(text)]


def test_masks_depend_on_seed_epoch_and_sequences_only(corpus: TokenCorpus) -> None:
    tokenizer = make_tokenizer()
    text = PackedText(corpus, np.arange(30), 32, tokenizer)
    rows = [text[index] for index in range(8)]
    clock = EpochClock()
    before = torch.random.get_rng_state()
    first = Masking(tokenizer, 0, clock)(rows)
    assert torch.equal(torch.random.get_rng_state(), before)
    masking = Masking(tokenizer, 0, clock)
    masking(rows[:3])  # what came before has no effect
    again = masking(rows)
    assert all(torch.equal(first[name], again[name]) for name in ("input_ids", "labels"))
    assert not torch.equal(Masking(tokenizer, 1, clock)(rows)["labels"], first["labels"])
    clock.epoch = 1
    assert not torch.equal(masking(rows)["labels"], first["labels"])
    assert torch.equal(Masking(tokenizer, 0)(rows)["labels"], first["labels"])


def test_masks_are_those_of_the_paper(corpus: TokenCorpus) -> None:
    tokenizer = make_tokenizer()
    text = PackedText(corpus, np.arange(30), 32, tokenizer)
    rows = [text[index] for index in range(len(text))]
    clock = EpochClock()
    chosen = total = replaced = kept = 0
    for clock.epoch in range(60):
        batch = Masking(tokenizer, 0, clock)(rows)
        ids = torch.from_numpy(np.stack([row["input_ids"] for row in rows]))
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
