"""The card in a model's folder: what the model is and how it is used first, then how it was made."""

from __future__ import annotations

import re
from pathlib import Path

from simlte_st.models.names import HUB_BASE, PACKAGED_BASE, shown_base
from simlte_st.models.registration import has_own_modules, is_own_architecture

MODEL_ID = "sentence_transformers_model_id"
"""What a card calls a model that is on no Hub yet."""

_STOCK = "from sentence_transformers import SentenceTransformer\n"
_INSTALL = "pip install -U sentence-transformers"
_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
_ENTRY = re.compile(r"^([\w-]+):.*\n(?:(?:[ -].*)?\n)*", re.MULTILINE)
_KEPT = {"language", "library_name", "license", "license_link", "license_name", "pipeline_tag", "tags"}
"""Of a base's front matter: its results, training data and emissions are not those of a model made of it."""
_STOCK_SECTIONS = ("### Model Sources", "## Additional Resources", "## Citation\n\n### BibTeX\n*\\Z")
"""Patterns of headings under which sentence-transformers says nothing of the model: links, and no citation."""


def complete_model_card(folder: Path) -> None:
    """Let the card in a model's folder say what of this package it takes to load the model; twice is as once."""
    path, own = folder / "README.md", _imports(folder)
    if own != _STOCK and path.exists() and own not in (card := path.read_text(encoding="utf-8")):
        card = card.replace(_STOCK, own, 1).replace(f"{_INSTALL}\n", f"{_INSTALL} simlte-st\n", 1)
        path.write_text(card, encoding="utf-8")


def _imports(folder: Path) -> str:
    """Write what has to be imported to load a model."""
    if has_own_modules(folder):
        return (
            "from simlte_st import SentenceTransformer\n"
            "# The class of sentence_transformers loads it with trust_remote_code=True, where simlte-st is installed.\n"
        )
    return f"import simlte_st  # the model's architecture\n{_STOCK}" if is_own_architecture(folder) else _STOCK


def write_model_card(folder: Path, *, name: str, base: str, summary: str, about: str) -> None:
    """Write the card of a model that this package made, around the one that sentence-transformers wrote.

    First comes what the model is and whether it is better than its base, then how it is used, then how it was made. Of
    a card that sentence-transformers generated the details of the model follow. Of one that somebody wrote, the base's,
    licence, language and tags remain: what else it says is of another model.
    """
    path = folder / "README.md"
    card = path.read_text(encoding="utf-8")
    match = _MATTER.match(card)
    matter, body = (match[1], card[match.end() :]) if match else ("", card)
    public = HUB_BASE if base == PACKAGED_BASE else base if re.fullmatch(r"[\w.-]+/[\w.-]+", base) else None
    if public == base and Path(base).exists():
        public = None
    link = f"[{public}](https://huggingface.co/{public})" if public else f"`{shown_base(base)}`"
    details = _details(body)
    if not details:
        matter = "".join(entry[0] for entry in _ENTRY.finditer(matter) if entry[1] in _KEPT)
        link += ", which has a card of its own"
    if public:
        matter = "".join(entry[0] for entry in _ENTRY.finditer(matter) if entry[1] != "base_model")
        matter += f"base_model: {public}\n"
    own = _imports(folder)
    install = _INSTALL if own == _STOCK else f"{_INSTALL} simlte-st"
    parts = [
        f"---\n{matter}---\n\n# {name}\n",
        f"{summary}\n\n- **Base model:** {link}\n",
        f'## Usage\n\n```bash\n{install}\n```\n\n```python\n{own}\nmodel = SentenceTransformer("{MODEL_ID}")\n'
        'vectors = model.encode(["A long document ...", "Another one ..."])\n```\n',
        about.strip() + "\n",
        *([details] if details else []),
    ]
    path.write_text("\n".join(parts), encoding="utf-8")


def _details(body: str) -> str:
    """Take the details of the model of a card that sentence-transformers generated; of any other, nothing."""
    generated = re.sub(r"<!--.*?-->\n*", "", body, flags=re.DOTALL)  # hints to those who go on writing
    before, details, rest = generated.partition("\n## Model Details\n")
    if not details or "\n## Usage\n" in before:  # somebody's, or one of ours
        return ""
    architecture, _, others = rest.partition("\n## Usage\n")
    _, heading, training = others.partition("\n## ")
    kept = f"## Model Details\n{architecture.rstrip()}\n{heading}{training}"
    for title in _STOCK_SECTIONS:
        kept = re.sub(rf"^{title}.*?(?=^##|\Z)", "", kept, flags=re.DOTALL | re.MULTILINE)
    return kept.replace("\n### Full", "\n\n### Full").replace("\n\n\n", "\n\n").rstrip() + "\n"
