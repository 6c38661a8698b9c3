"""Make wrong changes in a copy of the project, one at a time, and check that their tests fail.

    python tests/mutants.py            # make mutants
    python tests/mutants.py splits     # only those in files with "splits" in their names

It takes minutes, so it is not part of the tests. A change that survives is a gap in the tests. Rewrite a change whose
text is no longer in the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent

MUTANTS = [
    ("simlte_st/longformer/blocked.py", "longformer/test_attention.py", "used = weights * mask", "used = weights"),
    ("simlte_st/longformer/blocked.py", "longformer/test_attention.py", "grad / (1 - ctx.dropout)", "grad"),
    ("simlte_st/models/passes.py", "models/test_passes.py", "vectors[places.to(vectors.device)]", "vectors"),
    ("simlte_st/models/encode.py", "models/test_encode.py", "**model_identity(model), ", ""),
    ("simlte_st/models/loading.py", "models/test_loading.py", "tokenizer.split_special_tokens = True", "pass"),
    ("simlte_st/words/analyzer.py", "words/test_analyzer.py", "for piece in content or pieces", "for piece in content"),
    ("simlte_st/evaluation/verdict.py", "evaluation/test_verdict.py", "(2 * 1.96)", "(1 * 1.96)"),
    ("simlte_st/evaluation/verdict.py", "evaluation/test_verdict.py", '["intercept"] - np', '["intercept"] + np'),
    ("simlte_st/evaluation/verdict.py", "evaluation/test_verdict.py", "if base.reads == model.reads:", "if True:"),
    ("simlte_st/evaluation/probe.py", "test_probe.py", "x[test]) == y[test]", "x[train]) == y[train]"),
    ("simlte_st/files.py", "test_files.py", "os.replace(backup, target)", "pass"),
    ("simlte_st/files.py", "test_files.py", ".is_relative_to(output.resolve())", " == output.resolve()"),
    ("simlte_st/files.py", "test_files.py", "lock.acquire(timeout=0)\n    except", "pass\n    except"),
    ("simlte_st/training/presets.py", "benchmarks/test_verdict.py", "scale=2.0,", "scale=2.1,"),
    ("simlte_st/training/presets.py", "benchmarks/test_verdict.py", "learning_rate=2e-5,", "learning_rate=2.1e-5,"),
    ("simlte_st/training/callbacks.py", "training/test_processes.py", "if world() > 1 and", "if False and"),
    ("simlte_st/losses/reconstruction.py", "losses/test_reconstruction.py", "/ max(1, len(targets))", "/ len(targets)"),
    ("simlte_st/training/fit.py", "training/test_stream.py", "else OrderedBatch", "else SeededBatch"),
    ("benchmarks/papers/weights.py", "papers/test_reading.py", "model.eval()", "pass"),
    (
        "simlte_st/evaluation/splits.py", "evaluation/test_splits.py",
        "return [documents[row] for row in train], [", "return documents, [",
    ),
    (
        "simlte_st/longformer/packing.py", "test_packing.py",
        "is_global = valid & global_mask", "is_global = inside & global_mask",
    ),
    (
        "simlte_st/losses/multiple_negatives_ranking_mlm.py", "training/test_processes.py",
        "mean_over_processes(count, self.model.device)", "count",
    ),
    (
        "simlte_st/views/corpus.py", "views/test_corpus.py",
        "seed=self._seed, epoch=epoch,", "seed=self._seed, epoch=0,",
    ),
    (
        "simlte_st/exploration/html.py", "exploration/test_explore.py",
        "title=escape(title),", "title=title,",
    ),
    (
        "simlte_st/exploration/search_data.py", "exploration/test_search_data.py",
        "row - last_rows[term]", "row",
    ),
]  # fmt: skip
"""File, tests, text and replacement; only the last occurrence is replaced."""


def find_test_file(name: str, folder: Path = ROOT) -> Path:
    """Find a test file by its path in ``tests`` or by its unique name."""
    if (folder / "tests" / name).exists():
        return folder / "tests" / name
    [place] = (folder / "tests").rglob(name)
    return place


def survives(file: str, tests: str, old: str, new: str, folder: Path) -> bool:
    """Apply a change to a copy of the project and return whether its tests still pass."""
    path = folder / file
    text = path.read_text(encoding="utf-8")
    head, matched, tail = text.rpartition(old)
    if not matched:
        raise SystemExit(f"{file} no longer contains {old!r}.")
    path.write_text(head + new + tail, encoding="utf-8")
    try:
        place = find_test_file(tests, folder)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(place)]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode == 0
    finally:
        path.write_text(text, encoding="utf-8")


def main() -> None:
    mutants = [mutant for mutant in MUTANTS if not sys.argv[1:] or any(word in mutant[0] for word in sys.argv[1:])]
    survivors = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("simlte_st", "benchmarks", "tests", "examples"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        for file, tests, old, new in mutants:
            survived = survives(file, tests, old, new, folder)
            survivors += survived
            print(f"{'SURVIVED' if survived else 'noticed '}  {file}: {old!r} -> {new!r}", flush=True)
    print(f"{len(mutants) - survivors} of {len(mutants)} noticed")
    raise SystemExit(min(survivors, 1))


if __name__ == "__main__":
    main()
