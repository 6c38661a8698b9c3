from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import topics

LABELS = [f"l{number % 3}" for number in range(60)]


class EveryoneInOne:
    """Stands in for BERTopic: ten documents in no topic, all others in one."""

    def __init__(self, umap_model: object) -> None:
        pass

    def fit_transform(self, texts: list[str], vectors: np.ndarray) -> tuple[list[int], None]:
        return [-1] * 10 + [0] * (len(texts) - 10), None


def test_topics_beside_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bertopic", SimpleNamespace(BERTopic=EveryoneInOne))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=lambda **options: None))  # type: ignore[arg-type]
    monkeypatch.setattr(topics, "FILES", {})
    monkeypatch.setattr(topics, "read", lambda name, folder, most: ([f"text {n}" for n in range(most)], LABELS))
    vectors = np.eye(3, 8, dtype=np.float32)[np.arange(60) % 3]
    np.savez(tmp_path / "BBC.npz", x=vectors, a=vectors[:40], b=vectors[:40], ids=np.arange(40))
    topics.main([
        "--shared", str(tmp_path), "--vectors", str(tmp_path), "--documents", "60", "--output", str(tmp_path)
    ])  # fmt: skip
    rows = {row["topics of"]: row for row in json.loads((tmp_path / "topics.json").read_text())["rows"]}
    assert set(rows) == {"simlte explore", "k-means, 3 topics", "k-means, as many as labels (3)", "BERTopic"}
    assert (rows["simlte explore"]["topics"], rows["simlte explore"]["NMI"]) == (3, 1.0)
    assert (rows["BERTopic"]["topics"], rows["BERTopic"]["in none"]) == (1, 10 / 60)
    page = "".join((tmp_path / "topics.md").read_text().split())
    assert "|BBC,simlteexplore|3|0%|1.000|1.000|" in page
