from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformer

from simlte_st.data import Crop, DocSplit, DocSplitTransform
from simlte_st.data.drawing import View
from simlte_st.training.batching import ViewLengths


def views_of(seed: int, budget: int | None) -> DocSplitTransform:
    views = DocSplitTransform(seed=seed)
    views.budget = budget
    return views


@pytest.mark.parametrize("view", [DocSplit(), Crop()])
@pytest.mark.parametrize("epoch", [0, 2])
def test_lengths_are_those_of_the_tokenized_views(
    view: View, epoch: int, model: SentenceTransformer, corpus: Dataset
) -> None:
    views = DocSplitTransform(view, model=model, seed=3)
    lengths = ViewLengths(corpus, views)(epoch)
    assert lengths.shape == (53, 2)
    assert lengths.dtype == np.int64
    pairs = views.draw(corpus[:], epoch)
    tokenized = np.array(
        [
            model.preprocess([text for pair in pairs for text in (pair.anchor, pair.positive)])["attention_mask"]
            .sum(dim=1)
            .tolist()
        ]
    ).reshape(-1, 2)
    if isinstance(view, DocSplit):
        np.testing.assert_array_equal(lengths, tokenized)
        assert lengths.max() == 64
    else:  # cut sentences: their words are counted, and a full stop may stay or go
        assert (abs(lengths - tokenized) <= 8).all()
        assert abs(lengths.mean() - tokenized.mean()) < 2
    assert lengths[:48].std() > 0


def test_epochs_and_seeds_have_their_own_views(corpus: Dataset) -> None:
    lengths = ViewLengths(corpus, views_of(0, 60))
    first = lengths(0)
    assert lengths(0) is first  # drawn once
    assert not np.array_equal(lengths(1), first)
    np.testing.assert_array_equal(lengths(0), first)
    assert not np.array_equal(ViewLengths(corpus, views_of(1, 60))(0), first)
    shown = corpus.with_transform(lambda rows: {"anchor": ["x"] * len(rows["id"])})
    np.testing.assert_array_equal(ViewLengths(shown, views_of(0, 60))(0), first)


def test_nothing_is_cut_without_a_budget(corpus: Dataset) -> None:
    lengths = ViewLengths(corpus, views_of(0, None), special_tokens=3)(0)
    assert (lengths.sum(axis=1) == np.array([sum(tokens) for tokens in corpus["tokens"][:]]) + 6).all()


def test_counting_is_not_drawing(corpus: Dataset) -> None:
    views = views_of(0, 60)
    ViewLengths(corpus, views)(4)
    assert (views._drawn, views.callback.epoch) == (0, 0)
