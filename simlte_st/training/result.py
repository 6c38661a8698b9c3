"""The result of a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simlte_st.data.report import counted
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
        from simlte_st.training.save import upload

        return upload(self.output, name, private=private)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def summary(self) -> str:
        """Return a few lines on what was done and whether it helped, with a table of the measures."""
        left_out = {**self.read["skipped"], **self.corpus.left_out}
        steps = f"{self.steps:,} step{'' if self.steps == 1 else 's'}"
        stream = "" if self.passes is None else " of a stream"
        rate = self.documents_per_second
        lines = [
            f"Trained on {self.corpus.documents:,} documents{stream}: {steps} in {self.seconds:,.0f} s "
            f"({f'{rate:,.0f}' if rate >= 10 else f'{rate:.2g}'} documents a second, in {self.dtype}). "
            f"Left out: {', '.join(counted(count, reason) for reason, count in left_out.items()) or 'none'}.",
            *([] if self.static else [f"Seen and cut: {self.coverage.summary()}."]),
            STATIC if self.static else f"{self.truncation.summary()} {self.truncation.advice}".rstrip(),
            self.gain["summary"] if self.gain else "No documents, or too few, were held out to measure the gain.",
        ]
        if self.kept == "base":
            lines[-1] += (
                f" So {self.output} holds the untrained base{', with the analysis' if self.lsa else ''}; the trained "
                f"model is in {trained_path(self.output)} (keep='trained' keeps it in any case)."
            )
        if self.gain:
            lines.append(f"\n{self.gain['table']}\n")
        if self.whole is not None:
            lines.append(self.whole.summary())
        if self.report is not None:
            lines.append(f"Open {self.report} in a browser: it shows the run, and texts of held-out documents.")
        return "\n".join(lines).rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values to publish with the model: without names of files, ids or texts."""
        return {
            "steps": self.steps,
            "seconds": round(self.seconds, 1),
            "documents_per_second": round(self.documents_per_second, 2),
            "dtype": self.dtype,
            "preset": {**vars(self.preset), "view": repr(self.preset.view)},
            "read": {name: value for name, value in self.read.items() if name not in ("source", "examples")},
            "corpus": self.corpus.to_dict(),
            "coverage": {**asdict(self.coverage), "share": self.coverage.share},
            "passes": self.passes,
            "kept": self.kept,
            "gain": self.gain,
            "static": self.static,
            "lsa": self.lsa,
            "whole": None if self.whole is None else {**asdict(self.whole), "summary": self.whole.summary()},
            "truncation": replace(self.truncation, model=self.output.name).to_dict(),
            "log": self.log,
        }
