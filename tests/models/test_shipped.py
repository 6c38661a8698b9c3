from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from shipped_support import BERT, LONGFORMER, STATIC, cosines, ship, ship_static, table

import simlte_st
from simlte_st.cli.main import main
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import HOME_VARIABLE, read_json
from simlte_st.models import shipped
from simlte_st.models.base import load_model
from simlte_st.models.conversion import convert_base
from simlte_st.models.model2vec import TOKENIZER, WEIGHTS
from simlte_st.models.names import (
    OWN_ENCODERS,
    OWN_MODELS,
    base_of_own_models,
    find_model,
    local_folder,
    model_path,
    named_models,
    packaged_base_installed,
)
from simlte_st.models.shipped import (
    BUILD_FILE,
    CARD_FILE,
    DIFFERENCE_FILE,
    DIGEST_FILE,
    RECIPE,
    add_difference,
    put_together,
    untrained,
)
from simlte_st.modules.position_pooling import FLAT, POWER, PositionPooling

needs_base = pytest.mark.skipif(not packaged_base_installed(), reason="the packaged base model is not installed")
pytestmark = pytest.mark.usefixtures("weights")


def test_a_package_that_lacks_its_models(tmp_path: Path) -> None:
    for name in OWN_MODELS:
        file = WEIGHTS if name == STATIC else DIFFERENCE_FILE
        for load in (find_model, load_model, simlte_st.SentenceTransformer):
            with pytest.raises(ModelError, match=rf"{name}.*{file}.*Install simlte-st"):
                load(name)
        assert not model_path(name).exists()


@needs_base
@pytest.mark.parametrize("name", [BERT, LONGFORMER])
def test_a_model_is_its_base_and_a_small_difference(name: str) -> None:
    model = ship(name, base_of_own_models(), rank=16)
    assert (shipped.FOLDER / name / DIFFERENCE_FILE).stat().st_size < 4e6
    made = simlte_st.SentenceTransformer(name, device="cpu")
    assert made.max_seq_length == {BERT: 512, LONGFORMER: 4096}[name]
    texts = ["A short text.", "Whales are mammals. " * 60, "Rents rise in cities. " * 110]
    assert cosines(made, model, texts).min() > 1 - 1e-5
    assert cosines(made, untrained(name, base_of_own_models()), texts).max() < 0.999, "the difference is in it"


def test_the_start_is_always_the_same(base: Path) -> None:
    for name, reads in ((BERT, 512), (LONGFORMER, 4096)):
        before = torch.get_rng_state()
        first, second = (untrained(name, base) for _ in range(2))
        assert torch.equal(before, torch.get_rng_state()), "a run's numbers do not depend on what was put together"
        one, two = first.state_dict(), second.state_dict()
        assert one.keys() == two.keys()
        assert all(torch.equal(one[key], two[key]) for key in one)
        assert (first.max_seq_length, first.device.type, first.dtype) == (reads, "cpu", torch.float32)
    assert first[0].auto_model.config.attention_window == 128
    with pytest.raises(ConfigurationError, match=r"'simlte-gpt' .*simlte-bert, simlte-longformer"):
        untrained("simlte-gpt", base)


def test_the_start_of_the_longformer_is_the_converted_base(base: Path, tmp_path: Path) -> None:
    convert_base(base, tmp_path / "long", max_length=4096, attention_window=128, positions="tile")
    wanted = load_model(tmp_path / "long", dtype=torch.float32, device="cpu").model
    wanted[1] = PositionPooling(32)
    start = untrained(LONGFORMER, base)
    for model, folder in ((wanted, tmp_path / "wanted"), (start, tmp_path / "start")):
        model.save_pretrained(str(folder), create_model_card=False)
    for path in (path for path in (tmp_path / "wanted").rglob("*") if path.is_file()):
        other = tmp_path / "start" / path.relative_to(tmp_path / "wanted")
        if path.suffix != ".safetensors":  # in which versions differ in names and header
            assert other.read_bytes() == path.read_bytes(), path
    one, two = wanted.state_dict(), start.state_dict()
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert torch.equal(*(model.encode("Ba bei bo. " * 300, convert_to_tensor=True) for model in (wanted, start)))


