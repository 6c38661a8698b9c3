"""Each kind of task through mteb, its scores against scikit-learn's, scipy's or a computation by hand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sentence_transformers import SentenceTransformer
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, v_measure_score

pytest.importorskip("mteb")
import mteb

from simlte_st.errors import ConfigurationError
from simlte_st.evaluation import CosineScores, citation_retrieval
from simlte_st.tasks import (
    MAIN_SCORES,
    classification_task,
    clustering_task,
    make_metadata,
    pair_classification_task,
    retrieval_task,
    sts_task,
)
from simlte_st.tasks.generators import kept_generators

Labelled = tuple[list[str], list[str]]
Papers = tuple[dict[str, str], list[tuple[str, str]]]

pytestmark = pytest.mark.usefixtures("no_network")


def scores(model: SentenceTransformer, task: Any) -> dict[str, Any]:
    result = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    assert result.task_results[0].task_name == task.metadata.name
    return dict(result.task_results[0].scores["test"][0])


def unit(model: SentenceTransformer, texts: list[str]) -> np.ndarray:
    rows = model.encode(texts, convert_to_numpy=True).astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_classification_with_all_training_documents_is_one_regression(
    model: SentenceTransformer, labelled: Labelled
) -> None:
    texts, labels = labelled
    task = classification_task("Few", texts[:42], labels[:42], texts[42:], labels[42:], samples_per_label=100)
    found = scores(model, task)
    regression = LogisticRegression(max_iter=100).fit(model.encode(texts[:42]), labels[:42])
    predicted = regression.predict(model.encode(texts[42:]))
    assert found["accuracy"] == pytest.approx(accuracy_score(labels[42:], predicted))
    assert found["f1"] == pytest.approx(f1_score(labels[42:], predicted, average="macro"))
    assert found["main_score"] == found["f1"]
    assert len(found["scores_per_experiment"]) == 10


def test_classification_draws_as_many_documents_a_class_as_asked(
    model: SentenceTransformer, labelled: Labelled
) -> None:
    texts, labels = labelled
    task = classification_task(
        "Few", texts[:42], labels[:42], texts[42:], labels[42:], samples_per_label=2, experiments=1
    )
    found = scores(model, task)
    order = list(range(42))
    np.random.RandomState(42).shuffle(order)
    chosen = [row for label in set(labels) for row in [row for row in order if labels[row] == label][:2]]
    regression = LogisticRegression(max_iter=100).fit(
        model.encode([texts[row] for row in chosen]), [labels[row] for row in chosen]
    )
    assert found["accuracy"] == pytest.approx(accuracy_score(labels[42:], regression.predict(model.encode(texts[42:]))))


def test_clustering(model: SentenceTransformer, labelled: Labelled) -> None:
    texts, labels = labelled
    found = scores(model, clustering_task("Clusters", texts, labels))
    embeddings, draw, expected = model.encode(texts), random.Random(42), []
    for _ in range(10):
        sample = draw.choices(range(60), k=60)
        clusters = MiniBatchKMeans(3, batch_size=512, init="k-means++", n_init=1, random_state=42)
        expected.append(
            v_measure_score([labels[row] for row in sample], clusters.fit_predict(embeddings[np.array(sample)]))
        )
    assert found["main_score"] == pytest.approx(np.mean(expected))


def test_retrieval(model: SentenceTransformer, papers: Papers) -> None:
    texts, links = papers
    relevant: dict[str, list[str]] = {}
    for citing, cited in links:
        relevant.setdefault(citing, []).append(cited)
    pool = {cited for _, cited in links}
    assert pool & set(relevant)  # papers that would find themselves
    found = scores(
        model,
        retrieval_task(
            "Citations", {paper: texts[paper] for paper in relevant}, {paper: texts[paper] for paper in pool}, relevant
        ),
    )
    rows = {paper: row for row, paper in enumerate(texts)}
    expected = citation_retrieval(
        CosineScores(unit(model, list(texts.values()))), [(rows[citing], rows[cited]) for citing, cited in links]
    ).metrics()
    assert found["main_score"] == pytest.approx(expected["ndcg@10"], abs=1e-5)
    assert found["recall_at_10"] == pytest.approx(expected["recall@10"], abs=1e-5)
    assert found["mrr_at_1000"] == pytest.approx(expected["mrr"], abs=1e-5)


def test_retrieval_of_equal_ids_that_are_different_texts(model: SentenceTransformer) -> None:
    texts = {"a": "ba bei bo.", "b": "fun fis.", "c": "dal dor."}
    task = retrieval_task("Own", texts, texts, {key: [key] for key in texts}, same_id_is_same_text=False)
    assert scores(model, task)["recall_at_1"] == 1.0


def test_pair_classification(model: SentenceTransformer, labelled: Labelled) -> None:
    texts, kinds = labelled
    first, second = texts[:30], texts[30:][::-1]
    labels = [int(a == b) for a, b in zip(kinds[:30], kinds[30:][::-1], strict=True)]
    found = scores(model, pair_classification_task("Pairs", first, second, labels))
    cosines = (unit(model, first) * unit(model, second)).sum(axis=1)
    assert found["cosine_ap"] == pytest.approx(average_precision_score(labels, cosines))
    thresholds = [np.inf, *cosines]
    assert found["cosine_accuracy"] == pytest.approx(
        max(accuracy_score(labels, cosines >= threshold) for threshold in thresholds[1:])
    )
    assert found["main_score"] >= found["cosine_ap"]


def test_sts(model: SentenceTransformer, labelled: Labelled) -> None:
    texts, _ = labelled
    judged = [random.Random(number).uniform(-3, 7) for number in range(30)]
    found = scores(model, sts_task("Alike", texts[:30], texts[30:], judged))
    cosines = (unit(model, texts[:30]) * unit(model, texts[30:])).sum(axis=1)
    assert found["main_score"] == pytest.approx(spearmanr(judged, cosines)[0])
    assert found["cosine_pearson"] == pytest.approx(pearsonr(judged, cosines)[0], abs=1e-5)


def test_a_task_gives_the_same_again_and_keeps_the_generators(model: SentenceTransformer, labelled: Labelled) -> None:
    with kept_generators():
        expected = random.random(), float(np.random.rand())
    task = clustering_task("Clusters", *labelled)
    task.load_data()  # mteb then keeps the task's data, and what it draws from
    first, second = scores(model, task), scores(model, task)
    assert first["v_measures"] == second["v_measures"]
    assert (random.random(), float(np.random.rand())) == expected
    other = clustering_task("Clusters", *labelled, seed=1)
    assert scores(model, other)["v_measures"] != first["v_measures"]


@pytest.mark.parametrize("kind", MAIN_SCORES)
def test_what_mteb_knows_of_a_task(kind: str) -> None:
    metadata = make_metadata("My tickets", kind, "What.", source="own/tickets", language="deu-Latn")  # type: ignore[arg-type]
    assert metadata.languages == ["deu"]
    assert metadata.main_score == MAIN_SCORES[kind]  # type: ignore[index]
    assert metadata.description == "What. Texts are cut by the model, at its max_seq_length."
    assert metadata.hf_subsets == ["default"]


@pytest.mark.parametrize("name", ["", "a/b", "../up", "line\n", " x"])
def test_names_that_are_no_file_names(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be called"):
        make_metadata(name, "STS", "What.", source="own")


@pytest.mark.parametrize("fields", [{"licence": "mit"}, {"license": "none of mteb's"}])
def test_fields_that_mteb_refuses(fields: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="mteb refuses"):
        make_metadata("Task", "STS", "What.", source="own", **fields)  # type: ignore[arg-type]


def test_a_language_that_is_not_written_as_mteb_does() -> None:
    with pytest.raises(ConfigurationError, match="such as eng-Latn"):
        make_metadata("Task", "STS", "What.", source="own", language="English")
