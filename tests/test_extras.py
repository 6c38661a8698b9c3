from __future__ import annotations

import sys
from pathlib import Path

import pytest

from simlte_st.errors import MissingExtraError
from simlte_st.extras import require


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"'no_such_package' .*tests.*simlte-st\[some\]"):
        require("no_such_package", "some", "the tests")


def test_a_package_that_lacks_its_own_dependency_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "present_package.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        require("present_package", "some", "the tests")
    sys.modules.pop("present_package", None)


def test_an_installed_package_is_returned() -> None:
    assert require("json", "some", "the tests").dumps([1]) == "[1]"
