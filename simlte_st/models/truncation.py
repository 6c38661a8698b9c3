"""Count truncated texts and tokens, and advise how to read whole texts."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import format_count
from simlte_st.models.names import shortest_name
from simlte_st.prompts import document_prompt
from simlte_st.words.sentences import tokenizer_counter

if TYPE_CHECKING:  # with torch
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

CUT_SHARE = 0.1
"""Share of truncated tokens above which reading whole documents is advised."""

_SAMPLE = 64  # texts to look at before encoding


@dataclass
class Truncation:
    """Counts of truncated texts and tokens; :meth:`add` adds texts.

    Attributes:
        max_seq_length: Maximum number of tokens read from a text, with special tokens and prompt; None for no limit.
        taken: Number of special tokens and prompt tokens among these.
        texts: Number of texts.
        tokens: Number of tokens of the texts, read or not, without special tokens and prompt.
        cut_texts: Number of truncated texts.
        cut_tokens: Number of tokens that are not read.
        model: Name or folder that loads the model, or empty.
    """

    max_seq_length: int | None = None
    taken: int = 0
    texts: int = 0
    tokens: int = 0
    cut_texts: int = 0
    cut_tokens: int = 0
    model: str = ""

    @classmethod
    def of(
        cls, model: SentenceTransformer, *, prompt: str | None = None, max_seq_length: int | None = None
    ) -> Truncation:
        """Return empty counts for a model."""
        from simlte_st.compat import checkpoint_name, readable_length, reserved_tokens

        encoder, length = model.transformers_model, readable_length(model, max_seq_length)
        trained = "generated_from_trainer" in (model.model_card_data.tags or [])  # has no name that loads it
        name = "" if encoder is None or trained else shortest_name(checkpoint_name(encoder))
        reserved = 0 if length is None else reserved_tokens(model, prompt_as_read(model, prompt))
        return cls(length, reserved, model=name)

    @property
    def budget(self) -> int | None:
        """Maximum number of text tokens, without special tokens and prompt; None for no limit."""
        return None if self.max_seq_length is None else max(0, self.max_seq_length - self.taken)

    def add(self, lengths: Iterable[int] | NDArray[np.integer[Any]]) -> Truncation:
        """Add texts by their token counts."""
        tokens = np.asarray(lengths if isinstance(lengths, np.ndarray) else list(lengths), dtype=np.int64)
        over = tokens[:0] if self.budget is None else tokens[tokens > self.budget] - self.budget
        self.texts += len(tokens)
        self.tokens += int(tokens.sum())
        self.cut_texts += len(over)
        self.cut_tokens += int(over.sum())
        return self

    def summary(self, subject: str = "The model") -> str:
        """Describe how much of the texts is read."""
        if self.max_seq_length is None:
            return f"{subject} reads whole texts."
        reads = f"{subject} reads the first {self.max_seq_length:,} tokens of a text"
        texts = f"of {format_count(self.texts, 'text')}"
        if not self.cut_texts:
            return f"{reads}: none {texts} is longer."
        verb, share = "is" if self.cut_texts == 1 else "are", self.cut_tokens / self.tokens
        return f"{reads}: {self.cut_texts:,} {texts} {verb} longer; {share:.1%} of all tokens are truncated."

    @property
    def advice(self) -> str:
        """Advice on truncated texts; empty if there are none."""
        if not self.cut_texts:
            return ""
        command = f"simlte convert {shlex.quote(self.model or 'MODEL')} --output LONGER"
        return f"{command} makes a model that reads whole texts; simlte index --parts finds texts by their passages."

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the sentences as JSON values."""
        return {**asdict(self), "summary": self.summary(), "advice": self.advice}


def warn_of_truncation(model: SentenceTransformer, texts: Sequence[str], remedy: str = "") -> None:
    """Warn before encoding if the model reads less than nine tenths of the first texts; reports have the exact numbers.

    ``{times}`` in the remedy is replaced by the factor by which also encoding all passages increases the work.
    """
    sample = Truncation.of(model)
    if sample.budget is None:
        return
    sample.add(text_lengths(model, list(islice(texts, _SAMPLE))))
    if sample.cut_tokens > CUT_SHARE * sample.tokens:
        times = 1 + sample.tokens / (sample.tokens - sample.cut_tokens)
        advice, share = remedy.format(times=times) or sample.advice, sample.cut_tokens / sample.tokens
        logger.warning("About %.0f%% of the text will be truncated. %s", 100 * share, advice)


def text_lengths(model: SentenceTransformer, texts: Sequence[str], prompt: str | None = None) -> list[int]:
    """Count the tokens of texts after a prompt, without special tokens and the prompt itself."""
    from simlte_st.modules.base_form import texts_as_read

    prefix, count = prompt_as_read(model, prompt), tokenizer_counter(model.tokenizer)
    # Counted together, because a token may begin in the prompt and end in the text.
    prompt_length = count([prefix])[0] if prefix else 0
    return [length - prompt_length for length in count([prefix + text for text in texts_as_read(model, texts)])]


def prompt_as_read(model: SentenceTransformer, prompt: str | None = None) -> str:
    """Return a prompt (default: the document prompt) as the tokenizer sees it."""
    from simlte_st.modules.base_form import texts_as_read

    return texts_as_read(model, [document_prompt(model) if prompt is None else prompt])[0]
