"""Rows of a corpus of token ids to model inputs: the collator that tokenizes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator

from simlte_st.data.pairs import PairDrawer
from simlte_st.data.token_corpus import ROW, TokenCorpus
from simlte_st.data.token_inputs import TokenPreprocessor
from simlte_st.errors import ConfigurationError


@dataclass
class TokenCollator(SentenceTransformerDataCollator):
    """Draws the views of a batch of documents and cuts them from the documents' token ids.

    The batch is the one of :class:`~simlte_st.data.DocSplitCollator`, with its columns ``anchor`` and ``positive``, and
    the stock collator does the rest: prompts, column names.

    Args:
        preprocess_fn: A :class:`~simlte_st.data.TokenPreprocessor` of the model, in place of ``model.preprocess``.
        corpus: The documents; rows of :meth:`~simlte_st.data.TokenCorpus.dataset` point into it.
        drawer: Draws the views; give its ``clock`` to the Trainer as a callback.

    Raises:
        ConfigurationError: ``preprocess_fn`` is something else.
    """

    corpus: TokenCorpus = field(kw_only=True)
    drawer: PairDrawer = field(default_factory=PairDrawer)

    def __post_init__(self) -> None:
        if not isinstance(self.preprocess_fn, TokenPreprocessor):
            raise ConfigurationError(
                f"preprocess_fn={self.preprocess_fn!r}: token ids need a TokenPreprocessor(model); model.preprocess "
                "takes texts (DocSplitCollator)."
            )

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Make a batch."""
        pairs = self.drawer.draw_tokens([self.corpus[row[ROW]] for row in features])
        batch: dict[str, Any] = super().__call__([pair._asdict() for pair in pairs])
        return batch
