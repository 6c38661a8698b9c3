from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support import interrupt_at_rename, record_texts

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, Interrupted, ModelError, ResumeError
from simlte_st.files import hold
from simlte_st.models.encode import encode_documents


def interrupt(model: SentenceTransformer, corpus: list[Document], output: Path) -> None:
    """Encode two parts of ten documents, and stop in the third."""

    def broken() -> Iterator[Document]:
        yield from corpus[:25]
        raise KeyboardInterrupt

    kept = r"Stopped\. Finished parts of 10 documents are in .*v\.parquet\.parts: continue with resume=True\."
    with pytest.raises(Interrupted, match=kept):
        encode_documents(model, broken(), output, part_size=10)


def test_vectors_match_model_encode(model: SentenceTransformer, corpus: list[Document], tmp_path: Path) -> None:
    report = encode_documents(model, iter(corpus), tmp_path / "v.parquet", part_size=10)
    table = pq.read_table(tmp_path / "v.parquet")
    assert table["id"].to_pylist() == [document.id for document in corpus]
    assert str(table.schema.field("vector").type) == "fixed_size_list<element: float>[32]"
    expected = model.encode([document.text for document in corpus])
    np.testing.assert_allclose(np.array(table["vector"].to_pylist()), expected, atol=1e-6)
    assert report.documents == len(corpus)
    assert not (tmp_path / "v.parquet.parts").exists()


def test_odd_texts_are_encoded(model: SentenceTransformer, tmp_path: Path) -> None:
    texts = ["Word", "b", "👩‍👩‍👧🎉", "\u200b\u200d", "\x01\x02\x1b[31m", "שלום עולם", "a\ud800b", "漢" * 50_000]
    texts.append("x" * 500_000)
    rows = [{"id": f"../../{number}", "text": text} for number, text in enumerate(texts)]
    report = encode_documents(model, rows, tmp_path / "out" / "v.parquet")
    table = pq.read_table(tmp_path / "out" / "v.parquet")
    assert np.isfinite(np.array(table["vector"].to_pylist())).all()
    assert table["id"].to_pylist() == [f"../../{number}" for number in range(9)]
    assert (report.documents, report.truncation.cut_texts) == (9, 1)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "v.parquet"], "an id is no path"


def test_non_finite_vectors_are_an_error(model: SentenceTransformer, corpus: list[Document], tmp_path: Path) -> None:
    with torch.no_grad():
        model[0].auto_model.embeddings.word_embeddings.weight[5:] *= 1e30
    with pytest.raises(ModelError, match=r"10 of 10 documents .*'d0'"):
        encode_documents(model.half(), corpus, tmp_path / "v.parquet", part_size=10)
    assert not (tmp_path / "v.parquet").exists()


def test_interrupted_run_resumes(model: SentenceTransformer, corpus: list[Document], tmp_path: Path) -> None:
    output = tmp_path / "v.parquet"
    interrupt(model, corpus, output)
    assert not output.exists()
    seen = record_texts(model)
    report = encode_documents(model, corpus, output, part_size=10, resume=True)
    assert seen == [document.text for document in corpus[20:]]
    assert report.documents == len(corpus)
    assert pq.read_table(output)["id"].to_pylist() == [document.id for document in corpus]


def test_resuming_needs_the_same_settings(model: SentenceTransformer, corpus: list[Document], tmp_path: Path) -> None:
    output = tmp_path / "v.parquet"
    with pytest.raises(ResumeError, match="no interrupted run"):
        encode_documents(model, corpus, output, resume=True)
    interrupt(model, corpus, output)
    with pytest.raises(ResumeError, match="different settings"):
        encode_documents(model, corpus, output, part_size=10, normalize=True, resume=True)
    with pytest.raises(ConfigurationError, match="resume=True"):
        encode_documents(model, corpus, output)


