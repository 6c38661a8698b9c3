from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from chunk_mean_support import make_model
from sentence_transformers import SentenceTransformer
from support import make_document, make_static_model

import simlte_st
from simlte_st.errors import ConfigurationError, MissingExtraError, ModelError
from simlte_st.models.conversion import convert_base
from simlte_st.models.export import export_model
from simlte_st.models.lsa import end_with_lsa
from simlte_st.modules import PositionPooling, TokenTable

TEXTS = ["", "ba.", make_document(1, 1), *(make_document(number, 1 + 3 * number) for number in range(2, 7))]
"""Texts of 2 to more than 150 tokens, unsorted."""


def save(model: SentenceTransformer, folder: Path) -> Path:
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


def assert_same_vectors(source: Path, folder: Path, texts: list[str] = TEXTS, **options: Any) -> None:
    expected = SentenceTransformer(str(source), device="cpu", trust_remote_code=True).encode(texts, **options)
    found = simlte_st.load_onnx(folder).encode(texts, **options)
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-5 * max(1, np.abs(expected).max())


def run_script(folder: Path) -> np.ndarray:
    """Run the card's script without torch and return its vectors."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    script = re.findall(r"```python\n(.*?)```", card, re.DOTALL)[1]
    code = (
        f"import sys; sys.modules['torch'] = sys.modules['simlte_st'] = None\n{script}\nnp.save('vectors.npy', vectors)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder)
    return np.load(folder / "vectors.npy")


CARD_TEXTS = ["A long document ...", "Another one ..."]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "modernbert"])
def test_exported_encoder_matches_the_model(family: str, tmp_path: Path) -> None:
    model = make_model(tmp_path / "encoder", family, length=60)
    model.prompts = {"query": "ba wei: "}
    source = save(model, tmp_path / "model")
    made = export_model(source, tmp_path / "onnx")
    assert made.cosine > 1 - 1e-6
    assert made.dimension == 32
    assert_same_vectors(source, made.output)
    assert_same_vectors(source, made.output, prompt_name="query", normalize_embeddings=True)
    if family == "bert":
        vectors = SentenceTransformer(str(source), device="cpu").encode(CARD_TEXTS)
        assert np.abs(run_script(made.output) - vectors).max() < 1e-5


def test_export_with_further_modules_and_excluded_prompt(documents: list[str], tmp_path: Path) -> None:
    model = make_model(tmp_path / "encoder", length=60)
    model[1] = PositionPooling(32, flat=4, include_prompt=False)
    end_with_lsa([model], documents, 4)
    model.prompts, model.default_prompt_name = {"document": "ba wei: "}, "document"
    source = save(model, tmp_path / "model")
    made = export_model(source, tmp_path / "onnx")
    assert made.dimension == 36
    assert_same_vectors(source, made.output)
    assert_same_vectors(source, made.output, prompt="mo mo ")
    vectors = SentenceTransformer(str(source), device="cpu", trust_remote_code=True).encode(CARD_TEXTS)
    assert np.abs(run_script(made.output) - vectors).max() < 1e-5


@pytest.mark.parametrize("backbone", ["longformer", "chunk-mean"])
def test_long_document_models_are_refused(backbone: str, encoder_path: Path, tmp_path: Path) -> None:
    convert_base(encoder_path, tmp_path / "model", backbone=backbone, max_length=200)
    with pytest.raises(ModelError, match="cannot be exported: only stock encoders"):
        export_model(tmp_path / "model", tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_int8_export(encoder_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    small = export_model(encoder_path, tmp_path / "onnx", dtype="int8")
    assert not caplog.records  # of onnxruntime's quantisation
    weights = onnx.load(str(small.output / "model.onnx")).graph.initializer
    assert {onnx.TensorProto.INT8, onnx.TensorProto.UINT8} & {weight.data_type for weight in weights}
    assert 0.9 < small.cosine < 1 - 1e-6
    assert "quantised" in (small.output / "README.md").read_text(encoding="utf-8")
    expected = SentenceTransformer(str(encoder_path), device="cpu").encode(TEXTS)
    found = simlte_st.load_onnx(small.output).encode(TEXTS)
    cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.9


def test_onnx_encode(encoder_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoder = simlte_st.load_onnx(export_model(encoder_path, tmp_path / "mine").output)
    vectors = encoder.encode(TEXTS)
    assert np.abs(encoder.encode(TEXTS[2]) - vectors[2]).max() < 1e-5
    assert encoder.encode([]).shape == (0, 32)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        encoder.encode(["ba " * 62])
        assert not caplog.records
        encoder.encode(["ba " * 63, "ba"])
    assert re.search("1 of 2 .* 64 tokens", caplog.text)
    np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=1), vectors, atol=1e-6)
    for wrong in ({"prompt_name": "query"}, {"batch_size": 0}, {"texts": None}):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            encoder.encode(**{"texts": TEXTS, **wrong})


def test_unsupported_models_are_refused(encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Deciding(torch.nn.Module):
        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            if features["input_ids"].shape[0] > 2:
                features["sentence_embedding"] = features["sentence_embedding"] * 2
            return features

    from simlte_st.models import loading

    load = loading.load_model

    def deciding(*arguments: Any, **options: Any) -> Any:
        loaded = load(*arguments, **options)
        loaded.model.append(Deciding())
        return loaded

    with monkeypatch.context() as patch:
        patch.setattr(loading, "load_model", deciding)
        with pytest.raises(ModelError, match="different vectors"):
            export_model(encoder_path, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()
    with pytest.raises(ModelError, match=r"export\.json"):
        simlte_st.load_onnx(encoder_path)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "modules.json").touch()
    with pytest.raises(ConfigurationError, match=r"no export\.json"):
        export_model(encoder_path, tmp_path / "thesis", overwrite=True)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"\[onnx\]"):
        export_model(encoder_path, tmp_path / "onnx")


# Static models.

STATIC_TEXTS = [*TEXTS, "\u16a0 ba \u16a1", "Ba. " * 700 + "Bun dal. " * 700]
LOADERS = {
    "model2vec": ("torch", "StaticModel.from_pretrained"),
    "sentence_transformers": ("simlte_st", "SentenceTransformer"),
}
"""By library: a module that it must not need, and its loader."""


@pytest.fixture
def tabled() -> SentenceTransformer:
    """A static model with vectors of very different lengths, also for the unknown token, which model2vec skips."""
    pytest.importorskip("model2vec", reason="needs the extra static")
    model = make_static_model()
    weights = model[0].embedding.weight.data
    weights *= torch.logspace(-3, 3, len(weights))[:, None]
    weights[model.tokenizer.token_to_id("[UNK]")] *= 1e5
    model.tokenizer.no_truncation()
    return model


def test_static_models_load_without_this_package(tabled: SentenceTransformer, tmp_path: Path) -> None:
    source = save(tabled, tmp_path / "model")
    tabled[0].embedding.weight.data[tabled.tokenizer.token_to_id("[UNK]")] = 0
    expected = tabled.encode(STATIC_TEXTS)
    folders = {dtype: export_model(source, tmp_path / dtype, dtype=dtype) for dtype in ("float32", "float16", "int8")}
    found = {each: simlte_st.SentenceTransformer(tmp_path / each).encode(STATIC_TEXTS) for each in folders}
    for library, (hidden, load) in LOADERS.items():
        code = (
            f"import sys, numpy; sys.modules[{hidden!r}] = sys.modules['simlte_st'] = None; from {library} import *\n"
            f"numpy.savez('{library}', **{{each: {load}(each).encode({STATIC_TEXTS!a}) for each in {[*folders]}}})"
        )
        subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
        found |= {f"{each} {library}": vectors for each, vectors in np.load(tmp_path / f"{library}.npz").items()}
    assert len(found) == 9
    for name, vectors in found.items():
        tolerance = {"float32": 1e-5, "float16": 1e-3, "int8": 2e-2}[name.partition(" ")[0]]
        np.testing.assert_allclose(vectors, expected, atol=tolerance, err_msg=name)
    assert folders["float32"].bytes > 1.8 * folders["float16"].bytes > 3 * folders["int8"].bytes
    assert 'StaticModel.from_pretrained("int8")' in (tmp_path / "int8" / "README.md").read_text(encoding="utf-8")


def test_reduced_static_model_keeps_dot_products(
    tabled: SentenceTransformer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    del tabled[1]
    weights = tabled[0].embedding.weight.data
    turned = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(1)))[0]
    weights[:] = weights * torch.tensor([1.0] * 4 + [1e-3] * 28) @ turned
    made = export_model(save(tabled, tmp_path / "model"), tmp_path / "small", dimension=4, dtype="int8")
    assert made.dimension == 4
    assert 0.999 < made.cosine < 1
    assert not caplog.records
    less = export_model(tmp_path / "model", tmp_path / "less", dimension=2)
    assert less.cosine > 1 - 1e-5, "with the model's vectors in the same dimensions"
    [share] = re.findall(r"2 of 32 dimensions, which keep at least (0\.\d+) .* similarities change", caplog.text)
    assert float(share) < 0.8
    assert share in (less.output / "README.md").read_text(encoding="utf-8")
    found, expected = SentenceTransformer(str(made.output)).encode(TEXTS), tabled.encode(TEXTS)
    assert np.abs(found @ found.T - expected @ expected.T).max() < 0.02 * np.abs(expected @ expected.T).max()


def test_options_of_another_kind_are_refused(
    tabled: SentenceTransformer,
    encoder_path: Path,
    documents: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wrong in ({"dtype": "float16"}, {"dimension": 8}):
        with pytest.raises(ConfigurationError, match="is an encoder"):
            export_model(encoder_path, tmp_path / "small", **wrong)
    for name, change in (
        ("prompts", lambda: tabled.prompts.update(query="ba ")),
        ("truncate_dim", lambda: setattr(tabled, "truncate_dim", 8)),
        ("TokenTable", lambda: tabled.append(TokenTable(8, 50, 4))),
    ):
        change()
        with pytest.raises(ModelError, match=f"has {name}, which model2vec does not support"):
            export_model(save(tabled, tmp_path / name), tmp_path / "small")
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(MissingExtraError, match=r"\[static\]"):
        export_model(tmp_path / "prompts", tmp_path / "small")
    assert not (tmp_path / "small").exists()
