"""The code in the documentation runs, with a tiny model in the place of the one named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import transformers
from packaging.version import Version
from sentence_transformers import SentenceTransformer

DOCS = Path(__file__).parent.parent / "docs"


def test_adapters_are_trained_saved_and_merged(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("peft", reason="the adapters are PEFT's")
    if Version(transformers.__version__) < Version("5.23"):
        pytest.skip("older transformers (5.0) cannot load the adapters that they saved")
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "lora.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    code = "\n".join(blocks).replace("sentence-transformers/all-MiniLM-L6-v2", str(encoder_path))
    monkeypatch.chdir(tmp_path)
    Path("my_documents").mkdir()
    for number, text in enumerate(documents):
        Path("my_documents", f"{number}.txt").write_text(text, encoding="utf-8")
    exec(compile(code, "lora.md", "exec"), {})
    assert not list(Path("merged").rglob("*adapter*"))
    before, adapted, merged = (
        SentenceTransformer(path, device="cpu").encode(documents[:3])
        for path in (str(encoder_path), "adapter", "merged")
    )
    np.testing.assert_allclose(merged, adapted, atol=1e-5)
    assert not np.allclose(merged, before, atol=1e-5)


def test_own_documents_as_a_task_of_mteb(model: SentenceTransformer, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mteb")
    from benchmarks.tasks import kept_generators

    [block] = re.findall(r"```python\n(.*?)```", (DOCS / "mteb.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    with kept_generators():
        exec(compile(block, "mteb.md", "exec"), {"__name__": "mteb_page", "model": model})
    assert 0 < float(capsys.readouterr().out) <= 1
