"""Reject models of version 0.1, whose module :class:`~simlte_st.modules.token_table.TokenTable` has replaced."""

from __future__ import annotations

from typing import NoReturn

from sentence_transformers.base.modules import Module

from simlte_st.errors import ModelError


class LatentSemanticAnalysis(Module):
    """Raise an error that says how to convert a model of version 0.1."""

    @classmethod
    def load(cls, *args: object, **options: object) -> NoReturn:
        """Raise a ModelError."""
        raise ModelError(
            "it ends with a latent semantic analysis of version 0.1. Delete the last entry of its modules.json, and "
            "repeat the analysis: simlte convert FOLDER --lsa DOCUMENTS --output NEW"
        )
