from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("mteb")
from simlte_st.errors import DataError
from simlte_st.tasks.task_data import (
    classification_data,
    clustering_data,
    pair_data,
    retrieval_data,
    sts_data,
)


def test_classes_are_numbered_alike_in_both_parts() -> None:
    data = classification_data(["x", "y", "z"], ["b", "a", "b"], ["u", "v"], ["b", "new"])
    assert data["train"].features["label"].names == ["a", "b", "new"]
    assert (data["train"]["label"][:], data["test"]["label"][:]) == ([1, 0, 1], [1, 2])
    numbers = classification_data(["x", "y"], [10, 9], ["u"], [9])
    assert numbers["train"].features["label"].names == ["9", "10"]


def test_retrieval_leaves_out_queries_that_have_nothing_to_find() -> None:
    split = retrieval_data(
        {"a": "one", "b": "two"}, {"x": "three", "a": "one"}, {"a": ["x", "x"], "b": []}, leave_out_own=True
    )["default"]["test"]
    assert split["queries"]["id"][:] == ["a"]
    assert split["corpus"]["text"][:] == ["three", "one"]
    assert split["relevant_docs"] == {"a": {"x": 1}}


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (classification_data, (["a"], ["x"], ["b"], ["x", "y"]), "test part has 1 texts but 2 labels"),
        (classification_data, (["a", "b"], ["x", "x"], ["b"], ["x"]), "at least two classes"),
        (classification_data, ("ab", ["x", "y"], ["b"], ["x"]), "training texts are a single string"),
        (classification_data, (["a", None], ["x", "y"], ["b"], ["x"]), "index 1 is NoneType"),
        (classification_data, (["a", "b"], ["x", "y"], [], []), "no test texts"),
        (clustering_data, (["a", "b"], ["x", "x"]), "at least two classes"),
        (clustering_data, (["a", "b"], ["x", 1]), "mix strings and integers"),
        (pair_data, (["a", "b"], ["c"], [0, 1]), "second part has 1 texts but 2 labels"),
        (pair_data, (["a", "b"], ["c", "d"], [1, 1]), r"both kinds.*\[1\]"),
        (pair_data, (["a", "b"], ["c", "d"], [1, 2]), "both kinds"),
        (sts_data, (["a", "b"], ["c", "d"], [1.0]), "as many scores"),
        (sts_data, (["a", "b"], ["c", "d"], [1.0, 1.0]), "not all the same"),
        (sts_data, (["a", "b"], ["c", "d"], [1.0, float("nan")]), "finite"),
    ],
)
def test_data_that_does_not_fit(make: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        make(*arguments)


@pytest.mark.parametrize(
    ("relevant", "message"),
    [
        ({"a": "x"}, "single string"),
        ({"a": []}, "No query"),
        ({"a": ["nowhere"]}, r"1 documents have judgements but no text: \['nowhere'\]"),
        ({"nobody": ["x"]}, "1 queries have"),
        ({"a": ["a"]}, "own id"),
    ],
)
def test_judgements_that_do_not_fit(relevant: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        retrieval_data({"a": "one"}, {"x": "two", "a": "one"}, relevant, leave_out_own=True)
