from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from simlte_st.errors import MissingExtraError
from simlte_st.extras import check_installed, install_command, require


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"'no_such_package' .*tests.*\[some\]"):
        require("no_such_package", "some", "the tests")


def test_a_folder_of_its_name_is_not_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "not_a_package").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MissingExtraError, match="not_a_package"):
        check_installed("not_a_package.part", "some", "the tests")


def test_a_check_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_package.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    check_installed("slow_package.part", "some", "the tests")


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


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": "file:///my%20clone", "dir_info": {"editable": True}}, 'pip install -e "/my clone[some]"'),
        ({"url": "file:///source", "dir_info": {}}, 'pip install "/source[some]"'),
        ({"url": "file:///dist/simlte_st.whl", "archive_info": {}}, 'pip install "simlte-st[some]"'),
        (None, 'pip install "simlte-st[some]"'),
    ],
)
def test_an_extra_is_installed_from_where_the_package_was(
    origin: object, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(Distribution, "read_text", lambda self, name: text, raising=False)
    monkeypatch.setattr("importlib.metadata.PathDistribution.read_text", lambda self, name: text)
    assert install_command.__wrapped__("some") == command
