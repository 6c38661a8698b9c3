from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainingArguments

from simlte_st.training.batching import ConfiguredBatchSampler, DocumentEmbeddings, SimilarBatchSampler


def configured() -> ConfiguredBatchSampler:
    embeddings = DocumentEmbeddings(1_000)
    embeddings.update(np.random.default_rng(0).normal(size=(1_000, 64)))
    return ConfiguredBatchSampler(SimilarBatchSampler, embeddings=embeddings, hardness=0.25, groups=None)


def test_it_makes_the_sampler() -> None:
    made = configured()
    dataset = Dataset.from_dict({"text": ["a"] * 1_000})
    sampler = made(dataset, batch_size=8, drop_last=False, valid_label_columns=[], generator=None, seed=3)
    assert isinstance(sampler, SimilarBatchSampler)
    assert (sampler.batch_size, sampler.seed, sampler.leaf) == (8, 3, 2)
    assert sampler.embeddings is made.settings["embeddings"]


def test_it_is_pickled_as_its_name(tmp_path: Path) -> None:
    name = "ConfiguredBatchSampler(SimilarBatchSampler, embeddings, hardness)"
    made = configured()
    assert repr(made) == name
    assert pickle.loads(pickle.dumps(made)) == name
    arguments = SentenceTransformerTrainingArguments(output_dir=str(tmp_path), batch_sampler=made, report_to="none")
    assert "batch_sampler" not in arguments.to_dict()
    buffer = io.BytesIO()
    torch.save(arguments, buffer)  # as the Trainer does with every checkpoint
    assert buffer.tell() < 20_000


def test_copies_share_the_embeddings(tmp_path: Path) -> None:
    made = configured()
    assert copy.copy(made) is made
    arguments = SentenceTransformerTrainingArguments(output_dir=str(tmp_path), batch_sampler=made, report_to="none")
    assert copy.deepcopy(arguments).batch_sampler is made
