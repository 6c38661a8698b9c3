"""Upload of the finished model to the Hugging Face Hub, and the check before training that it is possible."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from huggingface_hub import HfApi

from simlte_st.errors import HubError
from simlte_st.files import RUN_FILE, read_json, write_json
from simlte_st.models.cards import MODEL_ID
from simlte_st.models.names import shown_base
from simlte_st.models.sentence_transformer import SentenceTransformer


def check_upload(name: str, *, private: bool = True) -> None:
    """Check, before any work, that a model can be uploaded under a name, by making its repository.

    Args:
        name: The repository, ``OWNER/NAME``.
        private: Make a new repository private.

    Raises:
        HubError: The name is not valid, there is no token that can write to it, or the Hub cannot be reached.
    """
    try:
        HfApi().create_repo(repo_id=name, private=private, exist_ok=True)
    except Exception as error:  # each has its own class: no network, no token, no right, a bad name
        raise HubError(
            f"push_to_hub={name!r}: nothing could be uploaded ({_why(error)}). Log in with hf auth login."
        ) from error


def upload(output: Path, name: str, *, private: bool = True) -> str:
    """Upload a finished model with its card, which names a local base without its folder."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(shutil.copytree(output, Path(folder, "model")))
            run = read_json(path / RUN_FILE)
            write_json(path / RUN_FILE, {**run, "base": shown_base(run["base"])})
            card = path / "README.md"
            card.write_text(card.read_text(encoding="utf-8").replace(MODEL_ID, name), encoding="utf-8")
            model = SentenceTransformer(path, device="cpu")
            return str(model.push_to_hub(name, private=private, local_model_path=str(path), exist_ok=True))
    except Exception as error:  # whatever it is: hours of training must not end in a traceback
        command = f"hf upload {name} {output} --private" if private else f"hf upload {name} {output}"
        raise HubError(
            f"The model is finished in {output}, but was not uploaded: {_why(error)}\nTry again with: {command}"
        ) from error


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"
