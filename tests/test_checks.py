"""Numbers and words that are settings."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import WORDS

from simlte_st import compare, explore, train
from simlte_st.checks import LARGEST_COUNT, LARGEST_SEED, check_choice, check_count, check_number, check_seed
from simlte_st.data import dedupe
from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.evaluate import EvaluationDocuments, evaluate_models
from simlte_st.models.lsa import append_lsa


@pytest.mark.parametrize("value", [0, 0.5, 1, np.float32(0.25), np.int64(1)])
def test_numbers_in_their_range(value: Any) -> None:
    check_number("x", value)
    check_number("x", value, least=0, most=1)
    check_number("x", value, above=-1, below=2)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", None, True, [1.0]])
def test_what_is_no_finite_number_is_in_no_range(value: Any) -> None:
    for limits in ({}, {"least": 0}, {"most": 9}, {"above": -9, "below": 9}):
        with pytest.raises(ConfigurationError, match=r"^x=.*: must be a number"):
            check_number("x", value, **limits)


def test_the_range_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"^rate=0: must be a number, above 0 and at most 1,000\.$"):
        check_number("rate", 0, above=0, most=1000)
    with pytest.raises(ConfigurationError, match=r"^rate=1: must be a number, at least 0 and below 1\.$"):
        check_number("rate", 1, least=0, below=1)
    with pytest.raises(ConfigurationError, match=r"^n=0: must be a whole number, at least 1\.$"):
        check_count("n", 0)
    with pytest.raises(ConfigurationError, match=r"must be a whole number, from 1 to 2,147,483,647\.$"):
        check_count("n", LARGEST_COUNT + 1)


@pytest.mark.parametrize("value", [1.0, "1", None, True, math.nan])
def test_whole_numbers_are_integers(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"n=.*: must be a whole number"):
        check_count("n", value)
    check_count("n", np.int32(1))


def test_seeds() -> None:
    for seed in (0, LARGEST_SEED):
        check_seed(seed)
    for seed in (-1, LARGEST_SEED + 1):
        with pytest.raises(ConfigurationError, match=f"^seed={seed}: "):
            check_seed(seed)


def test_a_word_is_one_of_some() -> None:
    check_choice("window", "head", ("random", "head", "spread"))
    for value in ("tail", None, ["head"]):
        said = f"window={value!r}: use 'random', 'head' or 'spread'."
        with pytest.raises(ConfigurationError, match=f"^{re.escape(said)}$"):
            check_choice("window", value, ("random", "head", "spread"))
    with pytest.raises(ConfigurationError, match="use 'a' or 'b'"):
        check_choice("x", "c", {"a": 1, "b": 2})


@pytest.mark.parametrize("seed", [-1, 1.5, float("nan"), "x", 2**40, True])
def test_a_seed_that_is_none_is_refused_by_all_that_take_one(seed: Any, encoder_path: Path, tmp_path: Path) -> None:
    texts = [f"Ba bun {word}. Bo {word}." for word in WORDS[:12]]
    model = SentenceTransformer(str(encoder_path), device="cpu")
    told = pytest.raises(ConfigurationError, match=f"seed={seed}: must be a whole number")
    with told:
        explore(model, texts, output=tmp_path / "p.html", seed=seed)
    with told:
        dedupe(texts, tmp_path / "k.jsonl", seed=seed)
    with told:
        append_lsa(encoder_path, texts, tmp_path / "m", dimension=4, seed=seed)
    with told:
        compare(texts, [encoder_path], seed=seed)
    with told:
        train(texts, tmp_path / "t", base=encoder_path, seed=seed)
    with told:
        evaluate_models({"m": model}, EvaluationDocuments.divide(texts), seed=seed)
    assert not any(tmp_path.iterdir())
