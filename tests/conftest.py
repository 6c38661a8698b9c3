"""Fixtures: tiny models and documents, built without downloads."""

from __future__ import annotations

import os

# Set before torch is imported: several threads slow down small operations and parallel tests on few cores.
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
from support import load_encoder, make_document, make_static_model, make_tokenizer
from transformers import BertConfig, BertForMaskedLM, set_seed
from transformers.utils import logging as transformers_logging

from simlte_st.data import Document

LIBRARIES = ("simlte_st", "sentence_transformers", "transformers", "huggingface_hub", "datasets")

# Background jobs of a shell and their children ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Use the same examples everywhere and no deadline, so that failures are reproducible.
settings.register_profile("simlte_st", derandomize=True, deadline=None)
settings.load_profile("simlte_st")


def pytest_collection_finish() -> None:
    """Exclude imported modules from garbage collection, because the Trainer collects fully after each run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def templates() -> Iterator[None]:
    """Compile each template once; every saved model and checkpoint renders a model card."""
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
    """Return the root logger and those of this package and its libraries, by name."""
    named = {
        name: logger for name, logger in logging.root.manager.loggerDict.items() if name.split(".")[0] in LIBRARIES
    }
    return {"": logging.root} | {name: logger for name, logger in named.items() if isinstance(logger, logging.Logger)}


@pytest.fixture(autouse=True)
def process_state() -> Iterator[None]:
    """Restore process-wide state after each test: loggers, environment variables, progress bars and threads.

    Scripts and commands change logger levels as if they owned the process. pytest itself restores warning filters.
    """
    state = {name: (log.level, log.propagate, log.disabled, [*log.handlers]) for name, log in loggers().items()}
    disabled, bars = logging.root.manager.disable, transformers_logging.is_progress_bar_enabled()
    environment, threads, dtype = dict(os.environ), torch.get_num_threads(), torch.get_default_dtype()
    yield
    for name, log in loggers().items():
        level, log.propagate, log.disabled, log.handlers[:] = state.get(name, (logging.NOTSET, True, False, []))
        log.setLevel(level)
    logging.disable(disabled)
    (transformers_logging.enable_progress_bar if bars else transformers_logging.disable_progress_bar)()
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)
    torch.set_num_threads(threads)
    torch.set_default_dtype(dtype)


@pytest.fixture(autouse=True)
def seeds() -> None:
    """Seed all random generators before each test, so that results depend on neither order nor process."""
    set_seed(0)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate home per test, with its own models and caches."""
    path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("SIMLTE_ST_HOME", str(path))
    return path


@pytest.fixture(scope="session")
def documents() -> list[str]:
    """48 documents of 12 sentences."""
    return [make_document(number) for number in range(48)]


@pytest.fixture
def corpus(documents: list[str]) -> list[Document]:
    """The documents with ids, in three classes."""
    return [Document(f"d{index}", text, f"class {index % 3}") for index, text in enumerate(documents)]


@pytest.fixture(scope="session")
def bert_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT checkpoint with an MLM head: 2 layers, 32 dimensions, 64 tokens."""
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
    """A sentence encoder built from the tiny BERT, with mean pooling and no MLM head."""
    path = tmp_path_factory.mktemp("models") / "tiny-encoder"
    load_encoder(bert_path).save_pretrained(str(path))
    return path


@pytest.fixture
def model(encoder_path: Path) -> SentenceTransformer:
    """A fresh tiny sentence encoder, on the CPU."""
    torch.manual_seed(0)
    return SentenceTransformer(str(encoder_path), device="cpu")


@pytest.fixture(scope="session")
def static_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny static model saved by sentence-transformers: one 32-dimensional vector per word."""
    path = tmp_path_factory.mktemp("models") / "tiny-static"
    make_static_model().save_pretrained(str(path))
    return path


@pytest.fixture
def static_model() -> SentenceTransformer:
    """A fresh tiny static model."""
    return make_static_model()
