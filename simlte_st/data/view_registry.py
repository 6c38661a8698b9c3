"""Every view by name: what ``simlte train --view`` and :func:`make_view` know.

A new view is a frozen dataclass that follows :class:`~simlte_st.data.views.View`, and one line in
:data:`VIEWS`. Its fields are options of the command line then, explained by its docstring.
"""

from __future__ import annotations

from dataclasses import fields

from simlte_st.data.rival_views import Crop, Identity, InverseCloze
from simlte_st.data.views import DocSplit, View
from simlte_st.errors import ConfigurationError, did_you_mean

VIEWS: dict[str, type] = {
    "docsplit": DocSplit,
    "identity": Identity,
    "crop": Crop,
    "inverse-cloze": InverseCloze,
}


def make_view(name: str, **settings: object) -> View:
    """Make a view by name.

    Args:
        name: One of :data:`VIEWS`.
        **settings: Fields of that view; the others have its defaults.

    Raises:
        ConfigurationError: An unknown name, a setting that this view does not have, or one out of its range.
    """
    if name not in VIEWS:
        raise ConfigurationError(f"Unknown view {name!r}: use one of {', '.join(VIEWS)}.{did_you_mean(name, VIEWS)}")
    known = [field.name for field in fields(VIEWS[name])]
    for setting in settings:
        if setting not in known:
            raise ConfigurationError(
                f"The view {name!r} has no setting {setting}=: it has {', '.join(f'{each}=' for each in known)}."
            )
    view: View = VIEWS[name](**settings)
    return view
