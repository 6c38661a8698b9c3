"""The cards of models and of exported models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from huggingface_hub import RepoCard
from huggingface_hub.repocard import metadata_save

from simlte_st.files import MODEL_FILE, read_json
from simlte_st.models.names import HUB_BASE, PACKAGED_BASE, encode_call, settings_of, shown_base

MODEL_ID = "sentence_transformers_model_id"
"""Placeholder in a card for a model that is not on the Hub yet."""

_INSTALL = "pip install -U sentence-transformers"
_KEPT = {"language", "library_name", "license", "license_link", "license_name", "pipeline_tag", "tags"}
"""What is kept of a base's front matter, without its results, training data and emissions."""


def write_model_card(folder: Path, *, name: str, base: str, summary: str, about: str) -> None:
    """Write the card of a model that this package made: what it is, how to use it, and how it was made.

    The details of a card that sentence-transformers generated follow. Of a base's card that somebody wrote, licence,
    language and tags are kept.
    """
    path = folder / "README.md"
    card = RepoCard.load(path, ignore_metadata_errors=True)
    matter, generated = card.data.to_dict(), "\n## Model Details\n" in card.text.partition("\n## Usage\n")[0]
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", base) and not Path(base).exists()
    public = HUB_BASE if base == PACKAGED_BASE else base if on_hub else None
    link = f"[{public}](https://huggingface.co/{public})" if public else f"`{shown_base(base)}`"
    if not generated:
        matter = {name: value for name, value in matter.items() if name in _KEPT}
        link += ", which has a card of its own"
    if public:
        matter["base_model"] = public
    own = needs_package(folder)
    package, install = ("simlte_st", f"{_INSTALL} simlte-st") if own else ("sentence_transformers", _INSTALL)
    parts = [
        f"\n# {name}\n",
        f"{summary}\n\n- **Base model:** {link}\n",
        f"## Usage\n\n```bash\n{install}\n```\n\n```python\nfrom {package} import SentenceTransformer\n\n"
        f'model = SentenceTransformer("{MODEL_ID}")\n'
        f"vectors = model.{encode_call(settings_of(folder))}\n```\n",
        *(["sentence-transformers' own class loads it too, after `import simlte_st`.\n"] if own else []),
        about.strip() + "\n",
        *([f"## Training Details\n{_training_details(card.text)}"] if generated else []),
    ]
    path.write_text("\n".join(parts), encoding="utf-8")
    metadata_save(path, matter)


def needs_package(folder: Path) -> bool:
    """Return whether a model's folder has modules of this package or its Longformer."""
    modules, config = folder / MODEL_FILE, folder / "config.json"
    if modules.exists() and any(module["type"].startswith("simlte_st.") for module in read_json(modules)):
        return True
    return config.exists() and read_json(config).get("model_type") == "simlte_longformer"


def _training_details(body: str) -> str:
    """Return losses, arguments, logs and citations from a card that sentence-transformers generated."""
    details = body.partition("\n## Training Details\n")[2]
    return re.sub(r"<!--.*?-->\n*", "", details, flags=re.DOTALL).rstrip() + "\n"  # hints to authors


# Exported models.

_SPECIAL_WORDS = "tokenizer.encode_special_tokens = True  # words such as [MASK] are text\n"

_SCRIPT = """\
import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

tokenizer, model = Tokenizer.from_file("tokenizer.json"), InferenceSession("model.onnx")
{special}
read = tokenizer.encode_batch([{prompt!r} + text for text in ["A long document ...", "Another one ..."]])
ids, mask = np.array([each.ids for each in read]), np.array([each.attention_mask for each in read])
content = mask * (np.arange(mask.shape[1]) >= {of_prompt})
features = {{"input_ids": ids, "attention_mask": mask, "content_mask": content}}
vectors = model.run(None, {{each.name: features[each.name] for each in model.get_inputs()}})[0]
"""


def export_card(
    name: str, base: str, settings: dict[str, Any], prompt: str, of_prompt: int, error: float, int8_cosine: float | None
) -> str:
    """Return the card of an exported model, with a script that encodes documents without torch and this package."""
    reads = "any number of" if settings["max_length"] is None else f"{settings['max_length']:,}"
    special = _SPECIAL_WORDS if settings["split_special_tokens"] else ""
    script = _SCRIPT.format(special=special, prompt=prompt, of_prompt=of_prompt)
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
{script}```
"""
