"""Reject version 0.1 models, whose module was replaced by :class:`~simlte_st.modules.token_table.TokenTable`."""

from __future__ import annotations

from typing import NoReturn

from sentence_transformers.base.modules import Module

from simlte_st.errors import ModelError


class LatentSemanticAnalysis(Module):
    """Raise an error that explains how to convert a version 0.1 model."""

    @classmethod
    def load(cls, *args: object, **options: object) -> NoReturn:
        """Raise a ModelError."""
        raise ModelError(
            "it ends with a latent semantic analysis from version 0.1. Delete the last entry in its modules.json, and "
            "repeat the analysis: simlte convert FOLDER --lsa DOCUMENTS --output NEW"
        )
