"""Reading a corpus of token ids: mapped, not loaded; and what a view can use of it."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from support import make_document, make_tokenizer

from simlte_st.data import token_parts
from simlte_st.data.corpus import measure_coverage, write_corpus
from simlte_st.data.document import Document
from simlte_st.data.pairs import PairDrawer
from simlte_st.data.segmenters import PunktSegmenter
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.data.token_cache import tokenize_corpus
from simlte_st.data.token_corpus import TokenCorpus, measure_token_coverage
from simlte_st.data.views import DocSplit
from simlte_st.errors import DataError, EmptyCorpusError

TEXTS = [make_document(0), "Ba bei. Bo.\n\nBun kun.", "Ba bei", "Ba", "漢字。漢字。", *map(make_document, range(1, 9))]
DOCUMENTS = [Document(f"d{number}", text) for number, text in enumerate(TEXTS)]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TokenCorpus:
    monkeypatch.setattr(token_parts, "_MOST_DOCUMENTS", 4)
    return tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=PunktSegmenter(), directory=tmp_path)


def test_documents_by_number_and_in_order(corpus: TokenCorpus) -> None:
    assert len(corpus) == 13
    assert [corpus[row].id for row in range(13)] == [document.id for document in corpus] == [d.id for d in DOCUMENTS]
    assert corpus[np.int64(1)].tokens == [3, 2, 3]
    assert corpus[1].paragraphs == [0, 2]
    count = tokenizer_counter(make_tokenizer())
    assert corpus.sizes.tolist() == count([text.replace("\n", " ") for text in TEXTS])
    assert corpus.sizes.dtype == np.int64
    for row in (-1, 13):
        with pytest.raises(IndexError, match="of 13"):
            corpus[row]


def test_files_are_mapped_and_closed(corpus: TokenCorpus) -> None:
    document = corpus[7]
    for name in token_parts.SCHEMA.names[1:]:
        array = getattr(document, name)
        assert array.dtype == np.int32
        assert not array.flags.owndata
        assert not array.flags.writeable
    if Path("/proc/self/maps").exists():
        maps = Path("/proc/self/maps").read_text()
        parts = [str(path) for path in corpus.path.parent.parent.glob("parts/*")]
        assert sum(part in maps for part in parts) == 1  # the only one that was needed
        opened = {str(path.resolve()) for path in Path("/proc/self/fd").iterdir()}
        assert not opened & set(parts)


def test_another_process_maps_the_files_itself(corpus: TokenCorpus) -> None:
    assert len(corpus[3].ids)
    packed = pickle.dumps(corpus)
    assert len(packed) < 5_000
    again = pickle.loads(packed)
    assert [document.ids.tolist() for document in again] == [document.ids.tolist() for document in corpus]


def test_what_is_usable_is_what_the_text_path_uses(corpus: TokenCorpus, tmp_path: Path) -> None:
    for view in (DocSplit(), DocSplit(single="skip")):
        rows, report = corpus.usable(view)
        texts, expected = write_corpus(
            DOCUMENTS,
            tmp_path / view.single,
            view=view,
            segmenter=PunktSegmenter(),
            count_tokens=tokenizer_counter(make_tokenizer()),
        )
        assert [corpus[row].id for row in rows] == list(texts["id"])
        assert report == expected
        assert report.left_out
        drawer = PairDrawer(view, seed=3, budget=20)
        coverage = measure_token_coverage(corpus, drawer, rows)
        assert coverage == measure_coverage(texts, drawer)
        assert 0 < coverage.share < 1
        assert measure_token_coverage(corpus, drawer, rows, most=5) == measure_coverage(texts, drawer, most=5)
    assert measure_token_coverage(corpus, PairDrawer()).documents == 12  # without rows, all that the view accepts


def test_documents_held_out_are_not_there(corpus: TokenCorpus) -> None:
    everything, all_of_it = corpus.usable(DocSplit())
    rows, report = corpus.usable(DocSplit(), without={"d0", "d3", "d99"})
    assert rows.tolist() == [row for row in everything.tolist() if row != 0]
    assert report.documents == all_of_it.documents - 1
    assert report.left_out == {}  # d3 was the one too short
    with pytest.raises(EmptyCorpusError, match="1 usable documents"):
        corpus.usable(DocSplit(), without=[document.id for document in DOCUMENTS[1:]])


def test_a_data_set_stands_for_the_corpus(corpus: TokenCorpus) -> None:
    rows, _ = corpus.usable(DocSplit())
    dataset = corpus.dataset(rows)
    assert dataset.column_names == ["row"]
    assert list(dataset["row"]) == rows.tolist()
    assert dataset[2] == {"row": int(rows[2])}
    assert len(corpus.dataset()) == 13


def test_what_is_missing_is_said(corpus: TokenCorpus, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no corpus of token ids"):
        TokenCorpus(tmp_path / "nothing.json")
    (tmp_path / "strange.json").write_text("[]")
    with pytest.raises(DataError, match="no corpus of token ids"):
        TokenCorpus(tmp_path / "strange.json")
    part = next(corpus.path.parent.parent.glob("parts/*"))
    content = part.read_bytes()
    part.unlink()
    with pytest.raises(DataError, match="is missing"):
        TokenCorpus(corpus.path)
    part.write_bytes(content[:50])
    with pytest.raises(DataError, match="damaged"):
        list(TokenCorpus(corpus.path))
