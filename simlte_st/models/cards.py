"""Model cards of saved and of exported models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from huggingface_hub import RepoCard
from huggingface_hub.repocard import metadata_save

from simlte_st.errors import SimlteError
from simlte_st.files import MODEL_FILE, read_json
from simlte_st.models.names import (
    HUB_BASE,
    PACKAGED_BASE,
    cached_folder,
    encode_call,
    local_folder,
    settings_of,
    shown_base,
)

_INSTALL = "pip install -U sentence-transformers"
_INSTALL_OWN = "pip install .    # in a clone of simlte_st, which is not on PyPI yet"
_KEPT = {"language", "library_name", "license", "license_link", "license_name", "pipeline_tag", "tags"}
"""Front matter to keep of a card: nothing about the results, training data and emissions of another model."""

_INHERITED = {"language", "license", "license_link", "license_name", "base_model"}
"""Front matter that a model has from its base."""

_PLACE = "`{name}` stands for the path of this folder, or for its name on the Hub."

_WITHOUT_TORCH = """\
Without torch:

```python
from model2vec import StaticModel  # pip install "model2vec>=0.10"; earlier versions read 512 tokens of a text

model = StaticModel.from_pretrained("{name}")
vectors = model.encode(["A long document ...", "Another one ..."])
```
"""


def write_model_card(folder: Path, *, name: str, base: str, summary: str, about: str) -> None:
    """Write the card of a model that this package made: its purpose, usage and origin.

    Licence and language are the base's. The training details that sentence-transformers generates follow.
    """
    path = folder / "README.md"
    card = RepoCard.load(path, ignore_metadata_errors=True)
    generated = "\n## Model Details\n" in card.text.partition("\n## Usage\n")[0]
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", base) and not Path(base).exists()
    public = HUB_BASE if base == PACKAGED_BASE else base if on_hub else None
    link = f"[{public}](https://huggingface.co/{public})" if public else f"`{shown_base(base)}`"
    matter = {each: value for each, value in card.data.to_dict().items() if each in _KEPT}
    matter = {each: value for each, value in _inherited(base).items() if each not in matter} | matter
    if public:
        matter["base_model"] = public
    settings, own, model2vec = settings_of(folder), needs_package(folder), _is_model2vec(folder)
    if model2vec:
        matter["tags"] = list(dict.fromkeys([*matter.get("tags", ()), "static-embeddings", "model2vec"]))
    package, install = ("simlte_st", _INSTALL_OWN) if own else ("sentence_transformers", _INSTALL)
    without_torch = model2vec and not any((settings.get("prompts") or {}).values()) and "StaticModel" not in about
    parts = [
        f"\n# {name}\n",
        f"{summary}\n\n- **Base model:** {link}\n",
        f"## Usage\n\n```bash\n{install}\n```\n\n```python\nfrom {package} import SentenceTransformer\n\n"
        f'model = SentenceTransformer("{name}")\nvectors = model.{encode_call(settings)}\n```\n',
        *([_WITHOUT_TORCH.format(name=name)] if without_torch else []),
        _PLACE.format(name=name)
        + (" The stock class of sentence-transformers loads it too, after `import simlte_st`." if own else "")
        + "\n",
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


def _is_model2vec(folder: Path) -> bool:
    config = folder / "config.json"
    return config.exists() and read_json(config).get("model_type") == "model2vec"


def _inherited(base: str) -> dict[str, Any]:
    """Return licence, language and public ancestor from the card of a base that is on this machine."""
    try:
        place = local_folder(base) or cached_folder(base) or ""
        data = RepoCard.load(Path(place, "README.md"), ignore_metadata_errors=True).data.to_dict()
    except (OSError, ValueError, SimlteError):  # no card
        return {}
    return {name: value for name, value in data.items() if name in _INHERITED}


def _training_details(body: str) -> str:
    """Return arguments, logs and citations from a card that sentence-transformers generated.

    Its training time is left out, since it counts until the card is written.
    """
    details = body.partition("\n## Training Details\n")[2]
    details = re.sub(r"### Training Time\n.*?(?=###)", "", details, flags=re.DOTALL)
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
    """Return the card of an ONNX export, with a script that encodes documents without torch and this package."""
    reads = "any number of" if settings["max_length"] is None else f"{settings['max_length']:,}"
    special = _SPECIAL_WORDS if settings["split_special_tokens"] else ""
    script = _SCRIPT.format(special=special, prompt=prompt, of_prompt=of_prompt)
    precision = (
        f"the weights are float32, and vectors differ from the original model's by at most {error:.1e} of their length"
        if int8_cosine is None
        else "the encoder is quantised to 8 bits, and on made-up texts the cosine between its vectors and the original "
        f"model's was at least {int8_cosine:.3f}"
    )
    return f"""# {name}

`{base}`, exported by simlte_st to ONNX. It reads {reads} tokens of a text, and its embeddings have
{settings["dimension"]} dimensions; {precision}.

## Usage

With simlte_st, which batches texts of similar length:

```python
import simlte_st  # pip install ".[onnx]" in a clone of simlte_st, which is not on PyPI yet

vectors = simlte_st.load_onnx("{name}").{encode_call(settings)}
```

Without torch and simlte_st (`pip install numpy onnxruntime tokenizers`), run in this folder:

```python
{script}```
"""
