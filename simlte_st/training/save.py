"""Last stage of a run: the model folder with its card, the report, and the upload to the Hugging Face Hub."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from simlte_st.data.report import counted
from simlte_st.distributed import from_main
from simlte_st.errors import HubError
from simlte_st.files import RUN_FILE, atomic_path, read_json, write_json
from simlte_st.models.cards import MODEL_ID, write_model_card
from simlte_st.models.model2vec import write_for_model2vec
from simlte_st.models.names import name_of, shown_base
from simlte_st.models.sentence_transformer import SentenceTransformer as OwnSentenceTransformer
from simlte_st.training.evaluate import Finished
from simlte_st.training.fit import Fitted
from simlte_st.training.load_corpus import Corpus
from simlte_st.training.load_model import Loaded
from simlte_st.training.result import TrainingResult
from simlte_st.training.run import Run, report_path


@from_main
def save(
    run: Run, loaded: Loaded, corpus: Corpus, fitted: Fitted, finished: Finished, *, report: bool = False
) -> TrainingResult:
    """Write the finished model and, if that is the base, the trained one beside it; return the result of the run.

    Args:
        run: The run, whose folder goes.
        loaded: The model's base and preset.
        corpus: The documents.
        fitted: What training did.
        finished: The models, and which of them to keep.
        report: Whether to write the report.
    """
    output, read, documents, coverage, passes = run.folder.output, corpus.read, corpus.report, corpus.coverage, None
    if corpus.stream is not None:
        taken = corpus.stream.stream.taken(fitted.steps * loaded.preset.batch_size)
        read, passes = {**read, "skipped": taken.skipped}, taken.passes
        documents = replace(documents, documents=taken.documents, left_out=taken.left_out)
        coverage = replace(coverage, total=taken.documents)
    result = TrainingResult(
        output=output,
        steps=fitted.steps,
        seconds=fitted.seconds,
        documents_per_second=fitted.documents_per_second,
        preset=loaded.preset,
        dtype=fitted.dtype,
        read=read,
        corpus=documents,
        coverage=coverage,
        truncation=replace(finished.truncation, model=name_of(str(output))),
        passes=passes,
        kept=finished.kept,
        gain=finished.gain,
        static=loaded.static,
        lsa=finished.lsa,
        whole=corpus.whole,
        log=fitted.log,
        report=report_path(output) if report else None,
    )
    about = {
        "base": loaded.base.name,
        "distilled": loaded.static and run.folder.base.exists(),
        "seed": run.seed,
        **result.to_dict(),
    }
    if finished.kept == "base":
        _save_model(finished.trained, run.folder.trained, about, is_base=False)
        assert finished.base is not None
        _save_model(finished.base, output, about, is_base=True)
    else:
        _save_model(finished.trained, output, about, is_base=False)
    if report:
        from simlte_st.training.report import write_report  # other runs need not wait for what it imports

        write_report(run, loaded, corpus, finished, result)
    run.folder.close()
    return result


def _save_model(model: SentenceTransformer, output: Path, about: dict[str, Any], *, is_base: bool) -> None:
    """Write a model folder with the result of a run and a card, in one rename."""
    with atomic_path(output) as path:
        model.model_card_data.model_name = output.name
        model.save_pretrained(str(path))
        if about["static"] and isinstance(model[-1], Normalize):
            write_for_model2vec(path)
        write_json(path / RUN_FILE, about)
        summary = card_summary(about, is_base=is_base)
        write_model_card(path, name=output.name, base=about["base"], summary=summary, about=run_section(about))


def card_summary(run: Mapping[str, Any], *, is_base: bool) -> str:
    """Return a few sentences on what a model is and whether training helped."""
    base, documents = shown_base(run["base"]), f"{run['corpus']['documents']:,} documents"
    verdict = run["gain"]["summary"] if run["gain"] else "Whether training helped was not measured."
    analysis = ", with a latent semantic analysis of them appended" if run["lsa"] else ""
    static = " It is a static model: each token has one vector, and a text's vector is their mean." * run["static"]
    before = ", distilled," * run["distilled"]
    if is_base:
        return (
            f"{verdict} So this is `{base}`{before} as it was before it was trained on {documents}{analysis}.{static}"
        )
    return f"{verdict} This is `{base}`{before} trained without labels by simlte_st on {documents}{analysis}.{static}"


def run_section(run: Mapping[str, Any]) -> str:
    """Return a description of a run in Markdown."""
    corpus, coverage, preset, truncation = (run[name] for name in ("corpus", "coverage", "preset", "truncation"))
    skipped = {**run["read"].get("skipped", {}), **corpus["left_out"]}
    lines = [
        "## DocSplit training",
        "",
        "Two views of one document should lie close, other documents far.",
        "",
        f"- Views: `{preset['view']}`",
        f"- Documents: {corpus['documents']:,} ({_sizes(run)})",
        f"- {truncation['summary']} {truncation['advice']}".rstrip(),
        *([f"- {run['whole']['summary']}"] if run["whole"] else []),
        *(["- Left out: " + ", ".join(counted(count, reason) for reason, count in skipped.items())] if skipped else []),
        f"- Seen in one pass: {coverage['share']:.1%} of the tokens; a part of {coverage['cut']:,} of "
        f"{coverage['documents']:,} documents looked at stays unseen in it",
        f"- Steps: {run['steps']:,} in {run['seconds']:,.0f} s ({run['documents_per_second']:.2g} documents a second)",
        "- Settings: " + ", ".join(f"{name} {value}" for name, value in preset.items() if name != "view"),
        *([f"- Appended: latent semantic analysis, {run['lsa']} dimensions"] if run["lsa"] else []),
        f"- Seed: {run['seed']}; computed in {run['dtype']}",
        *(["", run["gain"]["table"]] if run["gain"] else []),
    ]
    return "\n".join(lines)


def _sizes(run: Mapping[str, Any]) -> str:
    corpus, passes = run["corpus"], run["passes"]
    sizes = (
        f"{corpus['tokens']:,} tokens, {corpus['sentences']:,} sentences; the longest has {corpus['longest']:,} tokens"
    )
    if passes is None:
        return sizes
    return f"of a stream, each taken {passes:.3g} times; the first {run['truncation']['texts']:,}: {sizes}"


def check_upload(name: str, *, private: bool = True) -> None:
    """Check, before any work, that a model can be uploaded under a name, by making its repository.

    Args:
        name: The repository, ``OWNER/NAME``.
        private: Make a new repository private.

    Raises:
        HubError: The name is not valid, there is no token that can write to it, or the Hub cannot be reached.
    """
    try:
        HfApi().create_repo(repo_id=name, private=private, exist_ok=True)
    except Exception as error:  # each has its own class: no network, no token, no right, a bad name
        raise HubError(
            f"push_to_hub={name!r}: nothing could be uploaded ({_why(error)}). Log in with hf auth login."
        ) from error


def upload(output: Path, name: str, *, private: bool = True) -> str:
    """Upload a finished model with its card, which names a local base without its folder."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(shutil.copytree(output, Path(folder, "model")))
            run = read_json(path / RUN_FILE)
            write_json(path / RUN_FILE, {**run, "base": shown_base(run["base"])})
            card = path / "README.md"
            card.write_text(card.read_text(encoding="utf-8").replace(MODEL_ID, name), encoding="utf-8")
            model = OwnSentenceTransformer(path, device="cpu")
            return str(model.push_to_hub(name, private=private, local_model_path=str(path), exist_ok=True))
    except Exception as error:  # whatever it is: hours of training must not end in a traceback
        command = f"hf upload {name} {output} --private" if private else f"hf upload {name} {output}"
        raise HubError(
            f"The model is finished in {output}, but was not uploaded: {_why(error)}\nTry again with: {command}"
        ) from error


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"
