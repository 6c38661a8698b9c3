from __future__ import annotations

import multiprocessing
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from shipped_support import BERT, LONGFORMER, STATIC, cosines, ship, ship_static, table, untrained_model

import simlte_st
from simlte_st.errors import ConfigurationError, DiskFullError
from simlte_st.files import HOME_VARIABLE, read_json
from simlte_st.models import shipped
from simlte_st.models.loading import model_source
from simlte_st.models.names import OWN_ENCODERS, base_of_own_models, own_folder, packaged_base_installed
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE, DIFFERENCE_FILE, RECIPE
from simlte_st.modules.position_pooling import FLAT, POWER

needs_base = pytest.mark.skipif(not packaged_base_installed(), reason="the packaged base model is not installed")
pytestmark = pytest.mark.usefixtures("weights")


def folder_of(name: str) -> Path:
    """Return the folder of a model, and make it first if needed."""
    return Path(model_source(name))


@needs_base
@pytest.mark.parametrize("name", [BERT, LONGFORMER])
def test_model_is_base_plus_small_difference(name: str) -> None:
    model = ship(name, base_of_own_models(), rank=16)
    assert (shipped.FOLDER / name / DIFFERENCE_FILE).stat().st_size < 4e6
    made = simlte_st.SentenceTransformer(name, device="cpu")
    assert made.max_seq_length == {BERT: 512, LONGFORMER: 4096}[name]
    texts = ["A short text.", "Whales are mammals. " * 60, "Rents rise in cities. " * 110]
    assert cosines(made, model, texts).min() > 1 - 1e-5
    assert cosines(made, untrained_model(name, base_of_own_models()), texts).max() < 0.999, "the difference is in it"


def test_untrained_start_is_reproducible(base: Path) -> None:
    for name, reads in ((BERT, 512), (LONGFORMER, 4096)):
        before = torch.get_rng_state()
        first, second = (untrained_model(name, base) for _ in range(2))
        assert torch.equal(before, torch.get_rng_state()), "a run's numbers do not depend on what was put together"
        one, two = first.state_dict(), second.state_dict()
        assert one.keys() == two.keys()
        assert all(torch.equal(one[key], two[key]) for key in one)
        assert (first.max_seq_length, first.device.type, first.dtype) == (reads, "cpu", torch.float32)
    assert first[0].auto_model.config.attention_window == 128


def test_static_model_needs_no_base_or_model2vec(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ship_static()
    monkeypatch.setattr(shipped, "base_of_own_models", lambda: pytest.fail("no base is needed"))
    monkeypatch.setitem(sys.modules, "model2vec", None)
    texts = ["Ba bun.", "Ba. " * 700 + "Bun dal. " * 700, "xyz", ""]
    vectors = simlte_st.SentenceTransformer(STATIC, device="cpu").encode(texts)
    assert vectors.dtype == np.float32
    folder = folder_of(STATIC)
    assert read_json(folder / BUILD_FILE) == {"seed": 0}
    stock = SentenceTransformer(str(folder), device="cpu")
    assert torch.equal(stock[0].embedding.weight, torch.from_numpy(table(source)))
    monkeypatch.undo()
    static_model = pytest.importorskip("model2vec", reason="needs the extra static").StaticModel
    others = [static_model.from_pretrained(path).encode(texts) for path in (source, folder)]
    for other in (stock.encode(texts), *others):
        np.testing.assert_allclose(other, vectors, atol=1e-5)  # a sum over a long text is rounded


def test_model_is_built_once(tiny: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = ship(BERT, tiny)
    caplog.clear()
    folder = folder_of(BERT)
    [record] = caplog.records
    assert record.levelname == "WARNING", "seen without setting up logging"
    assert re.search(rf"simlte-bert .* from {tiny}, .*{folder}", record.getMessage())
    assert folder == own_folder(BERT)
    assert (folder / CARD_FILE).read_text(encoding="utf-8") == "# simlte-bert 0\n"
    assert read_json(folder / BUILD_FILE) == {"seed": 0}
    written = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert folder_of(BERT) == folder
    assert len(caplog.records) == 1
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == written
    assert [path.name for path in folder.parent.glob("[!.]*")] == [BERT], "some filelock leaves .NAME.lock"
    assert cosines(SentenceTransformer(str(folder), device="cpu"), model, ["Ba bei bo."]).min() > 1 - 1e-5


def test_model_is_rebuilt_after_changes(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(BERT, tiny)
    folder = folder_of(BERT)
    for file, content in ((CARD_FILE, "# Other words\n"), (BUILD_FILE, '{"seed": 7}\n')):
        (shipped.FOLDER / BERT / file).write_text(content, encoding="utf-8")
        folder_of(BERT)
        assert (folder / file).read_text(encoding="utf-8") == content
    (folder / "stale").touch()
    folder_of(BERT)
    assert (folder / "stale").exists()
    monkeypatch.setattr(shipped, "RECIPE", RECIPE + 1)
    folder_of(BERT)
    assert not (folder / "stale").exists()


def test_recipe_number_matches_the_recipe() -> None:
    """If one of these changes, raise the number too; otherwise models that are already unpacked stay."""
    assert (RECIPE, POWER, FLAT, OWN_ENCODERS) == (1, 0.25, 64, {BERT: 512, LONGFORMER: 4096})


def test_failed_build_leaves_nothing(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(BERT, tiny, seed=1)
    folder = folder_of(BERT)
    ship(BERT, tiny, seed=2)

    def full(self: SentenceTransformer, path: str, **options: object) -> None:
        Path(path).mkdir()
        (Path(path) / "modules.json").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SentenceTransformer, "save_pretrained", full)
    with pytest.raises(DiskFullError):
        folder_of(BERT)
    assert read_json(folder / BUILD_FILE) == {"seed": 1}
    shutil.rmtree(folder)
    with pytest.raises(DiskFullError):
        folder_of(BERT)
    assert not list(folder.parent.glob("[!.]*"))


def ask(began: multiprocessing.Barrier, made: multiprocessing.SimpleQueue) -> None:
    """Load a model in a new process; return whether that process unpacked it."""
    start, calls = shipped.make_untrained, []
    shipped.make_untrained = lambda *given: calls.append(given) or start(*given)
    began.wait(timeout=60)
    folder = folder_of(BERT)
    SentenceTransformer(str(folder), device="cpu")
    made.put(len(calls))


@pytest.mark.skipif(sys.platform != "linux" or torch.cuda.is_available(), reason="needs to fork")
def test_one_of_several_processes_builds_the_model(tiny: Path) -> None:
    ship(BERT, tiny, seed=1)
    folder_of(BERT)
    ship(BERT, tiny, seed=2)
    context = multiprocessing.get_context("fork")
    began, made = context.Barrier(3), context.SimpleQueue()
    processes = [context.Process(target=ask, args=(began, made)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert sorted(made.get() for _ in processes) == [0, 0, 1]
    assert read_json(own_folder(BERT) / BUILD_FILE) == {"seed": 2}


def test_unwritable_home_is_an_error(tiny: Path, tmp_path: Path, monkeypatch: Any) -> None:
    ship(BERT, tiny)
    (tmp_path / "file").touch()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(ConfigurationError, match=f"not a writable folder.*{HOME_VARIABLE}"):
        folder_of(BERT)
