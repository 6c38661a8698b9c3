"""One text as a model's ``encode`` reads it: which tokens are the text's own, and where they stand in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer

from simlte_st.compat import readable_length
from simlte_st.errors import ConfigurationError, DataError, ModelError
from simlte_st.models.truncation import prompt_as_read
from simlte_st.modules.base_form import BaseForm, texts_as_read


@dataclass(frozen=True)
class TokenizedText:
    """A text as a model reads it, behind its default prompt, if it has one.

    Attributes:
        text: As the tokenizer sees it, with contractions written out where the model does that.
        prompt: What stands before it, likewise; empty for nothing.
        spans: Start and stop in the text of each token of its own that the model reads.
        places: The indices of these tokens among all that the model reads, special ones and the prompt's too.
        cut: How many tokens of the text the model does not read.
    """

    text: str
    prompt: str
    spans: list[tuple[int, int]]
    places: list[int]
    cut: int

    @property
    def tokens(self) -> list[str]:
        """What stands in the text where the tokens are."""
        return [self.text[start:stop] for start, stop in self.spans]

    def notes(self, name: str) -> list[str]:
        """Return what a model of this name truncates, or an empty string."""
        return cut_notes(name, len(self.spans) + self.cut, self.cut)


def as_read(models: Sequence[SentenceTransformer], texts: Sequence[str]) -> list[str]:
    """Return texts as the tokenizers of some models see them: contractions written out where they do that."""
    converts = {isinstance(model[0], BaseForm) for model in models}
    if len(converts) > 1:
        raise ConfigurationError(
            "Some of the models write contractions out (BaseForm) and others do not, so that they do not read the same "
            "words: analyse them apart."
        )
    return texts_as_read(models[0], texts)


@contextmanager
def padded_inputs(model: SentenceTransformer) -> Iterator[None]:
    """Let a model pad its texts while the block runs, where it would write them into one row (flash attention)."""
    transformer = model[0]
    if not isinstance(transformer, Transformer):
        yield
        return
    before, transformer.unpad_inputs = transformer.unpad_inputs, False
    try:
        yield
    finally:
        transformer.unpad_inputs = before


def fast_tokenizer(model: SentenceTransformer) -> Any:
    """Return a model's tokenizer."""
    tokenizer = model.tokenizer
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(f"{type(tokenizer).__name__} does not tell where its tokens stand in the text.")
    return tokenizer


def read_text(model: SentenceTransformer, text: str) -> TokenizedText:
    """Find the tokens of a text, those that the model reads."""
    tokenizer = fast_tokenizer(model)
    [shown] = texts_as_read(model, [text])
    prompt = prompt_as_read(model)

    def own(length: int | None) -> dict[int, tuple[int, int]]:
        encoded = tokenizer(
            prompt + shown,
            truncation=length is not None,
            max_length=length,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            verbose=False,
        )
        parts = enumerate(zip(encoded["offset_mapping"], encoded["special_tokens_mask"], strict=True))
        # A token that reaches from the prompt into the text is the text's, from where that begins.
        return {
            place: (max(0, start - len(prompt)), stop - len(prompt))
            for place, ((start, stop), special) in parts
            if not special and stop > len(prompt)
        }

    read = own(readable_length(model))
    if not read:
        raise DataError(f"The model reads no token of the text, which has {len(text):,} characters.")
    return TokenizedText(shown, prompt, list(read.values()), list(read), len(own(None)) - len(read))


def cut_notes(name: str, tokens: int, cut: int) -> list[str]:
    """Return how many tokens of a text a model did not read, or an empty string."""
    return [f"{name} read {tokens - cut:,} of {tokens:,} tokens; the rest is not shown."] if cut else []
