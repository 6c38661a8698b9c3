from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from transformers import TrainerCallback

from simlte_st.data import DocSplitTransform
from simlte_st.errors import ConfigurationError, ResumeError
from simlte_st.training.batching import (
    ConfiguredBatchSampler,
    DocumentEmbeddings,
    EmbeddingRefreshCallback,
    SimilarBatchSampler,
    embed_documents,
)
from simlte_st.training.batching.refresh import EMBEDDINGS_FILE

Train = Callable[..., tuple[Any, list[list[str]]]]


# Embedding.


def test_embeddings_are_those_of_the_texts(model: SentenceTransformer, corpus: Dataset) -> None:
    texts = [" ".join(sentences) for sentences in corpus["sentences"][:]]
    vectors = embed_documents(model, corpus)
    assert vectors.dtype == np.float32
    # The longer ones are tokenized in part only, and all are padded in other company.
    np.testing.assert_allclose(vectors, model.encode(texts), atol=1e-5)
    assert max(map(sum, corpus["tokens"][:])) > 3 * model.max_seq_length
    shown = corpus.with_transform(lambda rows: {"anchor": ["x"] * len(rows["id"])})
    np.testing.assert_array_equal(embed_documents(model, shown), vectors)


def test_many_documents_are_taken_in_parts(
    model: SentenceTransformer, corpus: Dataset, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = embed_documents(model, corpus)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("simlte_st.training.batching.refresh._CHUNK", 10)
    np.testing.assert_allclose(embed_documents(model, corpus, batch_size=3, progress=True), whole, atol=1e-5)
    assert "53/53" in capsys.readouterr().err


def test_fewer_tokens_can_be_read(model: SentenceTransformer, corpus: Dataset) -> None:
    short = embed_documents(model, corpus, max_seq_length=10)
    assert model.max_seq_length == 64
    assert not np.allclose(short, embed_documents(model, corpus), atol=1e-3)
    beginnings = [" ".join(sentences[0].rstrip(".").split()) for sentences in corpus["sentences"][:]]
    np.testing.assert_allclose(short, model.encode(beginnings), atol=1e-5)
    np.testing.assert_array_equal(
        embed_documents(model, corpus, max_seq_length=1_000), embed_documents(model, corpus)
    )  # and not more than the model reads


def test_all_is_left_as_it_was(model: SentenceTransformer, corpus: Dataset) -> None:
    model.train()
    model[1].eval()  # a part that is frozen
    torch.manual_seed(5)
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    modes = [module.training for module in model.modules()]
    vectors = embed_documents(model, corpus)
    assert [module.training for module in model.modules()] == modes
    assert len(set(modes)) == 2
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.random.get_state()[1].tolist() == states[1]
    assert random.getstate() == states[2]
    np.testing.assert_array_equal(embed_documents(model, corpus), vectors)  # no dropout
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())


