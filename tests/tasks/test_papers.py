from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

pytest.importorskip("mteb")
import mteb

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.tasks import TASKS, evaluate, paper_tasks

Papers = tuple[dict[str, str], list[tuple[str, str]]]


def made(name: str, path: Path | None, **settings: Any) -> Any:
    """The data of a task of the papers."""
    [task] = paper_tasks([name], paths={} if path is None else {TASKS[name].data_set: path}, **settings)
    return task.make_data()


@pytest.mark.usefixtures("no_network")
def test_all_of_them_run(model: SentenceTransformer, folders: dict[str, Path]) -> None:
    tasks = paper_tasks(paths=folders)
    assert [task.metadata.name for task in tasks] == list(TASKS)
    results = evaluate(model, tasks).task_results
    assert [result.task_name for result in results] == list(TASKS)
    for result in results:
        (scores,) = result.scores["test"]
        assert -1.0 <= scores["main_score"] <= 1.0
        assert scores["main_score"] == scores[TASKS[result.task_name].metadata.main_score]


def test_their_names_are_not_names_of_mteb() -> None:
    for name in TASKS:
        with pytest.raises(KeyError, match="not found"):
            mteb.get_task(name)


def test_classification_has_the_registrys_split_and_only_documents_with_a_class(folders: dict[str, Path]) -> None:
    data = made("BBCNewsClassification", folders["bbc"], settings={"test_share": 0.5})
    assert (data["train"].num_rows, data["test"].num_rows) == (27, 27)
    assert data["test"].features["label"].names == ["first", "second", "third"]
    assert not set(data["train"]["text"]) & set(data["test"]["text"])


def test_documents_are_drawn_by_seed(folders: dict[str, Path]) -> None:
    def texts(**settings: Any) -> list[str]:
        found: list[str] = made("BBCNewsClustering", folders["bbc"], **settings)["test"]["sentences"][:]
        return found

    everything, some = texts(max_documents=None), texts(max_documents=12)
    assert (len(everything), len(some)) == (54, 12)
    assert some == texts(max_documents=12) != texts(max_documents=12, seed=1)
    assert some == [text for text in everything if text in some]


def test_a_large_training_part_keeps_its_rare_classes(tmp_path: Path) -> None:
    table = tmp_path / "train.tsv"
    table.write_text(
        "text\tlabel\n" + "".join(f"text {i}\t{'rare' if i % 500 == 0 else 'often'}\n" for i in range(1500))
    )
    (tmp_path / "test.tsv").write_text("text\tlabel\nba\trare\nbei\toften\n")
    data = made("BBCNewsClassification", tmp_path)["train"]
    often, rare = data.features["label"].str2int(["often", "rare"])
    assert [data["label"][:].count(number) for number in (often, rare)] == [800, 3]


def test_citations_become_judgements(folders: dict[str, Path], papers: Papers) -> None:
    texts, links = papers
    split = made("AANCitationRetrieval", folders["aan"])["default"]["test"]
    assert {(query, paper) for query, found in split["relevant_docs"].items() for paper in found} == set(links)
    assert set(split["corpus"]["id"]) == {cited for _, cited in links}
    assert set(split["queries"]["id"]) == {citing for citing, _ in links}
    for part in ("queries", "corpus"):
        assert all(texts[row["id"]] == row["text"] for row in split[part])


def test_pairs_are_the_test_pairs(folders: dict[str, Path], papers: Papers) -> None:
    texts, links = papers
    data = made("AANCitationPairClassification", folders["aan"])["test"]
    assert 0 < data.num_rows < 40
    linked = {(texts[citing], texts[cited]) for citing, cited in links}
    for row in data:
        assert ((row["sentence1"], row["sentence2"]) in linked) == bool(row["labels"])
    assert made("AANCitationPairClassification", folders["aan"], max_documents=4)["test"].num_rows == 4


def test_judged_similarities(folders: dict[str, Path]) -> None:
    data = made("LeeDocumentSTS", folders["lee"])["test"]
    assert data.num_rows == 15
    with pytest.raises(DataError, match="pass path="):
        made("LeeDocumentSTS", None)


def test_names_kinds_and_data_sets(folders: dict[str, Path]) -> None:
    named = [task.metadata.name for task in paper_tasks(["bbc", "Retrieval", "BBCNewsClustering", "lee"])]
    assert named == ["BBCNewsClassification", "BBCNewsClustering", "AANCitationRetrieval", "LeeDocumentSTS"]
    with pytest.raises(ConfigurationError, match="no task, data set or kind 'bbcs'"):
        paper_tasks(["bbcs"])
    with pytest.raises(ConfigurationError, match="no data set 'bcc'"):
        paper_tasks(["bbc"], paths={"bcc": folders["bbc"]})
    with pytest.raises(ConfigurationError, match="max_documents"):
        paper_tasks(["bbc"], max_documents=1)


def test_data_that_is_not_there_says_where_to_get_it(model: SentenceTransformer) -> None:
    with pytest.raises(DataError, match=r"catalog.ldc.upenn.edu.*path="):
        evaluate(model, paper_tasks(["nyt"]))
