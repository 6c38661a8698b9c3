"""Which setting for these documents? Models and words side by side on a sample: what ``simlte compare`` does."""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simlte_st.config import configured
from simlte_st.data.config import ReadConfig
from simlte_st.data.document import LONG, median_words
from simlte_st.data.documents import read_documents
from simlte_st.data.sources import is_place
from simlte_st.errors import ModelError
from simlte_st.evaluation.bench import Bench, reads_chunks
from simlte_st.evaluation.candidates import Comparison, recommend
from simlte_st.evaluation.config import CompareConfig
from simlte_st.evaluation.splits import sample_documents, sample_rows
from simlte_st.evaluation.verdict import FEWEST
from simlte_st.extras import install_command
from simlte_st.models.base import load_model
from simlte_st.models.language import warn_of_language
from simlte_st.models.names import OWN_MODELS, OWN_STATIC, PACKAGED_BASE
from simlte_st.models.pace import LONG_WORK, tokens_per_second
from simlte_st.models.static import is_static
from simlte_st.models.truncation import CUT_SHARE, Truncation, text_lengths
from simlte_st.progress import spell_seconds

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

    from simlte_st.overrides import CompareOverrides

logger = logging.getLogger(__name__)

TOKENS = 200_000
"""Tokens of a sample: a model that reads all of them takes about a minute on two CPU cores."""

LEAST = 100
"""Fewest documents of a sample, however long they are; with ``minutes`` and without labels :data:`FEWEST`."""

SHARE = 0.7
"""Share of the minutes that encoding may take."""


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
    made, began = CompareConfig.make(config, overrides), time.monotonic()
    reader = read_documents(documents, label_column=made.probe, **made.values(ReadConfig))
    drawn = sample_documents(reader, made.sample, made.seed)
    loaded = _load(models, made.device)
    lengths = text_lengths(next(iter(loaded.values())), [document.text for document in drawn])
    if sum(lengths) > TOKENS and len(drawn) > LEAST:
        rows = sample_rows(len(drawn), max(LEAST, int(len(drawn) * TOKENS / sum(lengths))), made.seed)
        drawn, lengths = [drawn[row] for row in rows], [lengths[row] for row in rows]
    warn_of_language(loaded, (document.text for document in drawn))
    costs = costs_of(loaded, [document.text for document in drawn], lengths)
    if made.minutes is not None:
        left = SHARE * 60 * made.minutes - (time.monotonic() - began)
        fitting = max(FEWEST if made.probe is None else LEAST, int(len(drawn) * left / max(1e-9, sum(costs.values()))))
        if fitting < len(drawn):
            costs = {name: cost * fitting / len(drawn) for name, cost in costs.items()}
            rows = sample_rows(len(drawn), fitting, made.seed)
            drawn, lengths = [drawn[row] for row in rows], [lengths[row] for row in rows]
    elif (whole := sum(costs.values())) > LONG_WORK:
        slowest = max(costs, key=lambda name: costs[name])
        logger.warning(
            "This takes about %s, %s of it for %s. minutes=5 takes fewer documents, and leaves out what is too slow.",
            spell_seconds(whole),
            spell_seconds(costs[slowest]),
            slowest,
        )
    ends = None if made.minutes is None else began + 60 * made.minutes
    bench = Bench(drawn, _in_command(documents, made), made, costs, ends)
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
            loaded[name] = load_model(name, device=device, graphs=True).model
        except ModelError as error:
            if name in named:
                raise
            logger.warning("Left out: %s", error)
    if not loaded:
        raise ModelError(f"There is no model to compare: name one, or install one with: {install_command('demo')}")
    return dict(sorted(loaded.items(), key=lambda item: not is_static(item[1])))  # stable: else as they were named


def costs_of(
    models: Mapping[str, SentenceTransformer], texts: Sequence[str], lengths: Sequence[int]
) -> dict[str, float]:
    """Estimate the seconds of each encoder's rows of the table, by its rate on a few texts and the tokens of all."""
    costs = {}
    for name, model in models.items():
        if is_static(model):
            continue
        read, rate = Truncation.of(model).add(lengths), tokens_per_second(model, texts)
        costs[name] = (read.tokens - read.cut_tokens) / rate
        if read.cut_tokens > CUT_SHARE * read.tokens and reads_chunks(model):
            costs[f"{name}, whole"] = read.tokens / rate
    return costs


def _in_command(documents: Any, config: CompareConfig) -> str:
    """Return the documents, and how they are read, as words of a command."""
    places = documents if isinstance(documents, (list, tuple)) else [documents]
    named = places and len(places) < 10 and all(map(is_place, places))
    words = [shlex.quote(os.fspath(each)) for each in places] if named else ["my_documents"]
    for name in ("text_column", "id_column"):
        if (value := getattr(config, name)) is not None:
            words.append(f"--{name.replace('_', '-')} {shlex.quote(value)}")
    return " ".join(words)