def test_output_is_overwritten_only_on_request(
    model: SentenceTransformer, corpus: list[Document], tmp_path: Path
) -> None:
    output = tmp_path / "v.parquet"
    encode_documents(model, corpus[:3], output)
    encode_documents(model, corpus[:5], output, overwrite=True, normalize=True)
    vectors = np.array(pq.read_table(output)["vector"].to_pylist())
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_changed_texts_and_weights_are_detected(
    model: SentenceTransformer, corpus: list[Document], tmp_path: Path
) -> None:
    output = tmp_path / "v.parquet"
    interrupt(model, corpus, output)
    weight = next(model.parameters())
    with torch.no_grad():
        weight[0, 0] += 1
    with pytest.raises(ResumeError, match="weights: was"):
        encode_documents(model, corpus, output, part_size=10, resume=True)
    with torch.no_grad():
        weight[0, 0] -= 1
    seen = record_texts(model)
    changed = [Document(one.id, one.text + " bis" * (row == 3)) for row, one in enumerate(corpus)][:-20]
    encode_documents(model, changed, output, part_size=10, resume=True)
    assert seen == [one.text for one in (*changed[:10], *changed[20:])], "the second part stays"
    whole = tmp_path / "whole.parquet"
    encode_documents(model, changed, whole, part_size=10)
    assert pq.read_table(output).equals(pq.read_table(whole))


def test_sources_and_folders_are_not_replaced(model: SentenceTransformer, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("ba bun bis")
    with pytest.raises(ConfigurationError, match="would overwrite the input documents"):
        encode_documents(model, tmp_path / "texts", tmp_path / "texts", overwrite=True)
    (tmp_path / "other.parquet").mkdir()
    with pytest.raises(ConfigurationError, match=r"other\.parquet is not a file"):
        encode_documents(model, tmp_path / "texts", tmp_path / "other.parquet", overwrite=True)
    for name in ("v.csv", "v", "texts/a.txt", "v.parquet.gz"):
        with pytest.raises(ConfigurationError, match=r"ends in \.parquet"):
            encode_documents(model, tmp_path / "texts", tmp_path / name, overwrite=True)
    (tmp_path / "v.parquet.parts").mkdir()
    (tmp_path / "v.parquet.parts" / "thesis.txt").write_text("years")
    with pytest.raises(ConfigurationError, match=r"v\.parquet\.parts exists but"):
        encode_documents(model, tmp_path / "texts", tmp_path / "v.parquet", overwrite=True)
    assert (tmp_path / "texts" / "a.txt").exists()


def test_model_name_is_refused(model: SentenceTransformer, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="model='a-name'"):
        encode_documents("a-name", ["ba bun"], tmp_path / "v.parquet")  # type: ignore[arg-type]
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("rename", [2, 4, 5])
def test_interrupted_run_ends_with_the_same_bytes(
    rename: int, model: SentenceTransformer, corpus: list[Document], tmp_path: Path
) -> None:
    whole, output = tmp_path / "whole.parquet", tmp_path / "v.parquet"
    encode_documents(model, corpus, whole, part_size=20)
    with interrupt_at_rename(rename):  # settings, three parts, the vectors, then the removal
        encode_documents(model, corpus, output, part_size=20)
    assert output.exists() == (rename == 5)
    encode_documents(model, corpus, output, part_size=20, resume=True)
    assert output.read_bytes() == whole.read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_run_killed_before_writing_starts_again(
    model: SentenceTransformer, corpus: list[Document], tmp_path: Path
) -> None:
    hold(tmp_path / "v.parquet.parts").release()
    with pytest.raises(ResumeError, match="no interrupted run"):
        encode_documents(model, corpus, tmp_path / "v.parquet", resume=True)
    assert encode_documents(model, corpus, tmp_path / "v.parquet").documents == len(corpus)
    assert [path.name for path in tmp_path.iterdir()] == ["v.parquet"]


def test_two_processes_cannot_write_the_same_output(
    model: SentenceTransformer, corpus: list[Document], tmp_path: Path
) -> None:
    def busy() -> Iterator[Document]:
        yield corpus[0]
        for resume in (False, True):
            with pytest.raises(ConfigurationError, match="is already working"):
                encode_documents(model, corpus, tmp_path / "v.parquet", resume=resume, overwrite=not resume)
        yield corpus[1]

    assert encode_documents(model, busy(), tmp_path / "v.parquet", part_size=1).documents == 2
