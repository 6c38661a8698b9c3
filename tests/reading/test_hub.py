"""Data sets of the library datasets, in memory or on the Hub."""

from __future__ import annotations

from typing import Any

import datasets
import pytest
from reading_support import texts

from simlte_st.errors import DataError
from simlte_st.reading.documents import read_documents

FEATURES = datasets.Features(
    {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"]), "n": datasets.Value("int64")}
)


ROWS = {"text": ["a", "b", "c"], "label": [1, 0, -1], "n": [1, 2, 3]}


@pytest.mark.parametrize("streaming", [False, True])
def test_dataset(streaming: bool) -> None:
    dataset = datasets.Dataset.from_dict(ROWS, features=FEATURES)
    source = dataset.to_iterable_dataset() if streaming else dataset.with_format("numpy")
    reader = read_documents(source, label_column="label")
    expected = [("0", "a", "yes"), ("1", "b", "no"), ("2", "c", None)]
    for _ in range(2):
        assert [(document.id, document.text, document.label) for document in reader] == expected
    with pytest.raises(DataError, match=r"no column 'body'.*text, label, n"):
        texts(source, text_column="body")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("hub:imdb", ("imdb", None, "train")),
        ("hub:owner/name:test", ("owner/name", None, "test")),
        ("hub:owner/name:train[:10%]", ("owner/name", None, "train[:10%]")),
        ("hub:owner/name:en:dev[5:10]", ("owner/name", "en", "dev[5:10]")),
        ("hub:owner/name::extra", ("owner/name", None, "extra")),
        ("hub:owner/name:test:", ("owner/name", "test", "train")),
    ],
)
def test_hub_names(source: str, expected: tuple[str, str | None, str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def load(*args: Any, **settings: Any) -> Any:
        calls.append((args, settings))
        return datasets.Dataset.from_dict(ROWS, features=FEATURES).to_iterable_dataset()

    monkeypatch.setattr(datasets, "load_dataset", load)
    reader = read_documents(source)
    assert calls == []
    assert [document.text for document in reader] == [document.text for document in reader] == ["a", "b", "c"]
    name, config, split = expected
    assert calls == [((name, config), {"split": split, "streaming": True})]
    assert reader.report.source == source


def test_hub_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    for source in ("hub:", "hub:a:b:c:d"):
        with pytest.raises(DataError, match="hub:NAME"):
            texts(source)

    def missing(*args: Any, **settings: Any) -> Any:
        raise datasets.exceptions.DatasetNotFoundError("doesn't exist on the Hub")

    monkeypatch.setattr(datasets, "load_dataset", missing)
    with pytest.raises(DataError, match=r"hub:owner/name cannot be loaded.*doesn't exist"):
        texts("hub:owner/name")

    def rows() -> Any:
        yield {"text": "a"}
        raise ConnectionError("gone")

    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: datasets.IterableDataset.from_generator(rows))
    with pytest.raises(DataError, match=r"hub:owner/name .*gone.*, after 0 documents had"):
        texts("hub:owner/name")
