from __future__ import annotations

from typing import Any

import datasets
import huggingface_hub
import pytest

from benchmarks.datasets import load_benchmark
from simlte_st.errors import DataError


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A Hub that answers, with data sets of its own; gives what it was asked for."""
    asked: list[Any] = []

    def info(self: Any, repository: str, timeout: float) -> None:
        asked.append((repository, timeout))

    def load(repository: str, config: None, *, split: str, streaming: bool) -> datasets.Dataset:
        assert not streaming  # the cache is for when the Hub does not answer
        asked.append((repository, split))
        if repository == "gfissore/arxiv-abstracts-2021":
            rows = {"id": ["1", "2"], "title": ["T", "U"], "abstract": ["a\nb", "c"]}
            rows["categories"] = [["cs.CL math.CO"], ["hep-ph"]]
        else:
            rows = {"text": [f"{split} a", f"{split} b"], "label": [0, 1], "label_text": ["no", "yes"]}
        return datasets.Dataset.from_dict(rows)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(datasets, "load_dataset", load)
    return asked


def test_a_data_set_of_the_hub(hub: list[Any]) -> None:
    benchmark = load_benchmark("20news")
    assert hub == [("SetFit/20_newsgroups", 5), ("SetFit/20_newsgroups", "train"), ("SetFit/20_newsgroups", "test")]
    assert [(item.id, item.text, item.label, item.split) for item in benchmark.documents()] == [
        ("train-0", "train a", "no", "train"),
        ("train-1", "train b", "yes", "train"),
        ("test-0", "test a", "no", "test"),
        ("test-1", "test b", "yes", "test"),
    ]
    assert "SetFit/20_newsgroups" in benchmark.source
    assert "shorter" in benchmark.notes[-1]


def test_one_that_is_all_one_split(hub: list[Any]) -> None:
    benchmark = load_benchmark("arxiv")
    assert [(item.text, item.label) for item in benchmark.documents()] == [("T\n\na b", "cs"), ("U\n\nc", "hep-ph")]
    assert benchmark.split_origin.startswith("made here")


def test_a_hub_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def info(self: Any, repository: str, timeout: float) -> None:
        raise TimeoutError

    def load(*args: Any, **settings: Any) -> None:
        raise AssertionError("asked for although the Hub does not answer")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(DataError, match=r"'20news'.*qwone.*TimeoutError"):
        load_benchmark("20news")


def test_what_the_cache_has_is_not_asked_for(hub: list[Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "SetFit___20_newsgroups").mkdir()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    assert len(load_benchmark("20news")) == 4
    assert [call[1] for call in hub] == ["train", "test"]


def test_a_data_set_that_cannot_be_loaded(hub: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*args: Any, **settings: Any) -> None:
        raise ValueError("no such split")

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(DataError, match=r"20_newsgroups .*'train'.*no such split"):
        load_benchmark("20news")


def test_without_a_network_it_is_said_at_once() -> None:
    with pytest.raises(DataError, match="OfflineModeIsEnabled"):  # the tests run offline
        load_benchmark("arxiv")
