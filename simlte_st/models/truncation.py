"""How much of texts a model reads, and how to read longer ones whole."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from simlte_st.compat import checkpoint_name, readable_length, taken_tokens
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.models.names import name_of
from simlte_st.models.static import is_static
from simlte_st.modules.base_form import texts_as_read
from simlte_st.modules.chunk_mean import can_read_in_chunks
from simlte_st.prompts import document_prompt

logger = logging.getLogger(__name__)

CUT_SHARE = 0.1
"""Share of truncated tokens from which a model should rather read whole documents."""

_SAMPLE = 64  # texts that are looked at before all are read

Counts = Iterable[int] | NDArray[np.integer[Any]]


@dataclass
class Truncation:
    """How much of texts a model reads. The counts are zero at first; :meth:`add` adds texts.

    Attributes:
        max_seq_length: Tokens of a text that the model reads, special tokens and prompt included; None for no limit.
        taken: How many of them are special tokens and the prompt's.
        prompt_tokens: How many are the prompt's.
        texts: Number of texts.
        tokens: Their tokens, read or not, without special tokens and prompt.
        cut_texts: Number of texts that are truncated.
        cut_tokens: Tokens that are not read.
        longest: Tokens of the longest text.
        model: Name or folder by which the model can be loaded, or empty.
        convertible: Whether ``simlte convert --backbone chunk-mean`` takes the model.
        empty_texts: Number of texts without a token, which a static embedding gives a zero vector; else 0.
        static: Whether the model is a static embedding.
    """

    max_seq_length: int | None = None
    taken: int = 0
    prompt_tokens: int = 0
    texts: int = 0
    tokens: int = 0
    cut_texts: int = 0
    cut_tokens: int = 0
    longest: int = 0
    model: str = ""
    convertible: bool = True
    empty_texts: int = 0
    static: bool = False

    @classmethod
    def of(
        cls, model: SentenceTransformer, *, prompt: str | None = None, max_seq_length: int | None = None
    ) -> Truncation:
        """Return the counts of a model before any texts."""
        encoder, length = model.transformers_model, readable_length(model, max_seq_length)
        name = "" if encoder is None else name_of(checkpoint_name(encoder))
        made = cls(
            length,
            model=name,
            convertible=can_read_in_chunks(model),
            static=is_static(model),
        )
        if length is not None:
            before = prompt_as_read(model, prompt)
            made.taken = taken_tokens(model, before)
            made.prompt_tokens = made.taken - taken_tokens(model, "")
        return made

    @property
    def budget(self) -> int | None:
        """Tokens of a text itself that the model reads; None for no limit."""
        return None if self.max_seq_length is None else max(0, self.max_seq_length - self.taken)

    def add(self, lengths: Counts) -> Truncation:
        """Add texts by their numbers of tokens."""
        tokens = np.asarray(lengths if isinstance(lengths, np.ndarray) else list(lengths), dtype=np.int64)
        over = tokens[:0] if self.budget is None else tokens[tokens > self.budget] - self.budget
        self.texts += len(tokens)
        self.tokens += int(tokens.sum())
        self.cut_texts += len(over)
        self.cut_tokens += int(over.sum())
        self.longest = max(self.longest, int(tokens.max(initial=0)))
        if self.static:
            self.empty_texts += int((tokens == 0).sum())
        return self

    def summary(self, subject: str = "The model") -> str:
        """Return a sentence on how much is read."""
        if self.max_seq_length is None:
            return f"{subject} reads texts to their end.{self.unread}"
        reads = f"{subject} reads the first {self.max_seq_length:,} tokens of a text"
        if self.prompt_tokens:
            reads += f", {self.prompt_tokens:,} of them its prompt's"
        texts = f"of {self.texts:,} text{'' if self.texts == 1 else 's'}"
        if not self.cut_texts:
            return f"{reads}: none {texts} is longer."
        verb, share = "is" if self.cut_texts == 1 else "are", self.cut_tokens / self.tokens
        return f"{reads}: {self.cut_texts:,} {texts} {verb} longer; {share:.1%} of all tokens are truncated."

    @property
    def unread(self) -> str:
        """A sentence on texts that have no tokens; empty if there are none."""
        if not self.empty_texts:
            return ""
        return f" {self.empty_texts:,} of {self.texts:,} texts have no tokens: their vectors are zero."

    @property
    def advice(self) -> str:
        """How to read truncated texts whole with this model, or to find them by passages; empty if there are none."""
        if not self.cut_texts:
            return ""
        name, needed = self.model or "MODEL", self.longest + self.taken
        if self.convertible:
            command = f"simlte convert {shlex.quote(name)} --backbone chunk-mean --max-length {needed} --output LONGER"
            return f"To read them whole:\n    {command}"
        command = f"simlte index {shlex.quote(name)} DOCUMENTS --output INDEX --parts"
        return f"An index finds longer texts by their passages:\n    {command}"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the sentences as JSON values."""
        return {**asdict(self), "summary": self.summary(), "advice": self.advice}


def warn_of_truncation(model: SentenceTransformer, texts: Sequence[str], remedy: str) -> None:
    """Warn, before texts are read, where the model reads less than nine tenths of the first ones.

    In the remedy ``{name}`` is the model, and ``{times}`` how much more work it is to read passages of all, too.
    """
    read = Truncation.of(model)
    if read.budget is None:
        return
    sample = [text for _, text in zip(range(_SAMPLE), texts, strict=False)]
    read.add(text_lengths(model, sample))
    if read.cut_tokens > CUT_SHARE * read.tokens:
        logger.warning(
            "%.1f%% of the tokens of the first %d texts lie beyond the %s that the model reads. %s",
            100 * read.cut_tokens / read.tokens,
            len(sample),
            f"{read.max_seq_length:,}",
            remedy.format(
                name=shlex.quote(read.model or "MODEL"), times=1 + read.tokens / (read.tokens - read.cut_tokens)
            ),
        )


def text_lengths(model: SentenceTransformer, texts: Sequence[str], prompt: str | None = None) -> list[int]:
    """Count the tokens of texts as a model reads them after a prompt, without special tokens and prompt."""
    before, count = prompt_as_read(model, prompt), tokenizer_counter(model.tokenizer)
    # Counted together, since a token may begin in the prompt and end in the text.
    own = count([before])[0] if before else 0
    return [length - own for length in count([before + text for text in texts_as_read(model, texts)])]


def prompt_as_read(model: SentenceTransformer, prompt: str | None = None) -> str:
    """Return a prompt, by default the model's prompt for documents, as its tokenizer sees it."""
    return texts_as_read(model, [document_prompt(model) if prompt is None else prompt])[0]
