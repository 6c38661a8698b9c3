from __future__ import annotations

import random
from random import Random

import numpy as np
from sentence_transformers import SentenceTransformer

from benchmarks.rivals.stock import TEXT
from benchmarks.rivals.tsdae import DELETED, DenoisingTransform, delete_words
from simlte_st.data import DocSplitTransform
from simlte_st.words.sentences import PunktSegmenter


def test_words_are_deleted_at_the_rate_in_order() -> None:
    sentences = [" ".join(f"w{20 * s + i}" for i in range(20)) + "." for s in range(50)]
    kept = [delete_words(sentences, DELETED, Random(seed)) for seed in range(20)]
    numbers = [[int(word.strip(".")[1:]) for word in text.split() if word.strip(".")] for text in kept]
    assert all(found == sorted(set(found)) for found in numbers)
    assert 0.37 < np.mean([len(found) for found in numbers]) / 1000 < 0.43
    assert delete_words(sentences, DELETED, Random(0)) == kept[0] != kept[1]


def test_damaged_text_and_original_share_a_window(documents: list[str], model: SentenceTransformer) -> None:
    model.max_seq_length = 42
    views = DocSplitTransform(TEXT, model=model, seed=2, segmenter=PunktSegmenter())
    dataset = views.attach(documents).with_transform(DenoisingTransform(views))
    state, numpy_state = random.getstate(), np.random.get_state()[1].tolist()
    first = dataset[:10]
    assert list(first) == ["damaged", "original"], "the loss takes the damaged text first"
    for left, whole in zip(first["damaged"], first["original"], strict=True):
        words = iter(whole.replace(".", " .").split())
        assert all(word in words for word in left.replace(".", " .").split()), "a subsequence"
        assert len(left) < len(whole)
        assert len(whole.split()) == 32, "four sentences of nine tokens fit 40"
    assert dataset[:10] == first
    views.callback.epoch = 1
    other = dataset[:10]
    assert other["damaged"] != first["damaged"]
    assert other["original"] != first["original"]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == (state, numpy_state)
