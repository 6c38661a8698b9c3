"""A folder with an ONNX graph and no weights encodes as the checkpoint that the graph was made of."""

from __future__ import annotations

import copy
import pickle
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_document, write_graph

from simlte_st.cli.main import main
from simlte_st.errors import ModelError
from simlte_st.models.export import export_onnx
from simlte_st.models.loading import load_model
from simlte_st.search import Index

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

TEXTS = ["", "ba bun", *(make_document(number, sentences=number + 1) for number in range(8))]


@pytest.fixture(scope="module")
def checkpoint(bert_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with modules after its encoder."""
    folder = tmp_path_factory.mktemp("models") / "checkpoint"
    modules = [Transformer(str(bert_path)), Pooling(32, "mean"), Dense(32, 20)]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def graph(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_graph(checkpoint, tmp_path_factory.mktemp("models") / "graph")


def encoded(folder: Path) -> np.ndarray:
    return np.asarray(load_model(folder, graphs=True, device="cpu").model.encode(TEXTS))


def test_its_vectors_are_those_of_the_checkpoint(checkpoint: Path, graph: Path, tmp_path: Path) -> None:
    expected = SentenceTransformer(str(checkpoint), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(encoded(graph), expected, atol=1e-5)


def test_an_export_is_for_load_onnx(encoder_path: Path, tmp_path: Path) -> None:
    export_onnx(encoder_path, tmp_path / "exported")
    with pytest.raises(ModelError, match=r"export, which simlte_st\.load_onnx\(\) reads"):
        load_model(tmp_path / "exported", graphs=True)


def test_it_can_be_copied_and_sent_to_another_process(graph: Path) -> None:
    model = load_model(graph, graphs=True, device="cpu").model
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(other.encode(TEXTS), model.encode(TEXTS), atol=1e-6)


def test_an_index_knows_its_graph(checkpoint: Path, graph: Path, tmp_path: Path) -> None:
    Index.create(tmp_path / "ix", graph).add(TEXTS[1:])
    assert Index.open(tmp_path / "ix").search(TEXTS[5], mode="dense", top_k=1)[0].cosine == pytest.approx(1, abs=1e-5)
    other = Path(shutil.copytree(checkpoint, tmp_path / "other"))
    weights = load_file(other / "model.safetensors")
    save_file({name: value + 0.1 for name, value in weights.items()}, other / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="another model"):
        Index.open(tmp_path / "ix", write_graph(other, tmp_path / "other-graph")).load()


def test_it_cannot_be_trained(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs, out = tmp_path / "docs.csv", tmp_path / "out"
    docs.write_text("text\n" + "".join(f"Ba bei {number}. Un du.\n" for number in range(9)))
    assert main(shlex.split(f"train {docs} --base {graph} --output {out}")) == 1
    assert "has no weights, only the graph onnx/model.onnx" in " ".join(capsys.readouterr().err.split())
    assert not out.exists()
