from __future__ import annotations

import json
from pathlib import Path

import pytest

from simlte_st.errors import MissingExtraError
from simlte_st.extras import check_installed, install_command, require


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"'no_such_package' .*tests.*\[some\]"):
        require("no_such_package", "some", "the tests")
    assert require("json", "some", "the tests").dumps([1]) == "[1]"


def test_a_check_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_package.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    check_installed("slow_package.part", "some", "the tests")


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": "file:///my%20clone", "dir_info": {"editable": True}}, 'pip install -e "/my clone[some]"'),
        ({"url": "file:///dist/simlte_st.whl", "archive_info": {}}, 'pip install "simlte-st[some]"'),
        (None, 'pip install "simlte-st[some]"'),
    ],
)
def test_an_extra_is_installed_from_where_the_package_was(
    origin: object, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr("importlib.metadata.PathDistribution.read_text", lambda self, name: text)
    assert install_command("some") == command
