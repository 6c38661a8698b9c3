"""Data sets of the library ``datasets``."""

from __future__ import annotations

import datasets
import pytest
from reading_support import texts

from simlte_st.data.documents import read_documents
from simlte_st.errors import DataError

FEATURES = datasets.Features(
    {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"]), "n": datasets.Value("int64")}
)


ROWS = {"text": ["a", "b", "c"], "label": [1, 0, -1], "n": [1, 2, 3]}


@pytest.mark.parametrize("streaming", [False, True])
def test_a_dataset(streaming: bool) -> None:
    dataset = datasets.Dataset.from_dict(ROWS, features=FEATURES)
    source = dataset.to_iterable_dataset() if streaming else dataset.with_format("numpy")
    reader = read_documents(source, label_column="label")
    for _ in range(2):
        assert [(document.id, document.text, document.label) for document in reader] == [
            ("0", "a", "yes"),
            ("1", "b", "no"),
            ("2", "c", None),
        ]
    with pytest.raises(DataError, match=r"no column 'body'.*text, label, n"):
        texts(source, text_column="body")


def test_a_stream_without_features() -> None:
    source = datasets.IterableDataset.from_generator(lambda: iter([{"id": "x", "body": "a"}, {"id": "y", "body": 1}]))
    assert source.features is None
    reader = read_documents(source)
    assert [(document.id, document.text) for document in reader] == [("x", "a")]
    assert reader.report.skipped == {"not a string": 1}
    assert len(list(reader)) == 1
