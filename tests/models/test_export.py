from __future__ import annotations

import json
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
from simlte_st.modules import LatentSemanticAnalysis, PositionPooling

TEXTS = ["", "ba.", make_document(1, 1), *(make_document(number, 1 + 3 * number) for number in range(2, 7))]
"""Of 2 to 150 tokens and more, in no order."""


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
    """Run the card's script where there is no torch; give its vectors."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    script = re.findall(r"```python\n(.*?)```", card, re.DOTALL)[1]
    code = (
        f"import sys; sys.modules['torch'] = sys.modules['simlte_st'] = None\n{script}\nnp.save('vectors.npy', vectors)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder)
    return np.load(folder / "vectors.npy")


CARD_TEXTS = ["A long document ...", "Another one ..."]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "modernbert"])
def test_encoders(family: str, tmp_path: Path) -> None:
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


def test_modules_behind_the_encoder_and_a_prompt_that_is_not_counted(documents: list[str], tmp_path: Path) -> None:
    model = make_model(tmp_path / "encoder", length=60)
    model[1] = PositionPooling(32, flat=4, include_prompt=False)
    model.append(LatentSemanticAnalysis.fit(model, documents, dimension=4))
    model.prompts, model.default_prompt_name = {"document": "ba wei: "}, "document"
    source = save(model, tmp_path / "model")
    made = export_model(source, tmp_path / "onnx")
    assert made.dimension == 36
    assert_same_vectors(source, made.output)
    assert_same_vectors(source, made.output, prompt="mo mo ")
    vectors = SentenceTransformer(str(source), device="cpu", trust_remote_code=True).encode(CARD_TEXTS)
    assert np.abs(run_script(made.output) - vectors).max() < 1e-5


@pytest.mark.parametrize("backbone", ["longformer", "chunk-mean"])
def test_models_of_long_documents_are_refused(backbone: str, encoder_path: Path, tmp_path: Path) -> None:
    convert_base(encoder_path, tmp_path / "model", backbone=backbone, max_length=200)
    with pytest.raises(ModelError, match="cannot be exported: only stock encoders"):
        export_model(tmp_path / "model", tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_quantised(encoder_path: Path, tmp_path: Path) -> None:
    small = export_model(encoder_path, tmp_path / "onnx", dtype="int8")
    weights = onnx.load(str(small.output / "model.onnx")).graph.initializer
    assert {onnx.TensorProto.INT8, onnx.TensorProto.UINT8} & {weight.data_type for weight in weights}
    assert 0.9 < small.cosine < 1 - 1e-6
    assert "quantised" in (small.output / "README.md").read_text(encoding="utf-8")
    expected = SentenceTransformer(str(encoder_path), device="cpu").encode(TEXTS)
    found = simlte_st.load_onnx(small.output).encode(TEXTS)
    cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.9


def test_encode(encoder_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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
    with pytest.raises(KeyError, match="query"):
        encoder.encode(TEXTS, prompt_name="query")


def test_what_cannot_be_exported(encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        with pytest.raises(ModelError, match="other vectors"):
            export_model(encoder_path, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()
    with pytest.raises(ModelError, match=r"export\.json"):
        simlte_st.load_onnx(encoder_path)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "modules.json").touch()
    with pytest.raises(ConfigurationError, match=r"without export\.json"):
        export_model(encoder_path, tmp_path / "thesis", overwrite=True)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"\[onnx\]"):
        export_model(encoder_path, tmp_path / "onnx")


# Static models.

STATIC_TEXTS = [*TEXTS, "\u16a0 ba \u16a1", "Ba. " * 700 + "Bun dal. " * 700]


@pytest.fixture
def tabled() -> SentenceTransformer:
    """A static model whose unknown token is zeros: model2vec skips it. Some tokens' vectors are much longer."""
    model = make_static_model()
    weights = model[0].embedding.weight.data
    weights *= torch.logspace(-3, 3, len(weights))[:, None]
    weights[model.tokenizer.token_to_id("[UNK]")] = 0
    model[0].tokenizer.no_truncation()
    return model


