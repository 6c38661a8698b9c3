"""Which setting for these documents? Models and words side by side on a sample: what ``simlte compare`` does."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simlte_st.config import configured
from simlte_st.data.config import ReadConfig
from simlte_st.data.document import LONG, median_words
from simlte_st.data.documents import read_documents
from simlte_st.data.sources import is_place
from simlte_st.errors import ModelError
from simlte_st.evaluation.bench import Bench
from simlte_st.evaluation.candidates import Comparison, recommend
from simlte_st.evaluation.config import CompareConfig
from simlte_st.evaluation.splits import sample_documents, sample_rows
from simlte_st.extras import install_command
from simlte_st.models.language import warn_of_language
from simlte_st.models.loading import load_model
from simlte_st.models.names import OWN_MODELS, OWN_STATIC, PACKAGED_BASE
from simlte_st.models.static import is_static
from simlte_st.models.truncation import text_lengths

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

    from simlte_st.overrides import CompareOverrides

logger = logging.getLogger(__name__)

TOKENS = 200_000
"""Tokens of a sample: a model that reads all of them takes about a minute on two CPU cores."""

LEAST = 100
"""Fewest documents of a sample, however long they are."""


@configured(CompareConfig)
def compare(
    documents: Any,
    models: Sequence[str | os.PathLike[str]] = (),
    config: CompareConfig | None = None,
    **overrides: Unpack[CompareOverrides],
) -> Comparison:
    """Compare settings on a sample of documents: static models, encoders as they are and reading all, LSA, and words.

    Static models, which take next to no time, come first: this package's is always among them.

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` takes.
        models: The models; see :func:`~simlte_st.models.names.find_model`. By default the packaged all-MiniLM-L6-v2 and
            this package's own, those of them that are here or can be put together.
        config: The settings; None for the defaults.
        **overrides: Settings in place of the config's.

    Raises:
        DataError: The documents cannot be read, or too few have labels that a probe could use.
        ModelError: A model cannot be loaded.
    """
    made = CompareConfig.make(config, overrides)
    reader = read_documents(documents, label_column=made.probe, **made.values(ReadConfig))
    drawn = sample_documents(reader, made.sample, made.seed)
    loaded = _load(models, made.device)
    lengths = text_lengths(next(iter(loaded.values())), [document.text for document in drawn])
    if sum(lengths) > TOKENS and len(drawn) > LEAST:
        rows = sample_rows(len(drawn), max(LEAST, int(len(drawn) * TOKENS / sum(lengths))), made.seed)
        drawn, lengths = [drawn[row] for row in rows], [lengths[row] for row in rows]
    warn_of_language(loaded, (document.text for document in drawn))
    bench = Bench(drawn, _in_command(documents, made), made)
    for name, model in loaded.items():
        (bench.add_static if is_static(model) else bench.add_encoder)(name, model)
    bench.add_words()
    labelled = 0 if bench.labels is None else len(bench.labels.rows)
    best = recommend(bench.candidates, median_words(bench.texts) >= LONG, made.seed).name
    return Comparison(tuple(bench.candidates), best, len(drawn), sum(lengths), labelled, made.seed)


def _load(models: Sequence[str | os.PathLike[str]], device: str | None) -> dict[str, SentenceTransformer]:
    loaded: dict[str, SentenceTransformer] = {}
    named = [os.fspath(each) for each in models]
    for name in dict.fromkeys([OWN_STATIC, *(named or [PACKAGED_BASE, *OWN_MODELS])]):
        try:
            loaded[name] = load_model(name, device=device).model
        except ModelError as error:
            if name in named:
                raise
            logger.warning("Left out: %s", error)
    if not loaded:
        raise ModelError(f"There is no model to compare: name one, or install one with: {install_command('demo')}")
    return dict(sorted(loaded.items(), key=lambda item: not is_static(item[1])))  # stable: else as they were named


def _in_command(documents: Any, config: CompareConfig) -> str:
    """Return the documents, and how they are read, as words of a command."""
    places = documents if isinstance(documents, (list, tuple)) else [documents]
    named = places and len(places) < 10 and all(map(is_place, places))
    words = [shlex.quote(os.fspath(each)) for each in places] if named else ["my_documents"]
    for name in ("text_column", "id_column"):
        if (value := getattr(config, name)) is not None:
            words.append(f"--{name.replace('_', '-')} {shlex.quote(value)}")
    return " ".join(words)
