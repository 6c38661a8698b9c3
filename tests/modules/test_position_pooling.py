from __future__ import annotations

from functools import partial
from pathlib import Path

import pooling_support
import pytest
import torch
from pooling_support import check_empty_batches, check_flattened, check_round_trip
from sentence_transformers.sentence_transformer.modules import Pooling

from simlte_st.modules import PositionPooling

batch = partial(pooling_support.batch, size=8)


@pytest.fixture
def module() -> PositionPooling:
    return PositionPooling(8, power=0.5, flat=4)


@pytest.mark.parametrize("left", [False, True])
def test_weights_decrease_with_position(module: PositionPooling, left: bool) -> None:
    features = batch((9, 3, 1), left=left)
    found = module(dict(features))
    first = [1.0] * 4 + [(n / 4) ** -0.5 for n in range(5, 10)]
    for row, length in enumerate((9, 3, 1)):
        weights = torch.tensor(first[:length]) / sum(first[:length])
        kept = features["attention_mask"][row].bool()
        tokens = features["token_embeddings"][row][kept]
        torch.testing.assert_close(found["sentence_embedding"][row], weights @ tokens)
        torch.testing.assert_close(found["token_attention"][row][kept], weights)
        assert not found["token_attention"][row][~kept].any()


def test_short_texts_and_zero_power_give_the_stock_mean(module: PositionPooling) -> None:
    module.power = 0.0
    for pooling, lengths in ((PositionPooling(8), (40, 64, 17)), (module, (30, 11))):
        features = batch(lengths)
        stock = Pooling(8, "mean")(dict(features))["sentence_embedding"]
        torch.testing.assert_close(pooling(dict(features))["sentence_embedding"], stock)


def test_flattened_and_empty_batches(module: PositionPooling) -> None:
    check_flattened(module)
    check_empty_batches(module)


def test_save_and_load(bert_path: Path, tmp_path: Path) -> None:
    loaded = check_round_trip(PositionPooling(32, power=0.3, flat=2), bert_path, tmp_path)
    assert (loaded.power, loaded.flat) == (0.3, 2)
