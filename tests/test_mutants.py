from __future__ import annotations

from mutants import MUTANTS, ROOT, find_test_file


def test_mutants_match_the_code() -> None:
    gone = [(file, old) for file, _, old, _ in MUTANTS if old not in (ROOT / file).read_text("utf-8")]
    assert not gone, "write these mutants anew for the code as it is"
    for _, tests, _, _ in MUTANTS:
        assert find_test_file(tests).is_file()
