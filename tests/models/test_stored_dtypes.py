"""16-bit checkpoints compute in float32 on a CPU wherever a model is named, unless another dtype is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sentence_transformers
import torch
from chunk_mean_support import SIZES
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_document, make_tokenizer
from transformers import (
    BertConfig,
    BertModel,
    Gemma3TextConfig,
    Gemma3TextModel,
    LlamaConfig,
    LlamaModel,
    PreTrainedModel,
    T5Config,
    T5EncoderModel,
)

from simlte_st.errors import ResumeError
from simlte_st.files import WorkFolder
from simlte_st.models.conversion import convert_base
from simlte_st.models.device import default_dtype
from simlte_st.models.encode import PARTS, encode_documents, loading_device
from simlte_st.models.loading import load_model
from simlte_st.models.parts import model_identity
from simlte_st.models.sentence_transformers import SentenceTransformer

TEXTS = [make_document(number, sentences=1 + number) for number in range(8)]
SHAPE = {**SIZES, "vocab_size": 140}
ENCODERS: dict[str, Callable[[], PreTrainedModel]] = {
    "bert": lambda: BertModel(BertConfig(**SHAPE, max_position_embeddings=64)),
    "llama": lambda: LlamaModel(LlamaConfig(**SHAPE, max_position_embeddings=64)),
    # Its scale is a buffer, which is rounded if the model is created in 16 bits.
    "gemma": lambda: Gemma3TextModel(Gemma3TextConfig(**SHAPE, head_dim=8, num_key_value_heads=2)),
    "t5": lambda: T5EncoderModel(T5Config(vocab_size=140, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)),
}


def write(folder: Path, name: str, dtype: torch.dtype = torch.bfloat16) -> tuple[Path, Path]:
    """Write an encoder in 16 bits, and the same weights in 32."""
    torch.manual_seed(1)
    ENCODERS[name]().to(dtype).save_pretrained(folder / "raw")
    make_tokenizer().save_pretrained(folder / "raw")
    modules = [Transformer(str(folder / "raw"), model_kwargs={"dtype": dtype}), Pooling(32, "mean"), Dense(32, 20)]
    modules = modules[: 2 if name == "bert" else 3]
    model = sentence_transformers.SentenceTransformer(modules=modules, device="cpu").to(dtype)
    for place, kind in (("narrow", dtype), ("wide", torch.float32)):
        model.to(kind).save_pretrained(str(folder / place))
    return folder / "narrow", folder / "wide"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ENCODERS)
def test_16_bit_checkpoints_compute_in_float32(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    narrow, wide = write(tmp_path, name, dtype)
    stock = sentence_transformers.SentenceTransformer(str(wide), device="cpu")
    own, loaded = SentenceTransformer(str(narrow), device="cpu"), load_model(narrow, device="cpu").model
    for model in (own, loaded):
        assert {each.dtype for each in model.parameters()} == {torch.float32}
        np.testing.assert_allclose(model.encode(TEXTS), stock.encode(TEXTS), rtol=0, atol=1e-5)
    assert model_identity(own) == model_identity(loaded) == model_identity(load_model(wide, device="cpu").model)


@pytest.mark.parametrize("backbone", ["longformer", "chunk-mean"])
def test_conversion_keeps_the_stored_dtype(backbone: str, tmp_path: Path) -> None:
    narrow, wide = write(tmp_path, "bert")
    for place in (narrow, wide):
        convert_base(place, tmp_path / f"{place.name}-long", backbone=backbone, max_length=120)
    kept = load_model(tmp_path / "narrow-long", dtype="auto", device="cpu").model
    assert {each.dtype for each in kept.parameters()} == {torch.bfloat16}
    longer = [load_model(tmp_path / f"{kind}-long", device="cpu").model for kind in ("narrow", "wide")]
    assert {each.dtype for each in longer[0].parameters()} == {torch.float32}
    np.testing.assert_allclose(*(model.encode(TEXTS) for model in longer), rtol=0, atol=1e-5)


def test_gpus_compute_in_the_stored_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [default_dtype(each) for each in ("cpu", "cuda", "cuda:1", "mps")] == [torch.float32, None, None, None]
    for found, expected in (("cpu", torch.float32), ("cuda", None)):
        monkeypatch.setattr("simlte_st.models.device.get_device_name", lambda name=found: name)
        assert default_dtype(None) is expected
    for several, expected in ((["cuda:0", "cuda:1"], "cuda:0"), (["cpu", "cpu"], "cpu"), (["cuda:0", "cpu"], "cpu")):
        assert loading_device(several) == expected


def test_resuming_with_another_dtype_is_refused(docs: Path, tmp_path: Path) -> None:
    folder, _ = write(tmp_path / "model", "llama")
    output = tmp_path / "v.parquet"
    narrow, wide = (load_model(folder, dtype=dtype, device="cpu").model for dtype in ("auto", None))
    settings = {"normalize": False, **model_identity(narrow), "dtype": "torch.bfloat16"}
    interrupted = WorkFolder(output, PARTS)
    interrupted.open(settings)
    interrupted.release()
    with pytest.raises(ResumeError, match=r"dtype: was 'torch\.bfloat16', is 'torch\.float32'"):
        encode_documents(wide, docs, output, resume=True, progress=False)


def test_requested_dtype_is_used(tmp_path: Path) -> None:
    name = str(write(tmp_path, "bert")[0])
    for asked in ({"dtype": torch.bfloat16}, {"torch_dtype": torch.bfloat16}, {"dtype": "auto"}):
        assert SentenceTransformer(name, device="cpu", model_kwargs=asked).dtype is torch.bfloat16
    for dtype in (torch.bfloat16, "auto"):
        assert load_model(name, dtype=dtype, device="cpu").model.dtype is torch.bfloat16
