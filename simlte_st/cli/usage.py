"""How to use a model that a command has just made."""

from __future__ import annotations

from pathlib import Path

from simlte_st.models.names import models_folder
from simlte_st.models.registration import is_own_architecture


def three_lines(path: str) -> str:
    """Show how to use a model, in Python, indented.

    Args:
        path: Its folder. A model with a name is shown by that, and one of our architectures with the import that
            registers it.
    """
    folder = Path(path)
    if folder.parent == models_folder():
        lines = ["from simlte_st import SentenceTransformer", f'model = SentenceTransformer("{folder.name}")']
    else:
        shown = path if path.startswith(("/", ".")) else f"./{path}"
        lines = ["from sentence_transformers import SentenceTransformer", f'model = SentenceTransformer("{shown}")']
        if is_own_architecture(folder):
            lines.insert(0, "import simlte_st  # its architecture")
    lines.append('vectors = model.encode(["A long document ...", "Another one ..."])')
    return "\n".join(f"    {line}" for line in lines)
