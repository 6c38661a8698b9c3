"""How much of texts a model reads, what is cut of longer ones, and what reads those whole."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from simlte_st.chunk_mean.convert import can_read_in_chunks
from simlte_st.compat import checkpoint_name, default_prompt, readable_length, taken_tokens
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.models.names import OWN_MODELS, name_of
from simlte_st.modules.base_form import texts_as_read

CUT_SHARE = 0.1
"""Share of the tokens of documents that a model may cut before it had better read whole documents."""


@dataclass
class Truncation:
    """How much of texts a model reads. The counts are zero at first; :meth:`add` adds texts.

    Attributes:
        max_seq_length: Tokens that the model reads of a text at most, special tokens and prompt included; None: all.
        taken: How many of them special tokens and the prompt take.
        prompt_tokens: How many the prompt takes.
        texts: Number of texts.
        tokens: Their tokens, special tokens and prompt not counted, read or not.
        cut_texts: How many of the texts are longer than the model reads.
        cut_tokens: Tokens that are not read.
        longest: Tokens of the longest text.
        model: Name or folder by which the model is loaded; empty where it has none.
        convertible: Whether ``simlte convert --backbone chunk-mean`` takes the model.
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

    @classmethod
    def of(
        cls, model: SentenceTransformer, *, prompt: str | None = None, max_seq_length: int | None = None
    ) -> Truncation:
        """Begin to count what a model reads."""
        encoder, length = model.transformers_model, readable_length(model, max_seq_length)
        name = "" if encoder is None else name_of(checkpoint_name(encoder))
        made = cls(length, model=name, convertible=can_read_in_chunks(model))
        if length is not None:
            before = prompt_as_read(model, prompt)
            made.taken = taken_tokens(model, before)
            made.prompt_tokens = made.taken - taken_tokens(model, "")
        return made

    @property
    def budget(self) -> int | None:
        """Tokens of a text itself that the model reads at most; None: all of them."""
        return None if self.max_seq_length is None else max(0, self.max_seq_length - self.taken)

    def add(self, lengths: Iterable[int] | NDArray[np.integer[Any]]) -> Truncation:
        """Count texts."""
        tokens = np.asarray(lengths if isinstance(lengths, np.ndarray) else list(lengths), dtype=np.int64)
        over = tokens[:0] if self.budget is None else tokens[tokens > self.budget] - self.budget
        self.texts += len(tokens)
        self.tokens += int(tokens.sum())
        self.cut_texts += len(over)
        self.cut_tokens += int(over.sum())
        self.longest = max(self.longest, int(tokens.max(initial=0)))
        return self

    def summary(self, subject: str = "The model") -> str:
        """Say in a sentence how much is read."""
        if self.max_seq_length is None:
            return f"{subject} reads texts to their end."
        reads = f"{subject} reads the first {self.max_seq_length:,} tokens of a text"
        if self.prompt_tokens:
            reads += f", {self.prompt_tokens:,} of them its prompt's"
        texts = f"of {self.texts:,} text{'' if self.texts == 1 else 's'}"
        if not self.cut_texts:
            return f"{reads}: none {texts} is longer."
        verb, share = "is" if self.cut_texts == 1 else "are", self.cut_tokens / self.tokens
        return f"{reads}: {self.cut_texts:,} {texts} {verb} longer; {share:.1%} of all tokens are cut."

    @property
    def advice(self) -> str:
        """How the texts that are cut are read whole; empty where none is.

        In the place of a model that cannot be converted simlte-bert is named, the best reader in chunks of
        ``benchmarks/results/models.md``; in that of simlte-bert the other model of this package as well.
        """
        if not self.cut_texts:
            return ""
        other = "simlte-longformer"
        also = f"{other} reads {OWN_MODELS[other]:,} tokens of a text. " if self.model == "simlte-bert" else ""
        name = (self.model or "MODEL") if self.convertible else "simlte-bert"
        command = f"simlte convert {shlex.quote(name)} --backbone chunk-mean --max-length {self.longest + self.taken}"
        return f"{also}To read them whole:\n    {command} --output LONGER"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and what is said of them as JSON values."""
        return {**asdict(self), "summary": self.summary(), "advice": self.advice}


def text_lengths(model: SentenceTransformer, texts: Sequence[str], prompt: str | None = None) -> list[int]:
    """Count the tokens of texts as a model reads them behind a prompt, special tokens and the prompt not counted."""
    before, count = prompt_as_read(model, prompt), tokenizer_counter(model.tokenizer)
    # Counted together: at the seam a token may begin in the prompt and end in the text.
    own = count([before])[0] if before else 0
    return [length - own for length in count([before + text for text in texts_as_read(model, texts)])]


def prompt_as_read(model: SentenceTransformer, prompt: str | None = None) -> str:
    """Return a prompt as the model's tokenizer sees it; None: the one that ``encode`` puts before each text unasked."""
    return texts_as_read(model, [default_prompt(model) if prompt is None else prompt])[0]
