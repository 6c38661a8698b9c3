from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("mteb")
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.tasks import classification_task, clustering_task, retrieval_task, sts_task

Labelled = tuple[list[str], list[str]]


def test_documents_are_divided_by_class_and_by_seed(labelled: Labelled) -> None:
    texts, labels = labelled
    task = classification_task("Own", texts, labels, test_share=0.3)
    task.load_data()
    assert task.dataset is not None
    train, test = task.dataset["train"], task.dataset["test"]
    assert Counter(test["label"][:]) == {0: 6, 1: 6, 2: 6}
    assert sorted([*train["text"][:], *test["text"][:]]) == sorted(texts)
    class_of = dict(zip(texts, labels, strict=True))
    for part in (train, test):
        names = part.features["label"].names
        assert [names[number] for number in part["label"]] == [class_of[text] for text in part["text"]]
    other = classification_task("Own", texts, labels, test_share=0.3, seed=1)
    other.load_data()
    assert other.dataset is not None
    assert other.dataset["test"]["text"][:] != test["text"][:]


def test_numbered_classes_stay_numbers(labelled: Labelled) -> None:
    texts, labels = labelled
    numbers = np.array([{"first": 2, "second": 10, "third": 1}[label] for label in labels])
    task = classification_task("Own", texts, numbers)  # type: ignore[arg-type]
    task.load_data()
    assert task.dataset is not None
    assert task.dataset["train"].features["label"].names == ["1", "2", "10"]


def test_the_revision_tells_one_data_from_another(labelled: Labelled) -> None:
    texts, labels = labelled
    first, again = (classification_task("Own", texts, labels).metadata.revision for _ in range(2))
    changed = classification_task("Own", [*texts[:-1], "ba"], labels).metadata.revision
    assert first == again != changed


def test_data_comes_back_after_it_was_unloaded() -> None:
    task = retrieval_task("Own", {"q": "ba"}, {"d": "bei"}, {"q": iter(["d"])})  # type: ignore[dict-item]
    for _ in range(2):
        task.load_data()
        assert task.dataset["default"]["test"]["relevant_docs"] == {"q": {"d": 1}}
        task.unload_data()


def test_the_scale_of_judgements_is_theirs() -> None:
    task = sts_task("Own", ["a", "b"], ["c", "d"], [-0.5, 6.2])
    assert (task.min_score, task.max_score) == (-1, 7)


def test_settings_out_of_their_range(labelled: Labelled) -> None:
    texts, labels = labelled
    for settings in ({"samples_per_label": 0}, {"experiments": 0}, {"test_share": 1.0}, {"test_texts": ["a"]}):
        with pytest.raises(ConfigurationError):
            classification_task("Own", texts, labels, **settings)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="cannot be divided"):
        classification_task("Own", [*texts, "ba"], [*labels, "alone"])


def test_mteb_finds_prompts_although_there_are_tasks_of_ours(labelled: Labelled) -> None:
    from mteb.abstasks.abstask import get_abstask_prompt

    texts, labels = labelled[0], labelled[1]
    task = clustering_task("OwnPrompt", texts, labels)
    get_abstask_prompt("AmazonCounterfactualClassification")
    assert get_abstask_prompt("OwnPrompt") == task.abstask_prompt
