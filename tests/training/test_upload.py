"""Uploading a finished model: what is checked before, what goes along, and what is said where it fails."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.errors import HubError
from simlte_st.training import check_upload, result


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


@pytest.mark.parametrize("private", [True, False])
def test_the_folder_goes_with_its_card_and_no_path_of_this_machine(hub: Hub, finished: Path, private: bool) -> None:
    before = {path.name: path.read_bytes() for path in finished.glob("*.*")}
    assert result.upload(finished, "ada/model", private=private) == "https://hub/ada/model/commit/1"
    assert [(made["repo_id"], made["private"]) for made in hub.created] == [("ada/model", private)]
    assert 'SentenceTransformer("ada/model")' in hub.files["README.md"]
    run = json.loads(hub.files["simlte.json"])
    assert run["steps"] == 3
    assert "/" not in run["base"]
    assert {path.name: path.read_bytes() for path in finished.glob("*.*")} == before


def test_a_failed_upload_leaves_the_model_and_says_how_to_try_again(hub: Hub, finished: Path) -> None:
    hub.failure = TimeoutError("the line is dead")
    with pytest.raises(HubError, match="TimeoutError") as error:
        result.upload(finished, "ada/model")
    assert f"hf upload ada/model {finished} --private" in str(error.value)
    assert SentenceTransformer(str(finished), device="cpu").max_seq_length