def test_all_is_left_as_it_was_after_an_error(
    model: SentenceTransformer, corpus: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        model.eval()
        raise RuntimeError("no memory")

    model.train()
    monkeypatch.setattr(model, "encode", fail)
    with pytest.raises(RuntimeError, match="no memory"):
        embed_documents(model, corpus, max_seq_length=10)
    assert model.training
    assert model.max_seq_length == 64


# In the Trainer.


class Run:
    """What a training run needs, and what it did."""

    def __init__(self, corpus: Dataset, every: int | None = 1, given: np.ndarray | None = None) -> None:
        self.corpus = corpus
        self.every = every
        self.embeddings = DocumentEmbeddings(len(corpus))
        if given is not None:
            self.embeddings.update(given)
        self.codes: dict[int, np.ndarray] = {}
        self.callback: EmbeddingRefreshCallback

    def __call__(self, model: SentenceTransformer, views: DocSplitTransform) -> tuple[Any, list[TrainerCallback]]:
        self.callback = EmbeddingRefreshCallback(model, self.corpus, self.embeddings, every=self.every)
        sampler = ConfiguredBatchSampler(
            SimilarBatchSampler, embeddings=self.embeddings, hardness=0.5, groups=np.arange(len(self.corpus)) // 2
        )
        return sampler, [self.callback, Note(self)]


class Note(TrainerCallback):
    """Notes the embeddings that are used in each epoch."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self.run.embeddings.codes is not None
        self.run.codes[int((state.epoch or 0) + 1e-6)] = self.run.embeddings.codes.copy()


def weights(trainer: Any) -> dict[str, torch.Tensor]:
    return dict(trainer.model.state_dict())


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("step", [5, 7, 10])  # seven steps an epoch: in one, between two, in the next
def test_a_resumed_run_sees_the_same_batches(every: int, step: int, corpus: Dataset, train: Train) -> None:
    whole, resumed = Run(corpus, every), Run(corpus, every)
    steps = {"save_steps": step, "num_train_epochs": 3}
    trainer, batches = train(whole, **steps)
    assert len(batches) == 21
    for start in (0, 7, 14):
        assert sorted(row for batch in batches[start : start + 7] for row in batch) == sorted(corpus["id"][:])
    again, rest = train(resumed, resume=step, **steps)
    assert rest == batches[step:]
    for epoch, codes in resumed.codes.items():
        np.testing.assert_array_equal(codes, whole.codes[epoch])
    assert same(weights(again), weights(trainer))


def test_embeddings_follow_the_encoder(corpus: Dataset, train: Train) -> None:
    run = Run(corpus)
    train(run)
    assert run.codes.keys() == {0, 1, 2}
    assert not np.array_equal(run.codes[0], run.codes[1])
    assert not np.array_equal(run.codes[1], run.codes[2])
    seldom = Run(corpus, every=2)
    train(seldom)
    np.testing.assert_array_equal(seldom.codes[0], run.codes[0])  # the model before training
    np.testing.assert_array_equal(seldom.codes[1], run.codes[0])
    assert not np.array_equal(seldom.codes[2], run.codes[0])
    once = Run(corpus, every=None)
    train(once)
    np.testing.assert_array_equal(once.codes[2], run.codes[0])


def test_embeddings_that_are_given_are_the_first(corpus: Dataset, train: Train) -> None:
    given = np.random.default_rng(0).normal(size=(len(corpus), 12))
    run = Run(corpus, given=given)
    codes = run.embeddings.codes.copy()  # type: ignore[union-attr]
    train(run)
    np.testing.assert_array_equal(run.codes[0], codes)
    assert run.codes[1].shape == (53, 32)
    kept = Run(corpus, every=None, given=given)
    train(kept)
    np.testing.assert_array_equal(kept.codes[2], codes)


def test_looking_at_the_documents_changes_nothing_else(corpus: Dataset, train: Train) -> None:
    # With dropout on, a single number drawn would show. hardness=0: the batches do not depend on the embeddings.
    def without(model: SentenceTransformer, views: DocSplitTransform) -> tuple[Any, list[TrainerCallback]]:
        return ConfiguredBatchSampler(SimilarBatchSampler, hardness=0, max_similarity=None), []

    def with_refresh(model: SentenceTransformer, views: DocSplitTransform) -> tuple[Any, list[TrainerCallback]]:
        embeddings = DocumentEmbeddings(len(corpus))
        sampler = ConfiguredBatchSampler(SimilarBatchSampler, embeddings=embeddings, hardness=0, max_similarity=None)
        return sampler, [EmbeddingRefreshCallback(model, corpus, embeddings)]

    first, batches = train(without)
    second, others = train(with_refresh)
    assert batches == others
    assert same(weights(first), weights(second))


def test_checkpoints_hold_the_embeddings_once(corpus: Dataset, train: Train, tmp_path: Path) -> None:
    train(Run(corpus))
    checkpoint = tmp_path / "run" / "checkpoint-5"
    assert (checkpoint / EMBEDDINGS_FILE).stat().st_size < 53 * 32 * 2 + 500
    assert not list(checkpoint.glob(".*"))
    (checkpoint / EMBEDDINGS_FILE).unlink()
    with pytest.raises(ResumeError, match=f"{EMBEDDINGS_FILE} is missing"):
        train(Run(corpus), resume=5)


def test_bad_settings(model: SentenceTransformer, corpus: Dataset) -> None:
    with pytest.raises(ConfigurationError, match="every=0"):
        EmbeddingRefreshCallback(model, corpus, DocumentEmbeddings(len(corpus)), every=0)
    with pytest.raises(ConfigurationError, match="The corpus has 53 documents, embeddings=4"):
        EmbeddingRefreshCallback(model, corpus, DocumentEmbeddings(4))
