"""What version 0.1 ended models with: :class:`~simlte_st.modules.token_table.TokenTable` took its place."""

from __future__ import annotations

from typing import Any

from sentence_transformers.base.modules import Module

from simlte_st.errors import ModelError


class LatentSemanticAnalysis(Module):
    """Tell how a folder of version 0.1 gets its analysis again."""

    @classmethod
    def load(cls, *args: Any, **options: Any) -> Any:
        """Raise a ModelError."""
        raise ModelError(
            "it ends with the analysis of version 0.1. Delete the last entry of its modules.json, and analyse the "
            "documents again: simlte convert FOLDER --lsa DOCUMENTS --output NEW"
        )
