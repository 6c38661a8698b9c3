"""Warn about a model's limits: truncated texts, and languages missing from its vocabulary."""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import regex
from numpy.typing import NDArray

from simlte_st.errors import format_count
from simlte_st.models.names import shortest_name
from simlte_st.prompts import document_prompt
from simlte_st.words.sentences import tokenizer_counter
from simlte_st.words.tokens import space_before, token_ids, unknown_id

if TYPE_CHECKING:  # imports torch
    from sentence_transformers import SentenceTransformer

    from simlte_st.models.vectors import TokenVectors
    from simlte_st.words.tokens import AnyTokenizer

logger = logging.getLogger(__name__)

CUT_SHARE = 0.1
"""Fraction of truncated tokens above which a warning suggests how to read whole documents."""

_SAMPLE = 64  # number of texts checked before encoding


@dataclass
class Truncation:
    """Counts of truncated texts and tokens; :meth:`add` adds texts.

    Attributes:
        max_seq_length: Maximum number of tokens read from a text, including special tokens and prompt; None for no
            limit.
        taken: Number of these tokens taken up by special tokens and the prompt.
        texts: Number of texts.
        tokens: Total number of tokens in the texts, including truncated ones but not special tokens and prompts.
        cut_texts: Number of truncated texts.
        cut_tokens: Number of truncated tokens.
        model: Name or folder from which to load the model; empty if unknown.
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
        trained = "generated_from_trainer" in (model.model_card_data.tags or [])  # cannot be loaded by name
        name = "" if encoder is None or trained else shortest_name(checkpoint_name(encoder))
        reserved = 0 if length is None else reserved_tokens(model, prompt_as_read(model, prompt))
        return cls(length, reserved, model=name)

    @property
    def budget(self) -> int | None:
        """Maximum number of text tokens, excluding special tokens and the prompt; None for no limit."""
        return None if self.max_seq_length is None else max(0, self.max_seq_length - self.taken)

    def add(self, lengths: Iterable[int] | NDArray[np.integer[Any]]) -> Truncation:
        """Add texts, given their token counts."""
        tokens = np.asarray(lengths if isinstance(lengths, np.ndarray) else list(lengths), dtype=np.int64)
        over = tokens[:0] if self.budget is None else tokens[tokens > self.budget] - self.budget
        self.texts += len(tokens)
        self.tokens += int(tokens.sum())
        self.cut_texts += len(over)
        self.cut_tokens += int(over.sum())
        return self

    def summary(self, subject: str = "The model") -> str:
        """Describe how much of the texts the model reads."""
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
        """Return the counts, the summary and the advice as JSON values."""
        return {**asdict(self), "summary": self.summary(), "advice": self.advice}


def warn_of_truncation(model: SentenceTransformer, texts: Sequence[str], remedy: str = "") -> None:
    """Warn before encoding if the model will truncate more than a tenth of the first texts; reports have exact numbers.

    ``{times}`` in ``remedy`` is replaced with the factor by which encoding all passages as well increases the work.
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
    prefix, count = prompt_as_read(model, prompt), tokenizer_counter(model.tokenizer)
    # Tokenize prompt and text together, because a token may span both.
    prompt_length = count([prefix])[0] if prefix else 0
    return [length - prompt_length for length in count([prefix + text for text in texts_as_read(model, texts)])]


def prompt_as_read(model: SentenceTransformer, prompt: str | None = None) -> str:
    """Return a prompt (default: the document prompt) as the tokenizer sees it."""
    return texts_as_read(model, [document_prompt(model) if prompt is None else prompt])[0]


def texts_as_read(model: SentenceTransformer, texts: Iterable[str]) -> list[str]:
    """Return texts or prompts as a model's tokenizer sees them, with contractions expanded for ``BaseForm``."""
    from simlte_st.modules.base_form import BaseForm, expand_contractions

    return list(expand_contractions(texts) if isinstance(model[0], BaseForm) else texts)


# Language check: the tokenizer of a model for another language splits the documents' frequent words.

WORDS, FEWEST = 400, 100
"""Maximum and minimum number of frequent words to look up, each found in three or more documents."""

KNOWN = 0.4
"""Minimum share of these words in the vocabulary. all-MiniLM-L6-v2 knows at least 89% of these words for English prose
and tweets, 83% for papers with formulas, at least 72% for source code, and at most 33% for other languages (French 33%,
Japanese 28%, Chinese 20%, German 11%, Russian, Hindi and Arabic 0%). multilingual-e5-small knows at least 65% for its
training languages (Amharic 65%, Arabic 76%, German 94%) and at least 52% for source code."""

KNOWN_CHARACTERS = 0.8
"""Minimum share for Chinese characters. English vocabularies contain 19% to 51% of the 100 to 400 most frequent
characters, Chinese and multilingual vocabularies at least 99%."""

DOCUMENTS, CHARACTERS = 1_000, 2_000
"""Number of documents to read, and of characters to read from each."""

# Short words are in every vocabulary. In scripts without spaces, single characters or pairs of letters count as words.
# Kana is left out because English vocabularies contain it.
_WORD = regex.compile(
    r"(?V1)\p{Han}|\p{Hangul}{2,}|(?:[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*){2}"
    r"|[[\p{L}\p{M}]--[\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]{4,}"
)


def warn_of_language(models: Mapping[str, SentenceTransformer | TokenVectors], texts: Iterable[str]) -> None:
    """Warn about models that were trained on a different language from most texts."""
    words = frequent_words(texts)
    if len(words) < FEWEST:
        return
    min_share = KNOWN_CHARACTERS if sum(map(len, words)) < 1.5 * len(words) else KNOWN
    shares = {name: known_share(model.tokenizer, words) for name, model in models.items()}
    if foreign := {name: share for name, share in shares.items() if share < min_share}:
        logger.warning(
            "%s: trained on a different language than most of the documents. At most %.0f%% of their %d most frequent "
            "words are in the vocabulary. Use a base model for their language, or a multilingual one such as "
            "intfloat/multilingual-e5-small.",
            ", ".join(foreign),
            100 * max(foreign.values()),
            len(words),
        )


def frequent_words(texts: Iterable[str]) -> list[str]:
    """Return the words that occur in the most texts, most frequent first."""
    counts = Counter(chain.from_iterable(set(_WORD.findall(text[:CHARACTERS])) for text in islice(texts, DOCUMENTS)))
    return sorted((word for word, count in counts.items() if count > 2), key=lambda word: (-counts[word], word))[:WORDS]


def known_share(tokenizer: AnyTokenizer, words: list[str]) -> float:
    """Return the fraction of words that are a single known token."""
    space, vocabulary, unknown = space_before(tokenizer), tokenizer.get_vocab(), unknown_id(tokenizer)
    spaces = {vocabulary.get(token) for token in ("\u2581", "\u0120")}  # separate tokens in some vocabularies
    tokens = token_ids(tokenizer, [space + word for word in words])
    words_as_ids = [[token_id for token_id in ids if token_id not in spaces] for ids in tokens]
    return sum(len(ids) == 1 and ids[0] != unknown for ids in words_as_ids) / len(words)
