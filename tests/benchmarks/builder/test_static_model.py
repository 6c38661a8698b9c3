from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from shipped_support import table
from support import make_document

from benchmarks import static_start
from benchmarks.build_model import main
from benchmarks.builder import static_model
from benchmarks.builder.static_model import build_static
from benchmarks.records import RESULTS
from simlte_st.data import read_documents
from simlte_st.files import read_json
from simlte_st.models.names import HUB_BASE, OWN_STATIC
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE, FOLDER

pytest.importorskip("skeletoken", reason="needs the extra static")


@pytest.fixture
def small(encoder_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_model, "base_of_own_models", lambda: encoder_path)
    monkeypatch.setattr(static_model, "BATCH", 8)


@pytest.mark.usefixtures("small")
def test_it_is_distilled_and_then_trained(tmp_path: Path) -> None:
    documents = read_documents([make_document(number) for number in range(24)])
    for name, steps in (("start", 0), ("one", 4), ("two", 4)):
        build = build_static(documents, tmp_path / name, max_steps=steps, progress=False)
        assert (build.documents, build.steps) == (24, steps)
        assert read_json(tmp_path / name / BUILD_FILE)["sha256"] == build.sha256
    start, one, two = (table(tmp_path / name) for name in ("start", "one", "two"))
    assert start.shape == one.shape == (133, 32)
    assert np.abs(one - start).max() > 1e-3
    assert not one[1].any(), "of unknown tokens nothing is learned"
    np.testing.assert_array_equal(one, two)
    static_model_of = pytest.importorskip("model2vec").StaticModel
    assert static_model_of.from_pretrained(tmp_path / "one").encode(["ba bun"]).shape == (1, 32)


@pytest.mark.usefixtures("small")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "texts").mkdir()
    for number in range(9):
        (tmp_path / "texts" / f"{number}.txt").write_text(make_document(number), encoding="utf-8")
    main([OWN_STATIC, str(tmp_path / "texts"), "--max-steps", "1", "--output", str(tmp_path / "made")])
    assert "simlte-static: 9 documents, 1 steps" in capsys.readouterr().out


def test_the_card_of_the_package_is_of_its_build() -> None:
    folder = FOLDER / OWN_STATIC
    text = (folder / CARD_FILE).read_text(encoding="utf-8")
    assert text == static_start.card_of(read_json(RESULTS / "static_start.json"))
    _, header, body = text.split("---\n", 2)
    assert yaml.safe_load(header)["base_model"] == HUB_BASE
    assert f'SentenceTransformer("{OWN_STATIC}")' in body
    assert max(len(line) for line in body.splitlines() if not line.startswith("|")) <= 200


def test_the_model_of_the_package_tells_subjects_apart() -> None:
    weights = table(FOLDER / OWN_STATIC)
    assert weights.shape == (29525, 256)
    assert not weights[1].any()
    pytest.importorskip("model2vec", reason="needs the extra static")
    from model2vec import StaticModel

    import simlte_st

    texts = [
        "The whale is a mammal of the sea. " * 200, "Dolphins and seals swim in the ocean.",
        "The court ruled that the tax was unlawful.", "Judges and lawyers argued about the sentence.",
    ]  # fmt: skip
    vectors = simlte_st.SentenceTransformer(OWN_STATIC, device="cpu").encode(texts)
    similarity = vectors @ vectors.T
    assert min(similarity[0, 1], similarity[2, 3]) > similarity[:2, 2:].max() + 0.1
    np.testing.assert_allclose(StaticModel.from_pretrained(FOLDER / OWN_STATIC).encode(texts), vectors, atol=1e-5)


def test_the_package_stays_small() -> None:
    assert sum(path.stat().st_size for path in (FOLDER / OWN_STATIC).iterdir()) < 8.5e6
