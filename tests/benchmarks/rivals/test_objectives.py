from __future__ import annotations

import pytest

from benchmarks.rivals import RIVALS
from benchmarks.rivals.objectives import get_rival
from simlte_st.errors import ConfigurationError
from simlte_st.training.config import Preset


def test_every_rival_of_the_comparison_is_there_and_says_what_it_is() -> None:
    assert set(RIVALS) == {
        "docsplit", "simcse", "simcse-long", "contriever", "inverse-cloze", "word-deletion",
        "contrastive-tension", "tsdae",
    }  # fmt: skip
    assert len({rival.title for rival in RIVALS.values()}) == len(RIVALS)
    for name, rival in RIVALS.items():
        assert get_rival(name) is rival
        assert rival.source
        assert "pass" in rival.passes
        Preset().changed(**rival.settings)


def test_an_unknown_rival_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"'x'.*docsplit, simcse"):
        get_rival("x")
