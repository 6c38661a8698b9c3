"""Model cards of saved and of exported models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from huggingface_hub import RepoCard
from huggingface_hub.repocard import metadata_save

from simlte_st.files import MODEL_FILE, read_json
from simlte_st.models import names
from simlte_st.models.names import encode_call, read_model_settings, shown_base

_STOCK = ("sentence_transformers", "pip install -U sentence-transformers")
_OWN = ("simlte_st", "pip install .    # in a clone of simlte_st, which is not on PyPI yet")
"""The package that loads a model, and its installation."""

_KEPT = {"language", "library_name", "license", "license_link", "license_name", "pipeline_tag", "tags"}
"""Front matter to keep of a card: nothing about the results, training data and emissions of another model."""

_INHERITED = {"base_model", "language", "license", "license_link", "license_name"}
"""Front matter to take from the card of the base."""

_NEW = "---\nlibrary_name: sentence-transformers\npipeline_tag: sentence-similarity\n---\n"

_WITHOUT_TORCH = 'Without torch (`pip install "model2vec>=0.10"`; earlier versions read only 512 tokens of a text):\n'


def write_model_card(folder: Path, *, name: str, base: str, summary: str, about: str) -> None:
    """Write the card of a model that this package made: its purpose, usage and origin.

    Licence and language are the base's. The training details that sentence-transformers generates follow.
    """
    path = folder / "README.md"
    card: Any = _load(path) or RepoCard(_NEW)
    generated = "\n## Model Details\n" in card.text.partition("\n## Usage\n")[0]
    on_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", base) and not Path(base).exists()
    public = names.HUB_BASE if base == names.PACKAGED_BASE else base if on_hub else None
    link = f"[{public}](https://huggingface.co/{public})" if public else f"`{shown_base(base)}`"
    matter = {each: value for each, value in card.data.to_dict().items() if each in _KEPT}
    matter = {each: value for each, value in _inherited(base).items() if each not in matter} | matter
    if public:
        matter["base_model"] = public
    settings, own, model2vec = read_model_settings(folder), needs_package(folder), _model_type(folder) == "model2vec"
    if model2vec:
        matter["tags"] = list(dict.fromkeys([*matter.get("tags", ()), "static-embeddings", "model2vec"]))
    package, install = _OWN if own else _STOCK
    usage = [f"```bash\n{install}\n```\n", _snippet(f"{package}.SentenceTransformer", "", name, encode_call(settings))]
    if model2vec and "StaticModel" not in about and not any((settings.get("prompts") or {}).values()):
        usage += [_WITHOUT_TORCH, _snippet("model2vec.StaticModel", ".from_pretrained", name, encode_call({}))]
    stock = " The stock class of sentence-transformers loads it too, after `import simlte_st`." * own
    place = f"`{name}` stands for the path of this folder, or for its name on the Hub.{stock}"
    summary = f"\n# {name}\n\n{summary}\n\n- **Base model:** {link}\n"
    parts = [summary, "## Usage\n", *usage, f"{place}\n", about.strip() + "\n"]
    if generated:
        parts.append(f"## Training Details\n{_training_details(card.text)}")
    path.write_text("\n".join(parts), encoding="utf-8")
    metadata_save(path, matter)


def needs_package(folder: Path) -> bool:
    """Return whether a model's folder has modules of this package or its Longformer."""
    modules = folder / MODEL_FILE
    if modules.exists() and any(module["type"].startswith("simlte_st.") for module in read_json(modules)):
        return True
    return _model_type(folder) == "simlte_longformer"


def _snippet(kind: str, method: str, name: str, call: str) -> str:
    package, _, kind = kind.rpartition(".")
    load = f'model = {kind}{method}("{name}")'
    return f"```python\nfrom {package} import {kind}\n\n{load}\nvectors = model.{call}\n```\n"


def _model_type(folder: Path) -> str | None:
    config = folder / "config.json"
    return read_json(config).get("model_type") if config.exists() else None


def _load(path: Path) -> Any:
    return RepoCard.load(path, ignore_metadata_errors=True) if path.is_file() else None


def _inherited(base: str) -> dict[str, Any]:
    """Return licence, language and public ancestor from the card of a base on this machine."""
    folder = names.local_folder(base) or names.cached_folder(base)
    card = _load(Path(folder, "README.md")) if folder else None
    return {name: value for name, value in card.data.to_dict().items() if name in _INHERITED} if card else {}


def _training_details(body: str) -> str:
    """Return arguments, logs and citations from a card that sentence-transformers generated.

    Its training time is left out: it includes everything until the card is written.
    """
    details = body.partition("\n## Training Details\n")[2]
    hints_and_time = r"<!--.*?-->\n*|### Training Time\n.*?(?=###)"
    return re.sub(hints_and_time, "", details, flags=re.DOTALL).rstrip() + "\n"


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
    reads = "any number of" if settings["max_length"] is None else f"up to {settings['max_length']:,}"
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
