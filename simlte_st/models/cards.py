"""The cards of models and of exported models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from simlte_st.models.names import HUB_BASE, PACKAGED_BASE, encode_call, settings_of, shown_base
from simlte_st.models.registration import has_own_modules, is_own_architecture

MODEL_ID = "sentence_transformers_model_id"
"""Placeholder in a card for a model that is not on the Hub yet."""

_STOCK = "from sentence_transformers import SentenceTransformer\n"
_INSTALL = "pip install -U sentence-transformers"
_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
_ENTRY = re.compile(r"^([\w-]+):.*\n(?:(?:[ -].*)?\n)*", re.MULTILINE)
_KEPT = {"language", "library_name", "license", "license_link", "license_name", "pipeline_tag", "tags"}
"""What is kept of a base's front matter, without its results, training data and emissions."""
_STOCK_SECTIONS = ("### Model Sources", "## Additional Resources", "## Citation\n\n### BibTeX\n*\\Z")
"""Patterns of headings in sentence-transformers' cards with nothing about the model: links, and no citation."""


def complete_model_card(folder: Path) -> None:
    """Make the card in a model's folder say what of this package is needed to load the model."""
    path, own = folder / "README.md", _imports(folder)
    if own != _STOCK and path.exists() and own not in (card := path.read_text(encoding="utf-8")):
        card = card.replace(_STOCK, own, 1).replace(f"{_INSTALL}\n", f"{_INSTALL} simlte-st\n", 1)
        path.write_text(card, encoding="utf-8")


def _imports(folder: Path) -> str:
    """Return the imports that loading a model needs."""
    if has_own_modules(folder):
        return (
            "from simlte_st import SentenceTransformer\n"
            "# The class of sentence_transformers loads it with trust_remote_code=True, where simlte-st is installed.\n"
        )
    return f"import simlte_st  # the model's architecture\n{_STOCK}" if is_own_architecture(folder) else _STOCK


def write_model_card(folder: Path, *, name: str, base: str, summary: str, about: str) -> None:
    """Write the card of a model that this package made: what it is, how to use it, and how it was made.

    The details of a card that sentence-transformers generated follow. Of a base's card that somebody wrote, licence,
    language and tags are kept.
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
        f"vectors = model.{encode_call(settings_of(folder))}\n```\n",
        about.strip() + "\n",
        *([details] if details else []),
    ]
    path.write_text("\n".join(parts), encoding="utf-8")


def _details(body: str) -> str:
    """Return the details of the model from a card that sentence-transformers generated; nothing from others."""
    generated = re.sub(r"<!--.*?-->\n*", "", body, flags=re.DOTALL)  # hints to authors
    before, details, rest = generated.partition("\n## Model Details\n")
    if not details or "\n## Usage\n" in before:  # somebody's, or one of ours
        return ""
    architecture, _, others = rest.partition("\n## Usage\n")
    _, heading, training = others.partition("\n## ")
    kept = f"## Model Details\n{architecture.rstrip()}\n{heading}{training}"
    for title in _STOCK_SECTIONS:
        kept = re.sub(rf"^{title}.*?(?=^##|\Z)", "", kept, flags=re.DOTALL | re.MULTILINE)
    return kept.replace("\n### Full", "\n\n### Full").replace("\n\n\n", "\n\n").rstrip() + "\n"


# Exported models.

_START = """\
import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

tokenizer, model = Tokenizer.from_file("tokenizer.json"), InferenceSession("{graph}")
"""

_SPECIAL_WORDS = "tokenizer.encode_special_tokens = True  # words such as [MASK] are text\n"

_RUN = """\
def run(graph, **features):
    return graph.run(None, {each.name: features[each.name] for each in graph.get_inputs()})[0]

"""

_WHOLE = """\
read = tokenizer.encode_batch([{prompt!r} + text for text in ["A long document ...", "Another one ..."]])
ids, mask = np.array([each.ids for each in read]), np.array([each.attention_mask for each in read])
content = mask * (np.arange(mask.shape[1]) >= {of_prompt})
vectors = run(model, input_ids=ids, attention_mask=mask, content_mask=content)
"""

_CHUNKS = """\
def encode(text):
    ids = tokenizer.encode({prompt!r} + text).ids
    before, body, after = ids[:{prefix}], ids[{prefix}:-1], ids[-1:]  # [CLS] (and a prompt), the text, [SEP]
    pieces = [body[start : start + {room}] for start in range(0, max(1, len(body) - {overlap}), {stride})]
    vectors = [read(model, before + piece + after) for piece in pieces]
    vector = np.average(vectors, axis=0, weights=[{weight} for piece in pieces])
    return {result}

def read(graph, ids, **more):
    ids = np.array([ids])
    content = (np.arange(ids.shape[1])[None] >= {of_prompt}).astype(np.int64)
    return run(graph, input_ids=ids, attention_mask=np.ones_like(ids), content_mask=content, **more)[0]

tokenizer.no_padding()
vectors = np.array([encode(text) for text in ["A long document ...", "Another one ..."]])
"""


def export_card(
    name: str, base: str, settings: dict[str, Any], prompt: str, of_prompt: int, error: float, int8_cosine: float | None
) -> str:
    """Return the card of an exported model, with a script that encodes documents without torch and this package."""
    reads = "any number of" if settings["max_length"] is None else f"{settings['max_length']:,}"
    precision = (
        f"its weights are float32, and its vectors differ from the model's by at most {error:.1e} of their length"
        if int8_cosine is None
        else "its encoder is quantised to 8 bits, and the cosine of its vectors and the model's was at least "
        f"{int8_cosine:.3f} on made-up texts"
    )
    return f"""# {name}

`{base}`, exported by simlte_st to ONNX: it reads {reads} tokens of a text and makes vectors of {settings["dimension"]}
numbers; {precision}.

## Usage

With simlte_st, which encodes texts of similar length together:

```python
import simlte_st  # pip install "simlte-st[onnx]"

vectors = simlte_st.load_onnx("{name}").{encode_call(settings)}
```

Anywhere else, without torch, in this folder:

```python
{_script(settings, prompt, of_prompt)}```
"""


def _script(settings: dict[str, Any], prompt: str, of_prompt: int) -> str:
    graph, *heads = settings["graphs"]
    start = _START.format(graph=graph) + (_SPECIAL_WORDS if settings["split_special_tokens"] else "")
    start += f'head = InferenceSession("{heads[0]}")\n' if heads else ""
    chunks = settings["chunks"]
    if chunks is None:
        return f"{start}\n{_RUN}" + _WHOLE.format(prompt=prompt, of_prompt=of_prompt)
    prefix = max(1, of_prompt)
    room = chunks["length"] - prefix - 1
    return f"{start}\n{_RUN}" + _CHUNKS.format(
        prompt=prompt,
        prefix=prefix,
        of_prompt=of_prompt,
        room=room,
        overlap=chunks["overlap"],
        stride=room - chunks["overlap"],
        weight="1" if chunks["equal_weights"] else "len(piece) or 1",
        result="read(head, ids, embedding=vector[None].astype(np.float32))" if heads else "vector",
    )
