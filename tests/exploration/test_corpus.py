from __future__ import annotations

from exploration_support import documents_with

from simlte_st.data.columns import columns_of
from simlte_st.exploration.corpus import rename_reserved


def test_columns_with_reserved_names_are_renamed() -> None:
    columns = columns_of(documents_with(x=[1, 2], x_=[3, 4], topic=["a", "b"], y_=[5, 6], y=[7, 8]))
    named = rename_reserved(columns)
    assert [column.name for column in named] == ["x_", "x__", "topic_", "y_", "y__"]
    assert [list(column.values) for column in named] == [list(column.values) for column in columns]
