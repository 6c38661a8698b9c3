"""Upload of the finished model to the Hugging Face Hub, and the check before training that it is possible."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from huggingface_hub import HfApi, get_token
from huggingface_hub.utils import HFValidationError, validate_repo_id  # type: ignore[attr-defined]

from simlte_st.errors import ConfigurationError, HubError
from simlte_st.files import RUN_FILE, read_json, write_json
from simlte_st.models.cards import MODEL_ID
from simlte_st.models.names import shown_base
from simlte_st.models.sentence_transformer import SentenceTransformer


def check_upload(name: str) -> None:
    """Check, before any work, that the user's token can upload a model under a name.

    Args:
        name: The repository, ``OWNER/NAME``.

    Raises:
        ConfigurationError: The name is not valid, or its owner is another account.
        HubError: There is no token, it cannot write, or the Hub cannot be reached.
    """
    try:
        validate_repo_id(name)
        if name.count("/") != 1:
            raise HFValidationError("the owner is missing")
    except HFValidationError as error:
        raise ConfigurationError(f"push_to_hub={name!r}: use OWNER/NAME, the name on the Hub ({error}).") from None
    if get_token() is None:
        raise HubError("An upload needs a token of the Hub: log in with hf auth login, or set HF_TOKEN.")
    try:
        account = HfApi().whoami()
    except Exception as error:  # no network, a token that is not valid: each library version has its own class
        raise HubError(f"The Hub does not confirm the token, so nothing could be uploaded: {_why(error)}") from error
    if account.get("auth", {}).get("accessToken", {}).get("role") == "read":
        raise HubError("The token can only read: make one that can write, and log in with it (hf auth login).")
    owners = [account["name"], *(group["name"] for group in account.get("orgs", []))]
    if name.split("/")[0].lower() not in map(str.lower, owners):
        raise ConfigurationError(
            f"push_to_hub={name!r}: the token belongs to {owners[0]}; use one of {', '.join(owners)}."
        )


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
