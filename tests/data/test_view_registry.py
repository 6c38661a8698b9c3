"""The views by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from simlte_st.data.rival_views import Crop
from simlte_st.data.view_registry import VIEWS, make_view
from simlte_st.data.views import DocSplit, View
from simlte_st.errors import ConfigurationError

BY_NAME = {view.__name__: view for view in VIEWS.values()}


@pytest.mark.parametrize("name", VIEWS)
def test_views_by_name_are_frozen_dataclasses_of_the_protocol(name: str) -> None:
    view = make_view(name)
    assert type(view) is VIEWS[name]
    assert isinstance(view, View)
    assert dataclasses.is_dataclass(view)
    assert type(view).__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert view == make_view(name)
    assert hash(view) == hash(make_view(name))
    assert eval(repr(view), BY_NAME) == view


def test_settings_reach_the_view() -> None:
    assert make_view("docsplit", p=0.4, unit="paragraph") == DocSplit(p=0.4, unit="paragraph")
    assert make_view("crop", least=0.1) == Crop(least=0.1)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("simcse", {}, "Unknown view 'simcse': use one of docsplit, identity, crop"),
        ("docsplit", {"probability": 0.5}, "'docsplit' has no setting probability=: it has p=, unit="),
        ("docsplit", {"block": 3}, "block= is for unit='block'"),
        ("identity", {"p": 0.5}, "'identity' has no setting p="),
        ("identity", {"window": "tail"}, "window="),
        ("crop", {"least": 0.0}, "least=0.0"),
        ("crop", {"least": 0.6}, "least=0.6"),
        ("crop", {"most": 1.1}, "most=1.1"),
        ("inverse-cloze", {"keep_sentence": 1.5}, "keep_sentence=1.5"),
        ("inverse-cloze", {"window": "x"}, "window="),
    ],
)
def test_wrong_names_and_settings_are_refused(name: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make_view(name, **wrong)
