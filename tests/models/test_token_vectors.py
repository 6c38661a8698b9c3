import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_texts import texts as odd_texts
from safetensors.numpy import load_file, save_file
from support import make_static_model, write_model2vec

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.models.loading import load_model
from simlte_st.models.vectors import TokenVectors
from simlte_st.search import Index
from simlte_st.search.encoder import Encoder

KINDS = ("mean", "unit", "prompts")
STORED = ("float32", "float16", "int8", "mapped")


@pytest.fixture(scope="module")
def places(documents: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a static model of each kind."""
    folder = tmp_path_factory.mktemp("static")
    for kind in KINDS:
        model = make_static_model()
        if kind == "mean":
            del model[1]
        if kind == "prompts":
            model.prompts = {"query": documents[0][:20], "document": "", "passage": documents[1][:30]}
        model.save_pretrained(str(folder / kind))
    for kind in STORED:
        write_model2vec(folder / kind, make_static_model(), kind)
    return folder


@pytest.mark.parametrize("kind", [*KINDS, *STORED])
def test_vectors_and_identity_match_the_modules(places: Path, documents: list[str], kind: str) -> None:
    quick, model = Encoder(places / kind), Encoder(load_model(places / kind).model)
    assert quick.quick is not None
    assert quick.identity() == model.identity()

    @settings(max_examples=25)
    @given(st.lists(st.one_of(odd_texts, st.sampled_from(documents), st.just("")), min_size=1, max_size=4))
    def compare(texts: list[str]) -> None:
        found, expected = quick.encode(texts), model.encode(texts)
        np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-6)
        assert found.tokens == expected.tokens
        np.testing.assert_allclose(quick.query(texts[0]), model.query(texts[0]), atol=1e-6)

    compare()
    assert quick.documents([]).shape == model.documents([]).shape


def test_other_models_are_left_to_sentence_transformers(places: Path, encoder_path: Path, tmp_path: Path) -> None:
    assert TokenVectors.load(encoder_path) is None
    assert TokenVectors.load(tmp_path / "nothing") is None
    other = tmp_path / "other"
    make_static_model().save_pretrained(str(other))
    modules = json.loads((other / "modules.json").read_text())
    for kind in ("sentence_transformers.models.Dense", "simlte_st.modules.TokenTable", "theirs.StaticEmbedding"):
        (other / "modules.json").write_text(json.dumps([modules[0], {**modules[1], "type": kind}]))
        assert TokenVectors.load(other) is None


def test_index_detects_changed_weights(documents: list[str], static_path: Path, tmp_path: Path) -> None:
    place = shutil.copytree(static_path, tmp_path / "model")
    Index.create(tmp_path / "index", place).add([Document("d0", documents[0])])
    assert Index.open(tmp_path / "index").search(documents[0])
    with pytest.raises(ConfigurationError, match="cdua"):
        Index.open(tmp_path / "index", device="cdua").search(documents[0])
    weights = {name: values * np.float32(1.5) for name, values in load_file(place / "model.safetensors").items()}
    save_file(weights, place / "model.safetensors")
    with pytest.raises(ModelError, match="was made with a different model"):
        Index.open(tmp_path / "index").search(documents[0])
