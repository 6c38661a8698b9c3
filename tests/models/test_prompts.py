"""All commands that measure, compare or train read documents with the same prompt as encode."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support import load_encoder

from simlte_st.cli.main import main
from simlte_st.compat import view_budget
from simlte_st.evaluation import bench
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.models.limits import Truncation
from simlte_st.models.loading import load_model
from simlte_st.models.names import usage_example

PROMPT = "ba bei bo bun: "  # four tokens and a colon


@pytest.fixture(scope="module")
def prompted(bert_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base with E5's prompt names, no default prompt, and an empty prompt "document"."""
    path = tmp_path_factory.mktemp("models") / "prompted"
    load_encoder(bert_path, prompts={"query": "cis: ", "passage": PROMPT}).save_pretrained(str(path))
    return path


@pytest.mark.parametrize(
    "command",
    [
        "index {model} {docs} --output {out} --parts",
        "compare {docs} {model}",
        "evaluate {model} --data {docs} --base {model} --label label --draws 2",
        "train {docs} --base {model} --output {out} --max-steps 2 --batch-size 8 --max-length base --held-out 0",
    ],
    ids=lambda command: " ".join(command.split()[:1] + command.split()[-1:]),
)
def test_every_command_uses_the_document_prompt(
    command: str, docs: Path, prompted: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    tokenizer, seen = load_model(prompted).model.tokenizer, []
    forward = SentenceTransformer.forward

    def watched(self: SentenceTransformer, features: dict[str, Any], **options: Any) -> Any:
        if "offsets" not in features:
            ids = features["input_ids"]
            # Ignore the texts of sentence-transformers' model card and of the check of the weights.
            seen.extend(ids[(ids != tokenizer.unk_token_id).all(1), 1:6].tolist())
        return forward(self, features, **options)

    monkeypatch.setattr(SentenceTransformer, "forward", watched)
    monkeypatch.setattr(bench, "OWN_STATIC", str(static_path))
    words = shlex.split(command.format(model=prompted, docs=docs, out=tmp_path / "out"))
    assert main([*words, "--quiet"]) == 0, capsys.readouterr().err
    assert len(seen) >= 16
    prompt = tokenizer(PROMPT)["input_ids"][1:-1]
    assert all(each == prompt for each in seen)


@pytest.mark.parametrize(
    ("prompts", "default", "named"),
    [
        ({"passage": PROMPT}, None, "passage"),
        ({"document": "title: none | text: ", "query": "q: "}, None, "document"),
        ({"passage": PROMPT}, "passage", None),
        ({"query": "q: "}, None, None),
        ({"Clustering": "c: "}, "Clustering", None),
        ({}, None, None),
    ],
)
def test_usage_example_gives_the_same_vectors(
    prompts: dict[str, str], default: str | None, named: str | None, bert_path: Path, tmp_path: Path
) -> None:
    load_encoder(bert_path, prompts=prompts, default_prompt_name=default).save_pretrained(str(tmp_path / "model"))
    lines = usage_example(tmp_path / "model").splitlines()
    assert lines[-1].endswith("])" if named is None else f'], prompt_name="{named}")')
    values: dict[str, Any] = {}
    exec("\n".join(line.strip() for line in lines), values)
    model = load_model(tmp_path / "model").model
    np.testing.assert_allclose(
        values["vectors"], encode_texts(model, ["A long document ...", "Another one ..."]), atol=1e-5
    )


def test_prompt_takes_the_same_tokens_everywhere(prompted: Path) -> None:
    model = load_model(prompted).model
    assert view_budget(model) == Truncation.of(model).budget == 64 - 2 - 5
    assert torch.equal(
        model.preprocess(["bo " * 57], prompt=PROMPT)["input_ids"],
        model.preprocess(["bo " * 99], prompt=PROMPT)["input_ids"],
    )
