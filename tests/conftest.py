"""Fixtures: tiny models and documents, built without downloads."""

from __future__ import annotations

import os

# Before torch is imported anywhere: many small operations are slower with several threads, and so are several tests
# at once on few cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import functools
import gc
import logging
import signal
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
import torch
from hypothesis import settings
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_document, make_static_model, make_tokenizer
from transformers import BertConfig, BertForMaskedLM, set_seed
from transformers.utils import logging as transformers_logging

LIBRARIES = ("simlte_st", "sentence_transformers", "transformers", "huggingface_hub", "datasets")

# What a shell starts in the background ignores Ctrl-C, and so do its children: tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples everywhere, and a busy machine may take its time: a failure is one that comes again.
settings.register_profile("simlte_st", derandomize=True, deadline=None)
settings.load_profile("simlte_st")


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was imported: the Trainer asks for a full collection at each end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def templates() -> Iterator[None]:
    """Compile a template once: each save of a model, and so each checkpoint, renders the card's again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja2.Environment, "compile", functools.lru_cache(maxsize=8)(jinja2.Environment.compile))
        yield


@pytest.fixture(autouse=True, scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the shared caches out of the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMLTE_ST_HOME", str(tmp_path_factory.mktemp("home")))
        yield


def loggers() -> dict[str, logging.Logger]:
    """Return the root logger and those of this package and the libraries around it, by name."""
    known = {name: each for name, each in logging.root.manager.loggerDict.items() if isinstance(each, logging.Logger)}
    return {"": logging.root} | {name: each for name, each in known.items() if name.split(".")[0] in LIBRARIES}


@pytest.fixture(autouse=True)
def process_state() -> Iterator[None]:
    """Put back what a test has changed for the whole process: loggers, variables, bars and threads.

    Scripts and commands set the levels of loggers, as of their own process; pytest puts back filters of warnings.
    """
    state = {name: (each.level, each.propagate, each.disabled, [*each.handlers]) for name, each in loggers().items()}
    disabled, bars = logging.root.manager.disable, transformers_logging.is_progress_bar_enabled()
    environment, threads, dtype = dict(os.environ), torch.get_num_threads(), torch.get_default_dtype()
    yield
    for name, each in loggers().items():
        before = state.get(name, (logging.NOTSET, True, False, []))
        each.setLevel(before[0])
        each.propagate, each.disabled, each.handlers[:] = before[1:]
    logging.disable(disabled)
    (transformers_logging.enable_progress_bar if bars else transformers_logging.disable_progress_bar)()
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)
    torch.set_num_threads(threads)
    torch.set_default_dtype(dtype)


@pytest.fixture(autouse=True)
def seeds() -> None:
    """Begin each test with the same random numbers, in whatever order and process it runs."""
    set_seed(0)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own: its models and caches are no other test's."""
    path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("SIMLTE_ST_HOME", str(path))
    return path


@pytest.fixture(scope="session")
def documents() -> list[str]:
    """48 documents of 12 sentences."""
    return [make_document(number) for number in range(48)]


@pytest.fixture(scope="session")
def bert_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT checkpoint with its MLM head, as a raw language model has it: 2 layers, 32 dimensions, 64 tokens."""
    path = tmp_path_factory.mktemp("models") / "tiny-bert"
    tokenizer = make_tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForMaskedLM(
            BertConfig(
                vocab_size=len(tokenizer),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
                max_position_embeddings=64,
            )
        )
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def encoder_path(bert_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence encoder made of the tiny BERT, with mean pooling and without an MLM head."""
    path = tmp_path_factory.mktemp("models") / "tiny-encoder"
    transformer = Transformer(str(bert_path))
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save_pretrained(str(path))
    return path


@pytest.fixture
def model(encoder_path: Path) -> SentenceTransformer:
    """A fresh tiny sentence encoder, on the CPU."""
    torch.manual_seed(0)
    return SentenceTransformer(str(encoder_path), device="cpu")


@pytest.fixture(scope="session")
def static_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny static embedding as sentence-transformers saves it: a vector of 32 dimensions for each word."""
    path = tmp_path_factory.mktemp("models") / "tiny-static"
    make_static_model().save_pretrained(str(path))
    return path


@pytest.fixture
def static_model() -> SentenceTransformer:
    """A fresh tiny static embedding."""
    return make_static_model()