def test_the_start_is_written_nowhere(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk for temporary files that is full, or is not there, does not matter."""
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *_, **__: pytest.fail("a folder was made"))
    assert untrained(LONGFORMER, base).max_seq_length == 4096


def test_a_bare_language_model_is_no_base(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path / "bare")
    (tmp_path / "bare" / "modules.json").unlink()
    (tmp_path / "bare" / "config_sentence_transformers.json").unlink()
    for name in OWN_ENCODERS:
        with pytest.raises(ModelError, match=r"bare .*modules\.json"):
            untrained(name, tmp_path / "bare")


def test_the_static_one_needs_neither_a_base_nor_model2vec(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ship_static()
    monkeypatch.setattr(shipped, "base_of_own_models", lambda: pytest.fail("no base is needed"))
    monkeypatch.setitem(sys.modules, "model2vec", None)
    texts = ["Ba bun.", "Ba. " * 700 + "Bun dal. " * 700, "xyz", ""]
    vectors = simlte_st.SentenceTransformer(STATIC, device="cpu").encode(texts)
    assert vectors.dtype == np.float32
    folder = Path(find_model(STATIC))
    assert read_json(folder / BUILD_FILE) == {"seed": 0}
    stock = SentenceTransformer(str(folder), device="cpu")
    assert torch.equal(stock[0].embedding.weight, torch.from_numpy(table(source)))
    monkeypatch.undo()
    static_model = pytest.importorskip("model2vec", reason="needs the extra static").StaticModel
    others = [static_model.from_pretrained(path).encode(texts) for path in (source, folder)]
    for other in (stock.encode(texts), *others):
        np.testing.assert_allclose(other, vectors, atol=1e-6)


def test_eight_bits_turn_no_vector_by_much() -> None:
    source = ship_static()
    drawn = np.random.default_rng(0).standard_normal((136, 12), dtype=np.float32)
    found = table(source)
    rows = np.linalg.norm(found, axis=1) > 0
    cosine = (found * drawn).sum(1)[rows] / np.linalg.norm(found, axis=1)[rows] / np.linalg.norm(drawn, axis=1)[rows]
    assert rows.sum() == 135
    assert cosine.min() > 0.9999
    np.testing.assert_allclose(found, drawn * np.linspace(0.01, 1, 136)[:, None] * rows[:, None], atol=0.02)


@pytest.mark.parametrize("file", [WEIGHTS, TOKENIZER])
def test_a_static_one_that_is_damaged(file: str) -> None:
    path = ship_static() / file
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match="Install simlte-st again"):
        find_model(STATIC)
    assert not model_path(STATIC).exists()
    ship_static(seed=1)
    assert SentenceTransformer(find_model(STATIC), device="cpu").encode("Ba").shape == (12,)


def test_a_model_is_put_together_once(tiny: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = ship(BERT, tiny)
    caplog.clear()
    folder = put_together(BERT)
    [record] = caplog.records
    assert record.levelname == "WARNING", "seen without setting up logging"
    assert re.search(rf"simlte-bert, once, from {tiny} .*{folder}", record.getMessage())
    assert folder == model_path(BERT)
    assert (folder / CARD_FILE).read_text(encoding="utf-8") == "# simlte-bert 0\n"
    assert read_json(folder / BUILD_FILE) == {"seed": 0}
    *sizes, digest = (folder / DIGEST_FILE).read_text().splitlines()
    assert sizes == sorted(sizes, key=lambda line: line.split(" ")[1])
    assert f"{(folder / 'model.safetensors').stat().st_size} model.safetensors" in sizes
    assert len(sizes) == sum(path.is_file() for path in folder.rglob("*")) - 1
    assert len(digest) == 64
    written = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert put_together(BERT) == folder
    assert len(caplog.records) == 1
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == written
    assert sorted(os.listdir(folder.parent)) == [f".{BERT}.lock", BERT]
    assert cosines(SentenceTransformer(str(folder), device="cpu"), model, ["Ba bei bo."]).min() > 1 - 1e-5


@pytest.mark.parametrize("name", [BERT, LONGFORMER])
def test_the_name_is_enough(name: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: pytest.fail("the Hub was asked"))
    model = ship(name, tiny)
    made = simlte_st.SentenceTransformer(name, device="cpu")
    assert cosines(made, model, ["Ba bei bo.", "Bun dal."]).min() > 1 - 1e-5
    assert find_model(name) == str(model_path(name))
    loaded = load_model(name)
    assert (loaded.name, loaded.tuned) == (name, True)
    assert loaded.model.max_seq_length == made.max_seq_length
    monkeypatch.chdir(tmp_path)  # a folder here is meant first, as ever
    shutil.copytree(tiny, name)
    assert find_model(name) == name


def test_one_of_an_older_difference_is_made_anew(tiny: Path) -> None:
    ship(BERT, tiny, seed=1)
    old = put_together(BERT)
    (old / "stale").touch()
    model = ship(BERT, tiny, seed=2)
    made = SentenceTransformer(find_model(BERT), device="cpu")
    assert cosines(made, model, ["Ba bei bo."]).min() > 1 - 1e-5
    assert read_json(old / BUILD_FILE) == {"seed": 2}
    assert not (old / "stale").exists()


def test_it_is_made_anew_where_anything_of_it_changes(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(BERT, tiny)
    folder = put_together(BERT)
    for file, content in ((CARD_FILE, "# Other words\n"), (BUILD_FILE, '{"seed": 7}\n')):
        (shipped.FOLDER / BERT / file).write_text(content, encoding="utf-8")
        put_together(BERT)
        assert (folder / file).read_text(encoding="utf-8") == content
    (folder / "stale").touch()
    put_together(BERT)
    assert (folder / "stale").exists()
    monkeypatch.setattr(shipped, "RECIPE", RECIPE + 1)
    put_together(BERT)
    assert not (folder / "stale").exists()


def test_what_the_recipe_number_stands_for() -> None:
    """Where one of these changes, the number must rise too: else models that are unpacked already stay as they are."""
    assert (RECIPE, POWER, FLAT, OWN_ENCODERS) == (1, 0.25, 64, {BERT: 512, LONGFORMER: 4096})


@pytest.mark.parametrize("damage", ["cut weights", "weights", "modules.json", "cut tokenizer.json", DIGEST_FILE, ""])
@pytest.mark.parametrize("removed", [False, True])
def test_a_damaged_one_is_made_anew_and_can_be_removed(
    damage: str, removed: bool, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ship(BERT, tiny)
    folder = put_together(BERT)
    path = folder / damage.removeprefix("cut ").replace("weights", "model.safetensors")
    if damage == "":
        shutil.rmtree(folder)
        folder.mkdir()
    elif damage == DIGEST_FILE:
        path.write_bytes(b"\xff\n")
    elif damage.startswith("cut"):
        path.write_bytes(path.read_bytes()[:-10])
    else:
        path.unlink()
    if removed:
        assert main(["models", "remove", BERT]) == 0
        assert f"Removed the model: {folder}" in " ".join(capsys.readouterr().out.split())
        assert not folder.exists()
        assert main(["models", "remove", BERT]) == 1
    made = simlte_st.SentenceTransformer(BERT, device="cpu")
    assert cosines(made, model, ["Ba bei bo."]).min() > 1 - 1e-5


def test_what_the_user_made_stays(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(BERT, tiny)
    own = model_path(BERT)
    shutil.copytree(tiny, own)
    monkeypatch.setattr(shipped, "base_of_own_models", lambda: pytest.fail("nothing is to be made"))
    assert put_together(BERT) == own
    assert not (own / DIGEST_FILE).exists()
    assert SentenceTransformer(str(own), device="cpu").max_seq_length == 512


def test_where_it_fails_nothing_is_left(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(BERT, tiny, seed=1)
    folder = put_together(BERT)
    ship(BERT, tiny, seed=2)

    def full(self: SentenceTransformer, path: str, **options: object) -> None:
        Path(path).mkdir()
        (Path(path) / "modules.json").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SentenceTransformer, "save_pretrained", full)
    with pytest.raises(ConfigurationError, match=rf"simlte-bert .*disk is full.*{HOME_VARIABLE}"):
        put_together(BERT)
    assert read_json(folder / BUILD_FILE) == {"seed": 1}
    shutil.rmtree(folder)
    with pytest.raises(ConfigurationError, match="disk is full"):
        put_together(BERT)
    assert os.listdir(folder.parent) == [f".{BERT}.lock"]


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), SafetensorError("broken")])
def test_what_the_base_does_is_not_said_of_the_place(
    error: Exception, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship(BERT, tiny)

    def fail(*given: object) -> None:
        raise error

    monkeypatch.setattr(shipped, "untrained", fail)
    with pytest.raises(type(error)) as caught:
        put_together(BERT)
    assert caught.value is error
    assert os.listdir(model_path(BERT).parent) == [f".{BERT}.lock"]


def test_a_home_that_cannot_be_written(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship(BERT, tiny)
    folder = put_together(BERT)
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        assert put_together(BERT) == folder, "it is there already"
        shutil.rmtree(folder)
        with pytest.raises(ConfigurationError, match=f"written in .*{HOME_VARIABLE}"):
            find_model(BERT)
    (tmp_path / "file").touch()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(ConfigurationError, match=f"not a folder.*{HOME_VARIABLE}"):
        find_model(BERT)


def test_a_home_that_may_not_be_looked_into(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root may look everywhere, the system's answer is made up."""
    ship(BERT, tiny)
    closed = tmp_path / "closed"
    closed.mkdir()
    monkeypatch.setenv(HOME_VARIABLE, str(closed / "home"))

    def refusing(call: Callable[..., object]) -> Callable[..., object]:
        def answer(path: object, *arguments: object, **options: object) -> object:
            if str(path).startswith(f"{closed}{os.sep}"):
                raise PermissionError(13, "Permission denied")
            return call(path, *arguments, **options)

        return answer

    access = os.access
    for name in ("stat", "lstat", "scandir", "listdir", "open", "mkdir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(closed) and access(path, mode))
    with pytest.raises(ConfigurationError, match=f"written in {closed}.*{HOME_VARIABLE}"):
        find_model(BERT)
    assert local_folder("mine") is None
    assert named_models() == {}
    assert main(["models", "list"]) == 0


def ask(began: multiprocessing.Barrier, made: multiprocessing.SimpleQueue) -> None:
    """Ask for a model in a process of its own; tell whether this one made it."""
    start, calls = shipped.untrained, []
    shipped.untrained = lambda *given: calls.append(given) or start(*given)
    began.wait(timeout=60)
    folder = put_together(BERT)
    SentenceTransformer(str(folder), device="cpu")
    made.put(len(calls))


@pytest.mark.skipif(sys.platform != "linux" or torch.cuda.is_available(), reason="needs to fork")
def test_of_several_processes_one_makes_it(tiny: Path) -> None:
    ship(BERT, tiny, seed=1)
    put_together(BERT)
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
    assert read_json(model_path(BERT) / BUILD_FILE) == {"seed": 2}


def test_a_difference_of_another_model(base: Path, tmp_path: Path) -> None:
    ship(LONGFORMER, base)
    model, path = untrained(BERT, base), shipped.FOLDER / LONGFORMER / DIFFERENCE_FILE
    before = {key: value.clone() for key, value in model.state_dict().items()}
    for keep in (lambda key: True, lambda key: not key.endswith("layer.0.output.dense.weight.left")):
        factors = {key: value for key, value in load_file(path).items() if "global" not in key and keep(key)}
        factors["encoder.layer.1.output.dense.weight.left"] = torch.ones(5, 2, dtype=torch.float16)
        save_file(factors, tmp_path / "other")
        with pytest.raises(ModelError, match=r"other does not fit encoder\.layer\."):
            add_difference(model, tmp_path / "other")
    path.write_bytes(path.read_bytes()[:-100])
    for damaged in (path, tmp_path / "none"):
        with pytest.raises(ModelError, match="Install simlte-st"):
            add_difference(model, damaged)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