def cosines(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    sizes = np.linalg.norm(found.astype(np.float32), axis=1) * np.linalg.norm(expected, axis=1)
    return (found * expected).sum(axis=1) / np.where(sizes > 0, sizes, 1)


def test_a_static_model_is_loaded_without_this_package(tabled: SentenceTransformer, tmp_path: Path) -> None:
    pytest.importorskip("model2vec", reason="needs the extra static")
    source, expected = save(tabled, tmp_path / "model"), tabled.encode(STATIC_TEXTS)
    (tmp_path / "texts.json").write_text(json.dumps(STATIC_TEXTS))
    folders = {dtype: export_model(source, tmp_path / dtype, dtype=dtype) for dtype in ("float32", "float16", "int8")}
    sizes = [made.bytes for made in folders.values()]
    assert sizes == sorted(sizes, reverse=True)
    for library, call, hidden in (
        ("model2vec", "StaticModel.from_pretrained", "torch"),
        ("sentence_transformers", "SentenceTransformer", "simlte_st"),
    ):
        code = (
            f"import sys; sys.modules[{hidden!r}] = sys.modules['simlte_st'] = None; import json, numpy as np\n"
            f"from {library} import {call.partition('.')[0]}\ntexts = json.load(open('texts.json'))\n"
            f"np.savez('{library}.npz', **{{name: {call}(name).encode(texts) for name in {[*folders]}}})"
        )
        subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
        vectors = np.load(tmp_path / f"{library}.npz")
        for dtype, made in folders.items():
            own = simlte_st.SentenceTransformer(made.output, device="cpu").encode(STATIC_TEXTS)
            for found in (vectors[dtype], own):
                assert not found[0].any(), "a text without tokens"
                assert cosines(found, expected)[1:].min() > {"float32": 1 - 1e-6, "float16": 1 - 1e-5}.get(dtype, 0.999)
            assert made.cosine > 0.999
            assert f'StaticModel.from_pretrained("{dtype}")' in (made.output / "README.md").read_text(encoding="utf-8")


def test_a_static_model_keeps_its_largest_dimensions(tabled: SentenceTransformer, tmp_path: Path) -> None:
    pytest.importorskip("model2vec", reason="needs the extra static")
    weights = tabled[0].embedding.weight.data
    turned = torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(1)))[0]
    weights[:] = weights.nan_to_num() * torch.tensor([1.0] * 4 + [1e-3] * 28) @ turned
    made = export_model(save(tabled, tmp_path / "model"), tmp_path / "small", dimension=4)
    assert made.dimension == 4
    assert 0.999 < made.cosine < 1
    found, expected = SentenceTransformer(str(made.output)).encode(TEXTS), tabled.encode(TEXTS)
    assert np.abs(found @ found.T - expected @ expected.T).max() < 1e-3


def test_a_static_model_without_length_1_keeps_its_lengths(tabled: SentenceTransformer, tmp_path: Path) -> None:
    pytest.importorskip("model2vec", reason="needs the extra static")
    del tabled[1]
    made = export_model(save(tabled, tmp_path / "model"), tmp_path / "small", dtype="int8")
    expected = tabled.encode(TEXTS)
    found = SentenceTransformer(str(made.output)).encode(TEXTS)
    assert np.abs(found - expected).max() < 0.01 * np.abs(expected).max()


@pytest.mark.parametrize("what", ["prompts", "truncate_dim", "LatentSemanticAnalysis"])
def test_what_model2vec_does_not_read(
    what: str, tabled: SentenceTransformer, documents: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("model2vec", reason="needs the extra static")
    if what == "prompts":
        tabled.prompts = {"query": "ba "}
    elif what == "truncate_dim":
        tabled.truncate_dim = 8
    else:
        tabled.append(LatentSemanticAnalysis.fit(tabled, documents, dimension=4))
    with pytest.raises(ModelError, match=f"has {what}, which model2vec does not read"):
        export_model(save(tabled, tmp_path / "model"), tmp_path / "small")
    assert not (tmp_path / "small").exists()


def test_what_does_not_fit_an_encoder(
    encoder_path: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in ({"dtype": "float16"}, {"dimension": 8}):
        with pytest.raises(ConfigurationError, match="is an encoder"):
            export_model(encoder_path, tmp_path / "onnx", **wrong)
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(MissingExtraError, match=r"\[static\]"):
        export_model(static_path, tmp_path / "small")
