from __future__ import annotations

import random

import pytest
import torch
from sentence_transformers import SentenceTransformer

pytest.importorskip("mteb")
from scipy.stats import spearmanr

from simlte_st.errors import ConfigurationError
from simlte_st.tasks import classification_task, evaluate, sts_task

Labelled = tuple[list[str], list[str]]


def by_hand(model: SentenceTransformer, texts: list[str], judged: list[float]) -> float:
    rows = torch.nn.functional.normalize(model.encode(texts, convert_to_tensor=True).double(), dim=1)
    return float(spearmanr(judged, (rows[:30] * rows[30:]).sum(dim=1).numpy())[0])


def test_models_of_no_name_are_not_taken_for_each_other(model: SentenceTransformer, labelled: Labelled) -> None:
    texts, _ = labelled
    judged = [random.Random(number).random() for number in range(30)]
    task = sts_task("Alike", texts[:30], texts[30:], judged)
    found = []
    for _ in range(2):
        found.append(evaluate(model, task).task_results[0].get_score())
        assert found[-1] == pytest.approx(by_hand(model, texts, judged))
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.5)
    assert found[0] != pytest.approx(found[1])


def test_texts_are_cut_where_asked(model: SentenceTransformer, labelled: Labelled) -> None:
    texts, _ = labelled
    judged = [random.Random(number).random() for number in range(30)]
    task = sts_task("Alike", texts[:30], texts[30:], judged)
    before = model.max_seq_length
    found = evaluate(model, [task], max_seq_length=6).task_results[0].get_score()
    assert model.max_seq_length == before
    assert found == pytest.approx(by_hand(model, [" ".join(text.split()[:4]) for text in texts], judged))
    assert found != pytest.approx(by_hand(model, texts, judged))


def test_nothing_to_evaluate(model: SentenceTransformer, labelled: Labelled) -> None:
    with pytest.raises(ConfigurationError, match="no tasks"):
        evaluate(model, [])
    with pytest.raises(ConfigurationError, match="max_seq_length"):
        evaluate(model, classification_task("Few", *labelled), max_seq_length=0)
