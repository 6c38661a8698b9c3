"""Refuse models of version 0.1; :class:`~simlte_st.modules.token_table.TokenTable` replaced this module."""

from __future__ import annotations

from typing import Any

from sentence_transformers.base.modules import Module

from simlte_st.errors import ModelError


class LatentSemanticAnalysis(Module):
    """Raise an error that says how to convert a model of version 0.1."""

    @classmethod
    def load(cls, *args: Any, **options: Any) -> Any:
        """Raise a ModelError."""
        raise ModelError(
            "it ends with the latent semantic analysis of version 0.1. Delete the last entry of its modules.json, and "
            "repeat the analysis: simlte convert FOLDER --lsa DOCUMENTS --output NEW"
        )
