from __future__ import annotations

from simlte_st.data.document import text_key


def test_keys_are_of_the_text() -> None:
    assert text_key("a") == text_key("a") != text_key("b")
    assert text_key("é") == -3811523526868657873  # the same everywhere
    assert -(2**63) <= text_key("a") < 2**63
