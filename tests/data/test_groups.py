from __future__ import annotations

from simlte_st.data.groups import groups


def test_groups_bound_items_and_their_size() -> None:
    texts = ["x" * size for size in (4, 4, 4, 50, 1, 1, 1, 1)]
    found = list(groups(iter(texts), len, 10, 3))
    assert [text for group in found for text in group] == texts
    assert [[len(text) for text in group] for group in found] == [[4, 4], [4], [50], [1, 1, 1], [1]]
    assert [len(group) for group in groups(texts, len, 10)] == [2, 1, 1, 4]
    assert list(groups([], len, 10)) == []
