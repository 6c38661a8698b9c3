"""Models of other makes: each works in every command, or one sentence says before any work what is missing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_tokenizer
from transformers import LlamaConfig, LlamaModel, PreTrainedModel, PreTrainedTokenizerFast, T5Config, T5EncoderModel

import simlte_st
from simlte_st.cli.main import main
from simlte_st.errors import ModelError
from simlte_st.models.base import load_model
from simlte_st.models.encode import encode_documents
from simlte_st.models.routes import side_of
from simlte_st.search import Index

PROMPT = "ba bei bo un: "  # four tokens and a colon
COMMANDS = (
    "encode {model} {docs} --output {out}.parquet",
    "index {model} {docs} --output {out}",
    "train {docs} --base {model} --output {out} --max-steps 1 --held-out 0 --batch-size 8",
    "convert {model} --lsa {docs} --dimension 4 --output {out}",
    "evaluate {model} --data {docs} --label label --draws 2 --head logistic",
)


def bert(path: Path, **options: Any) -> list[torch.nn.Module]:
    return [Transformer(str(path)), Pooling(32, "mean")]


def unlimited_tokenizer(pad: bool = True) -> PreTrainedTokenizerFast:
    tokenizer = make_tokenizer()
    tokenizer.model_max_length = int(1e30)
    tokenizer.init_kwargs.pop("model_max_length")
    if not pad:
        tokenizer.pad_token = None
    return tokenizer


def saved(folder: Path, encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Path:
    encoder.save_pretrained(folder / "raw")
    tokenizer.save_pretrained(folder / "raw")
    model = SentenceTransformer(modules=[Transformer(str(folder / "raw")), Pooling(32, "mean")], device="cpu")
    model.save_pretrained(str(folder / "model"))
    return folder / "model"


def t5(folder: Path, bert_path: Path) -> Path:
    config = T5Config(vocab_size=140, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=4)
    return saved(folder, T5EncoderModel(config), unlimited_tokenizer())


def llama(folder: Path, bert_path: Path, pad: bool = True) -> Path:
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = LlamaConfig(**sizes, vocab_size=140, max_position_embeddings=512, bos_token_id=2, eos_token_id=3)
    return saved(folder, LlamaModel(config), unlimited_tokenizer(pad))


def unpadded(folder: Path, bert_path: Path) -> Path:
    return llama(folder, bert_path, pad=False)


def made(folder: Path, modules: list[torch.nn.Module], **options: Any) -> Path:
    SentenceTransformer(modules=modules, device="cpu", **options).save_pretrained(str(folder / "model"))
    return folder / "model"


def prompted(folder: Path, bert_path: Path) -> Path:
    prompts = {"query": "cis: ", "passage": PROMPT}
    return made(folder, bert(bert_path), prompts=prompts, default_prompt_name="passage")


def truncated(folder: Path, bert_path: Path) -> Path:
    return made(folder, bert(bert_path), truncate_dim=12)


def dense(folder: Path, bert_path: Path) -> Path:
    return made(folder, [*bert(bert_path), Dense(32, 20)], truncate_dim=12)


def full_prompt(folder: Path, bert_path: Path) -> Path:
    return made(folder, bert(bert_path), prompts={"document": "ba " * 70})


def router(folder: Path, bert_path: Path) -> Path:
    sides = bert(bert_path), bert(bert_path)
    with torch.no_grad():
        next(sides[0][0].parameters()).mul_(2)
    return made(folder, [Router.for_query_document(*sides)])


def two_ends(folder: Path, bert_path: Path) -> Path:
    routes: Any = {"query": [Dense(32, 20)], "document": [Dense(32, 20)]}
    return made(folder, [*bert(bert_path), Router(routes)])


@pytest.mark.parametrize(
    ("make", "command"),
    [
        pytest.param(make, command, id=f"{make.__name__}-{command.split()[0]}")
        for make in (t5, llama, prompted, truncated, dense, router, two_ends)
        for command in (
            COMMANDS if make in (t5, dense) else COMMANDS[3:]
        )  # test_bases has the first three of the others
    ],
)
def test_it_works(
    make: Callable[[Path, Path], Path], command: str, docs: Path, bert_path: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    model, out = make(tmp_path, bert_path), tmp_path / "out"
    assert main(shlex.split(command.format(model=model, docs=docs, out=out) + " --quiet")) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "000,000,000" not in said
    if command.startswith(("train", "convert")):
        finished = load_model(out).model
        own = {"truncated": 12, "dense": 12, "two_ends": 20}.get(make.__name__, 32)
        assert len(finished.encode("ba bun")) == own + 4 * command.startswith("convert")
        assert finished.get_embedding_dimension() == own + 4 * command.startswith("convert")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (unpadded, "has no padding token"),
        (full_prompt, "there is no room for a text"),
    ],
    ids=["unpadded", "full_prompt"],
)
def test_what_is_missing_is_said_before_any_work(
    make: Callable[[Path, Path], Path], message: str, docs: Path, bert_path: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    model, out = make(tmp_path, bert_path), tmp_path / "out"
    for command in (*COMMANDS, "convert {model} --backbone chunk-mean --output {out}"):
        assert main(shlex.split(command.format(model=model, docs=docs, out=out) + " --quiet")) == 1
        said = " ".join(capsys.readouterr().err.split())
        assert message in said, command
        assert "should not happen" not in said
        assert not out.exists()


@pytest.mark.parametrize("make", [router, two_ends])
@pytest.mark.parametrize("named", [True, False])
def test_separate_modules_are_for_questions_and_documents(
    make: Callable[[Path, Path], Path], named: bool, docs: Path, bert_path: Path, tmp_path: Path
) -> None:
    folder = make(tmp_path, bert_path)
    model = SentenceTransformer(str(folder), device="cpu")
    encode_documents(load_model(folder).model if named else model, docs, tmp_path / "v.parquet")
    vectors = np.array(pq.read_table(tmp_path / "v.parquet")["vector"].to_pylist())
    texts = [json.loads(line)["text"] for line in docs.read_text().splitlines()]
    np.testing.assert_allclose(vectors, model.encode_document(texts), atol=1e-6)
    assert not np.allclose(vectors, model.encode_query(texts), atol=1e-3)
    given = folder if named else model
    [hit] = Index.create(tmp_path / "ix", given).add(docs) and Index.open(tmp_path / "ix", given).search(
        texts[0], mode="dense", top_k=1
    )
    assert hit.cosine == pytest.approx(
        float(np.max([a @ b for a in [unit(model.encode_query(texts[0]))] for b in map(unit, vectors)])), abs=1e-5
    )
    with torch.no_grad():  # another model for questions is another model
        next(side_of(model, "query").parameters()).add_(1)
    with pytest.raises(ModelError, match="another model"):
        Index.open(tmp_path / "ix", model).load()


@pytest.mark.parametrize("command", [*COMMANDS[2:4], "convert {model} --backbone chunk-mean --output {out}"])
def test_what_reads_documents_is_trained_and_the_result(
    command: str, docs: Path, bert_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, out = router(tmp_path, bert_path), tmp_path / "out"
    assert main(shlex.split(command.format(model=folder, docs=docs, out=out) + " --quiet")) == 0
    assert "has modules of their own for queries (Router)" in caplog.text
    finished, before = load_model(out), load_model(folder)
    assert finished.other is None
    assert isinstance(finished.model[0], Transformer)
    if not command.startswith("train"):
        vectors = [unit(each.model.encode("ba bun bis")[:32]) for each in (finished, before)]
        np.testing.assert_allclose(*vectors, atol=1e-6)


def unit(vector: Any) -> np.ndarray:
    return np.asarray(vector) / np.linalg.norm(vector)


def test_prompts_for_documents_and_questions(docs: Path, bert_path: Path, tmp_path: Path) -> None:
    """The prompt called "document" is empty in every saved model, and hides the one that is called "passage"."""
    model = load_model(prompted(tmp_path, bert_path)).model
    report = encode_documents(model, docs, tmp_path / "v.parquet")
    assert (report.truncation.prompt_tokens, report.truncation.budget) == (5, 57)
    vectors = np.array(pq.read_table(tmp_path / "v.parquet")["vector"].to_pylist())
    texts = [json.loads(line)["text"] for line in docs.read_text().splitlines()]
    np.testing.assert_allclose(vectors, model.encode(texts, prompt=PROMPT), atol=1e-6)
    index = Index.create(tmp_path / "ix", model)
    assert index.add(docs).truncation.prompt_tokens == 5
    question = unit(model.encode("ba bun", prompt="cis: "))
    best = max(float(question @ unit(vector)) for vector in vectors)
    assert index.search("ba bun", mode="dense", top_k=1)[0].cosine == pytest.approx(best, abs=1e-5)


def test_training_reads_behind_the_prompt_and_cuts_as_encode_does(
    docs: Path, bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, torch.Tensor]] = []
    forward = SentenceTransformer.forward

    def watched(self: SentenceTransformer, features: dict[str, Any], **options: Any) -> Any:
        if self.training:
            seen.append((features["input_ids"].shape[1], features["input_ids"][0, 1:6]))
        return forward(self, features, **options)

    monkeypatch.setattr(SentenceTransformer, "forward", watched)
    model = prompted(tmp_path, bert_path)
    simlte_st.train(docs, tmp_path / "out", base=model, max_steps=1, held_out=0.0, progress=False)
    prompt = load_model(model).model.tokenizer(PROMPT)["input_ids"][1:6]
    assert len(seen) >= 1
    assert all(ids.tolist() == prompt for _, ids in seen)
    assert max(length for length, _ in seen) <= 64


def test_a_loss_sees_what_encode_gives(docs: Path, bert_path: Path, tmp_path: Path) -> None:
    """Rows of the last module that encode cuts off do not learn; those that it keeps do."""
    folder = dense(tmp_path, bert_path)
    simlte_st.train(
        docs, tmp_path / "out", base=folder, max_steps=2, held_out=0.0, progress=False, learning_rate=1e-3, warmup=0.0
    )
    before, after = (load_model(path).model[2].linear.weight.detach() for path in (folder, tmp_path / "out"))
    assert torch.equal(before[12:], after[12:])
    assert (before[:12] != after[:12]).any()


def test_a_model_without_a_limit_through_our_class(docs: Path, bert_path: Path, tmp_path: Path) -> None:
    folder = t5(tmp_path, bert_path)
    model = simlte_st.SentenceTransformer(str(folder), device="cpu")
    assert model.max_seq_length is None
    short, whole = model.encode(["ba bun " * 40, "ba bun " * 400])
    assert not np.allclose(short, whole)
    np.testing.assert_allclose(whole, SentenceTransformer(str(folder), device="cpu").encode("ba bun " * 400), atol=1e-6)
    model.max_seq_length = 40
    assert model.max_seq_length == 40
    model.max_seq_length = None
    np.testing.assert_allclose(model.encode("ba bun " * 400), whole, atol=1e-6)
