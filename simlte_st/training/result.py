"""The result of a run, and its upload to the Hugging Face Hub."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simlte_st.data.reader import counted
from simlte_st.errors import HubError
from simlte_st.files import RUN_FILE, read_json, write_json
from simlte_st.models.names import shown_base
from simlte_st.training.run import trained_path

if TYPE_CHECKING:
    from simlte_st.data.corpus import CorpusReport, Coverage
    from simlte_st.models.sentence_transformer import SentenceTransformer
    from simlte_st.models.truncation import Truncation
    from simlte_st.training.presets import Preset


STATIC = (
    "The model is static: each token has one vector, and a text's vector is their mean. It reads documents of any "
    "length whole. For an encoder: static=False."
)
"""Description of a static model."""


@dataclass(frozen=True)
class WholeDocuments:
    """How the finished model reads documents that are longer than the base reads: in chunks.

    Attributes:
        max_length: Tokens of a document that the finished model reads, special tokens included.
        chunk_length: Tokens of a chunk, special tokens included.
        cut: Share of the tokens of the documents that the base would cut, 0 to 1.
    """

    max_length: int
    chunk_length: int
    cut: float

    def summary(self) -> str:
        """Return what the finished model reads, what that costs, and how to have it otherwise."""
        return (
            f"The model reads documents whole, up to {self.max_length:,} tokens, as the mean over chunks of "
            f"{self.chunk_length:,}, because the base by itself cuts {self.cut:.1%} of the tokens; it loads after "
            "import simlte_st. With max_length='base' it reads as much as the base, and loads anywhere: stock modules."
        )


@dataclass
class TrainingResult:
    """The result of a run.

    Attributes:
        output: Folder of the finished model.
        steps: Optimizer steps done.
        seconds: Seconds of training, in this process.
        documents_per_second: Rate of training.
        preset: The preset of the run, with the arguments that replaced its fields.
        dtype: What training computed in: ``"float32"`` or ``"bfloat16"``.
        read: The reader's report: documents read, skipped and mended, with reasons.
        corpus: Report of the documents trained on, and the documents left out.
        coverage: The share of them that one pass sees.
        truncation: How much the finished model reads of the documents trained on.
        passes: Average number of times that each document of a stream was taken; ``read``, ``corpus``, ``coverage``
            and ``truncation`` then estimate sizes from its first documents. None if all documents were read before.
        kept: The finished model: ``"trained"``, or ``"base"`` if training did not clearly help; the trained model is
            then in ``OUTPUT.trained``.
        gain: The verdict on held-out documents and its numbers for TF-IDF, the base (reading as much as the trained
            model, if it has the positions) and the trained model; None if too few documents were held out.
        static: Whether the model is static: a vector for each token, and no layers.
        lsa: Dimensions of the latent semantic analysis that the trained model ends with, or None.
        whole: How the finished model reads documents longer than the base reads, in chunks, or None.
        log: The Trainer's log lines.
        report: The page of the run, or None.
    """

    output: Path
    steps: int
    seconds: float
    documents_per_second: float
    preset: Preset
    dtype: str
    read: dict[str, Any]
    corpus: CorpusReport
    coverage: Coverage
    truncation: Truncation
    passes: float | None = None
    kept: Literal["trained", "base"] = "trained"
    gain: dict[str, Any] | None = None
    static: bool = False
    lsa: int | None = None
    whole: WholeDocuments | None = None
    log: list[dict[str, Any]] = field(default_factory=list)
    report: Path | None = None

    def load(self, **options: Any) -> SentenceTransformer:
        """Load the finished model.

        Args:
            **options: Of :class:`simlte_st.SentenceTransformer`, e.g. ``device="cpu"``.
        """
        from simlte_st.models.sentence_transformer import SentenceTransformer

        return SentenceTransformer(self.output, **options)

    def push_to_hub(self, name: str, *, private: bool = True) -> str:
        """Upload the finished model with its card to the Hugging Face Hub.

        Args:
            name: The repository, ``OWNER/NAME``; :func:`~simlte_st.training.check_upload` checks it before training.
            private: Make a new repository private.

        Returns:
            Address of the commit.

        Raises:
            HubError: The upload failed; the message has the command to try again.
        """
        return upload(self.output, name, private=private)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def summary(self) -> str:
        """Return a few lines on what was done and whether it helped, with a table of the measures."""
        verdict = self.gain["summary"] if self.gain else "No documents, or too few, were held out to measure the gain."
        if self.kept == "base":
            verdict += (
                f" So {self.output} holds the untrained base{', with the analysis' if self.lsa else ''}; the trained "
                f"model is in {trained_path(self.output)} (keep='trained' keeps it in any case)."
            )
        lines = [*self.facts(self.truncation), verdict]
        if self.report is not None:
            lines.append(f"Open {self.report} in a browser: it shows the run, and texts of held-out documents.")
        return "\n".join([*lines, *([f"\n{self.gain['table']}"] if self.gain else [])])

    def facts(self, truncation: Truncation) -> list[str]:
        """Return what training did and what the model reads, in sentences, without names of files."""
        left_out = {**self.read["skipped"], **self.corpus.left_out}
        steps = f"{self.steps:,} step{'' if self.steps == 1 else 's'}"
        stream = "" if self.passes is None else " of a stream"
        if self.passes is not None and self.passes > 1:
            stream += f", each taken {self.passes:.3g} times"
        rate = self.documents_per_second
        return [
            f"Trained on {self.corpus.documents:,} documents{stream}: {steps} in {self.seconds:,.0f} s "
            f"({f'{rate:,.0f}' if rate >= 10 else f'{rate:.2g}'} documents a second, in {self.dtype}). "
            f"Left out: {', '.join(counted(count, reason) for reason, count in left_out.items()) or 'none'}.",
            *([] if self.static else [f"Seen and cut: {self.coverage.summary()}."]),
            STATIC if self.static else f"{truncation.summary()} {truncation.advice}".rstrip(),
            *([] if self.whole is None else [self.whole.summary()]),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values to publish with the model: without names of files, ids or texts."""
        return {
            **{name: value for name, value in vars(self).items() if name not in ("output", "report")},
            "seconds": round(self.seconds, 1),
            "documents_per_second": round(self.documents_per_second, 2),
            "preset": {**vars(self.preset), "view": repr(self.preset.view)},
            "read": {name: value for name, value in self.read.items() if name not in ("source", "examples")},
            "corpus": self.corpus.to_dict(),
            "coverage": {**asdict(self.coverage), "share": self.coverage.share},
            "whole": None if self.whole is None else {**asdict(self.whole), "summary": self.whole.summary()},
            "truncation": replace(self.truncation, model=self.output.name).to_dict(),
        }


