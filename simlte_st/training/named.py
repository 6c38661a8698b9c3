"""The models of this package, until trained ones ship: made on the user's machine."""

from __future__ import annotations

from typing import Any

from simlte_st.datasets.bbc import packaged_corpus_path
from simlte_st.errors import ConfigurationError
from simlte_st.models.names import OWN_MODELS, PACKAGED_BASE, model_path
from simlte_st.training.result import TrainingResult
from simlte_st.training.train import train


def build_model(name: str, source: Any = None, **options: Any) -> TrainingResult:
    """Train the packaged base with the papers' preset, into the user's model folder.

    Args:
        name: ``"simlte-longformer"`` (the base is converted to 4,096 tokens first) or ``"simlte-bert"``.
        source: The documents; None for the packaged BBC News.
        **options: Of :func:`~simlte_st.training.train`.

    Returns:
        What was done.

    Raises:
        ConfigurationError: Another name.
        MissingExtraError: The packages with the base and the documents are not installed.
    """
    if name not in OWN_MODELS:
        raise ConfigurationError(
            f"{name!r} is none of {', '.join(OWN_MODELS)}. A model of another name is made with: "
            f"simlte train SOURCE --name {name}"
        )
    if source is None:
        source = str(packaged_corpus_path())
        options.setdefault("encoding", "latin-1")
    return train(source, model_path(name), base=PACKAGED_BASE, preset=OWN_MODELS[name], **options)
