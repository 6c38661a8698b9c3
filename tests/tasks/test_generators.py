from __future__ import annotations

import random

import numpy as np
import pytest
import torch

pytest.importorskip("mteb")
from simlte_st.tasks.generators import kept_generators


def drawn() -> list[float]:
    return [random.random(), float(np.random.rand()), float(torch.rand(()))]


@pytest.mark.parametrize("raises", [False, True])
def test_what_is_drawn_next_does_not_depend_on_the_block(raises: bool) -> None:
    with kept_generators():
        expected = drawn()
    try:
        with kept_generators():
            random.seed(42)
            np.random.seed(42)
            torch.manual_seed(42)
            if raises:
                raise KeyError
    except KeyError:
        pass
    assert drawn() == expected