def check_upload(name: str, *, private: bool = True) -> None:
    """Check, before any work, that a model can be uploaded under a name, by making its repository.

    Args:
        name: The repository, ``OWNER/NAME``.
        private: Make a new repository private.

    Raises:
        HubError: The name is not valid, there is no token that can write to it, or the Hub cannot be reached.
    """
    from huggingface_hub import HfApi

    try:
        HfApi().create_repo(repo_id=name, private=private, exist_ok=True)
    except Exception as error:  # each has its own class: no network, no token, no right, a bad name
        raise HubError(
            f"push_to_hub={name!r}: nothing could be uploaded ({_why(error)}). Log in with hf auth login."
        ) from error


def upload(output: Path, name: str, *, private: bool = True) -> str:
    """Upload a finished model with its card, which names a local base without its folder."""
    from simlte_st.models.cards import MODEL_ID
    from simlte_st.models.sentence_transformer import SentenceTransformer

    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(shutil.copytree(output, Path(folder, "model")))
            run = read_json(path / RUN_FILE)
            write_json(path / RUN_FILE, {**run, "base": shown_base(run["base"])})
            card = path / "README.md"
            card.write_text(card.read_text(encoding="utf-8").replace(MODEL_ID, name), encoding="utf-8")
            model = SentenceTransformer(path, device="cpu")
            return str(model.push_to_hub(name, private=private, local_model_path=str(path), exist_ok=True))
    except Exception as error:  # whatever it is: hours of training must not end in a traceback
        command = f"hf upload {name} {output}{' --private' if private else ''}"
        raise HubError(
            f"The model is finished in {output}, but was not uploaded: {_why(error)}\nTry again with: {command}"
        ) from error


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), 'no reason given')}"
