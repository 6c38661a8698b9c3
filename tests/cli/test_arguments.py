from __future__ import annotations

from pathlib import Path

import pytest

from simlte_st.cli.main import main


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "no-model", "--data", "SOURCE", "--output"],
        ["analyze", "redundancy", "SOURCE", "--output"],
        ["analyze", "attention", "SOURCE", "--model", "no-model", "--bars"],
        ["analyze", "layers", "SOURCE", "--model", "no-model", "--lines"],
        ["analyze", "weights", "A text.", "--model", "no-model", "--heatmap"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_results_do_not_replace_a_file_unasked(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "documents.jsonl"
    source.write_text('{"text": "a"}\n')
    command = [str(source) if word == "SOURCE" else word for word in command]
    precious = tmp_path / "precious.html"
    precious.write_text("years")
    assert main([*command, str(precious)]) == 1
    assert f"{precious} exists already" in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    assert main([*command, str(tmp_path / "folder"), "--overwrite"]) == 1
    assert "folder is a folder: name a file" in capsys.readouterr().err
    if str(source) in command:
        assert main([*command, str(source), "--overwrite"]) == 1
        assert "holds the documents" in capsys.readouterr().err
    assert precious.read_text() == "years"
    assert source.read_text() == '{"text": "a"}\n'
