"""The result of a run in words, and its upload: what is checked before, what goes along, and what fails."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.data.corpus import CorpusReport, Coverage
from simlte_st.errors import HubError
from simlte_st.models.truncation import Truncation
from simlte_st.training import Preset, TrainingResult, check_upload
from simlte_st.training.result import upload


def made(**options: Any) -> TrainingResult:
    return TrainingResult(
        output=Path("model"), steps=5, seconds=20.0, documents_per_second=8.0, preset=Preset(), dtype="float32",
        read={"skipped": {"empty": 3}}, corpus=CorpusReport(documents=52), coverage=Coverage(52, 40, 1000, 220, 52),
        **options,
    )  # fmt: skip


def test_a_result_is_printed_in_five_lines_and_a_table() -> None:
    truncation = Truncation(256, texts=52, tokens=1000, cut_texts=47, cut_tokens=200, model="some/where")
    gain = {"summary": "No difference.", "table": "| a | b |\n|---|--:|"}
    result = made(kept="base", gain=gain, truncation=truncation)
    lines = str(result).splitlines()
    assert lines[5:] == ["", *gain["table"].splitlines()]
    assert lines[0].endswith("Left out: empty (3).")
    assert lines[2:4] == f"{truncation.summary()} {truncation.advice}".splitlines()
    assert lines[4].startswith("No difference.")
    assert "holds the untrained base" in lines[4]
    assert result.to_dict()["truncation"]["model"] == "model", "its name, and not where it lies"


class Hub:
    """What stands for ``HfApi``: it keeps what it gets, and lets only Ada make repositories."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.created: list[dict[str, Any]] = []
        self.files: dict[str, str] = {}

    def __call__(self, **options: Any) -> Hub:
        return self

    def create_repo(self, **options: Any) -> Any:
        if not options["repo_id"].startswith("ada/"):
            raise PermissionError("403 Forbidden\nwith details")
        self.created.append(options)
        return SimpleNamespace(repo_id=options["repo_id"])

    def upload_folder(self, folder_path: str, **options: Any) -> Any:
        if self.failure is not None:
            raise self.failure
        self.files = {
            path.name: path.read_text() for path in Path(folder_path).glob("*.*") if path.suffix != ".safetensors"
        }
        return SimpleNamespace(commit_url=f"https://hub/{options['repo_id']}/commit/1")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub()
    monkeypatch.setattr("huggingface_hub.HfApi", made)
    monkeypatch.setattr("sentence_transformers.base.model.HfApi", made)
    return made


@pytest.fixture
def finished(encoder_path: Path, tmp_path: Path) -> Path:
    """A model's folder with the account of its run."""
    path = tmp_path / "finished"
    model = SentenceTransformer(str(encoder_path), device="cpu")
    model.save_pretrained(str(path))
    (path / "simlte.json").write_text(json.dumps({"base": str(encoder_path), "steps": 3}))
    return path


def test_a_place_that_cannot_be_written_to_is_told_before_training(hub: Hub) -> None:
    check_upload("ada/model", private=False)
    assert hub.created == [{"repo_id": "ada/model", "private": False, "exist_ok": True}]
    with pytest.raises(HubError, match=r"push_to_hub='someone/model'.*PermissionError: 403 Forbidden\)"):
        check_upload("someone/model")


def test_the_folder_goes_with_its_card_and_no_path_of_this_machine(hub: Hub, finished: Path) -> None:
    before = {path.name: path.read_bytes() for path in finished.glob("*.*")}
    assert upload(finished, "ada/model", private=False) == "https://hub/ada/model/commit/1"
    assert [(made["repo_id"], made["private"]) for made in hub.created] == [("ada/model", False)]
    assert 'SentenceTransformer("ada/model")' in hub.files["README.md"]
    run = json.loads(hub.files["simlte.json"])
    assert run["steps"] == 3
    assert "/" not in run["base"]
    assert {path.name: path.read_bytes() for path in finished.glob("*.*")} == before


def test_a_failed_upload_leaves_the_model_and_says_how_to_try_again(hub: Hub, finished: Path) -> None:
    hub.failure = TimeoutError("the line is dead")
    with pytest.raises(HubError, match="TimeoutError") as error:
        upload(finished, "ada/model")
    assert f"hf upload ada/model {finished} --private" in str(error.value)
    assert SentenceTransformer(str(finished), device="cpu").max_seq_length
