"""Wrong changes that a test must notice: each is made in a copy of the project, and the tests named must fail.

    python tests/mutants.py            # make mutants
    python tests/mutants.py splits     # those of files with that in their name

Not a test of its own: it takes minutes. A survivor is a gap in the tests; a change whose text is not found any more is
to be written anew.
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
    (
        "simlte_st/longformer/padded.py", "models/test_export.py",
        "(mask > 0) & (place > 0) if self.cls", "mask > 0 if self.cls",
    ),
    (
        "simlte_st/models/export.py", "models/test_export.py",
        "if not error <= TOLERANCE:", "if error < 0:",
    ),
    (
        "simlte_st/models/onnx_encoder.py", "models/test_export.py",
        "mask * (np.arange(mask.shape[1]) >= of_prompt)", "mask",
    ),
    ("simlte_st/longformer/blocked.py", "longformer/test_attention.py", "used = weights * mask", "used = weights"),
    ("simlte_st/longformer/blocked.py", "longformer/test_attention.py", "grad / (1 - ctx.dropout)", "grad"),
    ("simlte_st/longformer/blocked.py", "longformer/test_attention.py", "other &= 0xFFFF", "other &= -1"),
    ("simlte_st/models/passes.py", "models/test_passes.py", "found[back.to(found.device)]", "found"),
    ("simlte_st/models/passes.py", "models/test_passes.py", "min(slots, CPU_PASS[0])", "CPU_PASS[0]"),
    ("simlte_st/models/passes.py", "models/test_passes.py", "length + self._special - self._taken", "length"),
    (
        "simlte_st/models/truncation.py", "models/test_truncation.py",
        "self.max_seq_length - self.taken", "self.max_seq_length - 2",
    ),
    (
        "simlte_st/backbones/registry.py", "backbones/test_registry.py",
        "if kind in backbone.replaces", "if kind == backbone.model_type",
    ),
    (
        "simlte_st/search/query.py", "search/test_analysis.py",
        "for name in exact_matches(by_text):", "for name in []:",
    ),
    (
        "simlte_st/data/analyzer.py", "data/test_analyzer.py",
        "for piece in content or pieces", "for piece in content",
    ),
    (
        "simlte_st/search/add.py", "search/test_add.py",
        "name in reader.unread or name.startswith(folders)", "name in reader.unread",
    ),
    (
        "simlte_st/training/load_model.py", "models/test_odd_models.py",
        "model.register_forward_hook(_truncate_embeddings)", "pass",
    ),
    (
        "simlte_st/evaluation/splits.py", "evaluation/test_splits.py",
        "return [read[row] for row in train], [", "return read, [",
    ),
    (
        "simlte_st/evaluation/splits.py", "evaluation/test_splits.py",
        "text_key(text) for text in texts]", "row for row, _ in enumerate(texts)]",
    ),
    (
        "benchmarks/grid/experiments.py", "benchmarks/test_grid.py",
        "rows[data.learn :], data.labels[data.learn :]", "rows[: data.learn], data.labels[: data.learn]",
    ),
    (
        "simlte_st/models/loading.py", "models/test_loading.py",
        "tokenizer.split_special_tokens = True", "pass",
    ),
    (
        "benchmarks/papers/citation_links.py", "test_citation_links.py",
        "scores.pairs(train.pairs), train.labels, high", "scores.pairs(test.pairs), test.labels, high",
    ),
    (
        "simlte_st/evaluation/comparison.py", "test_comparison.py",
        "tfidf_few_shot(*given, **few)", "tfidf_few_shot(*given[2:], *given[2:], **few)",
    ),
    (
        "simlte_st/evaluation/comparison.py", "test_comparison.py",
        "tfidf_few_shot(*given, **few)", "tfidf_few_shot(*given, draws=made.draws)",
    ),
    ("simlte_st/evaluation/comparison.py", "test_comparison.py", "min(budgets, default", "max(budgets, default"),
    ("simlte_st/evaluation/verdict.py", "evaluation/test_verdict.py", "(2 * 1.96)", "(1 * 1.96)"),
    ("simlte_st/evaluation/verdict.py", "evaluation/test_verdict.py", '["intercept"] - np', '["intercept"] + np'),
    ("simlte_st/evaluation/structure.py", "test_structure.py", "firsts, count), words[1]", "firsts, count), words[0]"),
    ("simlte_st/evaluation/verdict.py", "evaluation/test_verdict.py", "or self.scored < FEWEST else", "else"),
    ("simlte_st/evaluation/bench.py", "test_compare.py", "share < 1 - CUT_SHARE", "share < CUT_SHARE"),
    ("simlte_st/evaluation/candidates.py", "test_compare.py", "max(made, key=lambda each", "min(made, key=lambda each"),
    (
        "simlte_st/modules/latent_semantic_analysis.py", "test_latent_semantic_analysis.py",
        "documents - squares[0]) / max(1, documents - 1)", "documents) / max(1, documents - 1)",
    ),
    ("simlte_st/training/load_corpus.py", "test_load_corpus.py", "<= CUT_SHARE * read.tokens", "<= read.tokens"),
    ("simlte_st/evaluation/probe.py", "test_probe.py", "x[test]) == y[test]", "x[train]) == y[train]"),
    (
        "simlte_st/evaluation/few_shot.py", "test_few_shot.py",
        "size=RESAMPLES).astype(np.float64)", "size=1).astype(np.float64)",
    ),
    ("simlte_st/evaluation/verdict.py", "evaluation/test_verdict.py", "if base.reads == model.reads:", "if True:"),
    (
        "simlte_st/evaluation/classification_probe.py", "test_classification_probe.py",
        "learning_rate=self.learning_rate,", "",
    ),
    (
        "simlte_st/evaluation/classification_probe.py", "test_classification_probe.py",
        "probe_batch_size=self.probe_batch_size,", "",
    ),
    ("simlte_st/evaluation/probe.py", "test_probe.py", "layers += [layer, nn.ReLU()]", "layers += [layer, nn.Tanh()]"),
    (
        "simlte_st/evaluation/probe.py", "test_probe.py",
        'torch.randperm(len(x), generator=generator, device="cpu")', "torch.arange(len(x))",
    ),
    *(
        ("simlte_st/training/config.py", "training/test_config.py", f"{name}={value},", f"{name}={wrong},")
        for name, value, wrong in (
            ("steps", "30", "31"), ("scale", "2.0", "2.1"), ("learning_rate", "2e-5", "2.1e-5"),
            ("batch_size", "32", "33"),
        )
    ),
    (
        "simlte_st/longformer/packing.py", "test_packing.py",
        "is_global = valid & global_mask", "is_global = inside & global_mask",
    ),
    (
        "benchmarks/citation.py", "test_citation.py",
        "for each in (record, found[base])", "for each in (found[base], record)",
    ),
    ("simlte_st/models/encode_ray.py", "models/test_encode_ray.py", "min(cpus - 1, gpus)", "min(cpus, gpus)"),
    ("simlte_st/models/parts.py", "models/test_encode.py", "max(self._before, default=0) > number", "False"),
    ("simlte_st/models/parts.py", "models/test_device.py", "ordered[order] = vectors", "ordered[:] = vectors"),
    (
        "simlte_st/search/add.py", "search/test_add.py",
        "in enumerate(_batches(self.reader, self._encoder), start=1)",
        "in enumerate(_batches(self.reader, self._encoder))",
    ),
    ("simlte_st/files.py", "test_files.py", "os.replace(before, target)", "pass"),
    ("simlte_st/files.py", "test_files.py", "place.is_relative_to(written)", "place == output.resolve()"),
    ("simlte_st/files.py", "test_files.py", "lock.acquire(timeout=0)\n    except", "pass\n    except"),
    ("simlte_st/training/folder.py", "test_folder.py", "os.replace(self._before, self.path)", "pass"),
    (
        "simlte_st/training/divergence.py", "test_divergence.py",
        'check_weights(self.model, f"after step {state.global_step}")', "pass",
    ),
    (
        "simlte_st/models/parts.py", "models/test_encode.py",
        "for pair in zip(ids, texts, strict=True) for each in pair", "for each in ids",
    ),
    ("simlte_st/models/encode.py", "test_encode.py", '"weights": weights_digest(model), ', ""),
    (
        "simlte_st/modules/star_transformer.py", "modules/test_star_transformer.py",
        "near & keep, keep], dim=-1", "near, keep], dim=-1",
    ),
    (
        "simlte_st/losses/multi_similarity_triplet.py", "test_multi_similarity_triplet.py",
        "own = labels.clone()", "own = labels",
    ),
    *(
        ("simlte_st/losses/reconstruction.py", "losses/test_reconstruction.py", old, new)
        for old, new in (
            ('repad_flattened_features(out) if "cu_seq_lens_q" in out else out', "out"),
            ("if with_graph and not torch.is_grad_enabled()", "if False"),
            ("with_graph and not", "not"),
            ("list(loss.modules())", "[loss]"),
            ("_model_of(self.loss).register", "self.model.register"),
            ("self.weight * len(columns) *", "self.weight *"),
            ("/ max(1, len(targets))", "/ len(targets)"),
        )
    ),
    ("simlte_st/training/callbacks.py", "test_callbacks.py", "isinstance(part, LossStateMixin)", "part is loss"),
    ("simlte_st/training/callbacks.py", "test_callbacks.py", ", *states[:1]", ""),
    *(
        (file, "training/test_processes.py", old, new)
        for file, old, new in (
            ("simlte_st/losses/mlm_mixin.py", "mean_over_processes(count, self.model.device)", "count"),
            ("simlte_st/training/callbacks.py", "if world() > 1 and", "if False and"),
            ("simlte_st/training/interrupt.py", "largest(self.interrupted or 0)", "self.interrupted or 0"),
            ("simlte_st/training/load_model.py", '_devices": world() > 1', '_devices": False'),
            ("simlte_st/distributed.py", "store_of_processes().add(_SHOWN, 1) == 1", "True"),
        )
    ),
    ("simlte_st/training/fit.py", "training/test_stream.py", "else OrderedBatch", "else SeededBatch"),
    *(
        ("simlte_st/data/document_stream.py", "data/test_document_stream.py", old, new)
        for old, new in (
            ('f"buffer at {cursor.row}"', 'f"buffer at {cursor.row} of {id(self)}"'),
            ("del documents[len(documents) - len(documents) % self._batch_size :]", "pass"),
            ("if key in self._without:", "if False:"),
            ("self._cursors = max(self._cursors, read, key=len)", "pass"),
            ("seed=self._seed, epoch=epoch,", "seed=self._seed, epoch=0,"),
        )
    ),
    ("simlte_st/data/shards.py", "data/test_shards.py", "part, name, row, _ROWS", "part, name, 0, _ROWS"),
    ("simlte_st/modules/base.py", "modules/test_token_attention.py", "mask.shape != embeddings.shape[:2]", "False"),
    ("simlte_st/modules/base.py", "modules/test_token_attention.py", "[-1] != self.embedding_dimension", " is None"),
    ("benchmarks/papers/weights.py", "papers/test_reading.py", "model.eval()", "pass"),
    ("simlte_st/training/report.py", "training/test_report.py", "(base, trained)", "(trained, trained)"),
    *(
        ("simlte_st/training/report.py", "training/test_report.py", old, new)
        for old, new in (
            ("np.argsort(overlaps,", "np.argsort(-overlaps,"),
            ("equal[:, :depth, :depth]", "equal"),
            ("zip(after[row].tolist(), new[row]", "zip(before[row].tolist(), old[row]"),
            ("escape(title_of(None, document.text))", "title_of(None, document.text)"),
            ("escape(document.text[:SHOWN])", "document.text[:SHOWN]"),
            ('if result.kept == "base":', "if False:"),
        )
    ),
    *(
        ("simlte_st/exploration/layout.py", "exploration/test_layout.py", old, new)
        for old, new in (
            ("block[own, rows.start + own] = -np.inf", "pass"),
            ("places[drawn] = placed", "places[:] = placed[0]"),
        )
    ),
    (
        "simlte_st/exploration/explore.py", "exploration/test_explore.py",
        "ids[group] if sizes[group] > 1 else None", "ids[group]",
    ),
    (
        "simlte_st/exploration/page.py", "exploration/test_explore.py",
        "{escape(corpus.titles[row])}", "{corpus.titles[row]}",
    ),
    ("simlte_st/page/filters.py", "page/test_filters.py", "timedelta(days=1)", "timedelta(days=0)"),
    ("simlte_st/page/filters.py", "page/test_filters.py", """text.replace("'", "''")""", "text"),
    ("simlte_st/page/filters.py", "page/test_filters.py", "if text in known]", "]"),
]  # fmt: skip
"""File, tests, what stands there, and what is put in its place: once, at its last occurrence."""


def file_of_tests(name: str, folder: Path = ROOT) -> Path:
    """Find a file of tests: by its path in ``tests``, or by its name, which only one has."""
    if (folder / "tests" / name).exists():
        return folder / "tests" / name
    [place] = (folder / "tests").rglob(name)
    return place


def survives(file: str, tests: str, old: str, new: str, folder: Path) -> bool:
    """Make a change in a copy of the project, and tell whether the tests pass."""
    path = folder / file
    text = path.read_text(encoding="utf-8")
    head, found, tail = text.rpartition(old)
    if not found:
        raise SystemExit(f"{file} has no {old!r} any more.")
    path.write_text(head + new + tail, encoding="utf-8")
    try:
        place = file_of_tests(tests, folder)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(place)]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode == 0
    finally:
        path.write_text(text, encoding="utf-8")


def main() -> None:
    wanted = [mutant for mutant in MUTANTS if not sys.argv[1:] or any(word in mutant[0] for word in sys.argv[1:])]
    survivors = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("simlte_st", "benchmarks", "tests", "examples"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        for file, tests, old, new in wanted:
            alive = survives(file, tests, old, new, folder)
            survivors += alive
            print(f"{'SURVIVED' if alive else 'noticed '}  {file}: {old!r} -> {new!r}", flush=True)
    print(f"{len(wanted) - survivors} of {len(wanted)} noticed")
    raise SystemExit(min(survivors, 1))


if __name__ == "__main__":
    main()
