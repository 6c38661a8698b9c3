"""The card of an exported model, with a script that uses it without torch and without this package."""

from __future__ import annotations

from typing import Any

from tokenizers import Tokenizer

from simlte_st.models.onnx_encoder import GRAPH_FILE, HEAD_FILE, prompt_tokens

_START = """\
import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

tokenizer, model = Tokenizer.from_file("tokenizer.json"), InferenceSession("{graph}")
"""

_MARKS = "tokenizer.encode_special_tokens = True  # words such as [MASK] are text\n"

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
    name: str, base: str, settings: dict[str, Any], tokenizer: Tokenizer, error: float, int8_cosine: float | None
) -> str:
    """Write the card."""
    reads = "any number of" if settings["max_length"] is None else f"{settings['max_length']:,}"
    precision = (
        f"its weights are float32, and its vectors the model's up to {error:.1e} of their length"
        if int8_cosine is None
        else "its encoder is quantised to 8 bits, and the cosine of its vectors and the model's was "
        f"{int8_cosine:.3f} at least on made-up texts"
    )
    return f"""# {name}

`{base}`, exported by simlte_st to ONNX: it reads {reads} tokens of a text and makes vectors of {settings["dimension"]}
numbers; {precision}.

## Usage

With simlte_st, which computes texts of like lengths together:

```python
import simlte_st  # pip install "simlte-st[onnx]"

vectors = simlte_st.load_onnx("{name}").encode(["A long document ...", "Another one ..."])
```

Anywhere else, without torch, in this folder:

```python
{_script(settings, tokenizer)}```
"""


def _script(settings: dict[str, Any], tokenizer: Tokenizer) -> str:
    prompt = settings["prompts"].get(settings["default_prompt_name"], "")
    of_prompt = prompt_tokens(tokenizer, prompt)
    start = _START.format(graph=GRAPH_FILE) + (_MARKS if settings["split_special_tokens"] else "") + "\n" + _RUN
    chunks = settings["chunks"]
    if chunks is None:
        return start + _WHOLE.format(prompt=prompt, of_prompt=of_prompt)
    prefix = max(1, of_prompt)
    room = chunks["length"] - prefix - 1
    result = "vector"
    if HEAD_FILE in settings["graphs"]:
        start = start.replace("\n\n", f'\nhead = InferenceSession("{HEAD_FILE}")\n\n', 1)
        result = "read(head, ids, embedding=vector[None].astype(np.float32))"
    return start + _CHUNKS.format(
        prompt=prompt,
        prefix=prefix,
        of_prompt=of_prompt,
        room=room,
        overlap=chunks["overlap"],
        stride=room - chunks["overlap"],
        weight="1" if chunks["equal_weights"] else "len(piece) or 1",
        result=result,
    )
