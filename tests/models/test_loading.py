from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from chunk_mean_support import make_config
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import BoW, Pooling
from support import Runs, make_tokenizer
from transformers import AutoModel

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.evaluation.evaluator import reading_at_most
from simlte_st.models.loading import lengthen, load_model
from simlte_st.models.parts import weights_digest


def pooling_of(model: SentenceTransformer) -> Any:
    (pooling,) = (module for module in model if isinstance(module, Pooling))
    return pooling.pooling_mode


# From a folder.


@pytest.mark.parametrize(("asked", "found"), [("keep", "mean"), ("cls", "cls"), ("mean", "mean")])
def test_raw_checkpoint(bert_path: Path, asked: str, found: str) -> None:
    base = load_model(bert_path).copy(asked)
    assert not base.tuned
    assert base.name == str(bert_path)
    assert pooling_of(base.model) == found
    hidden = base.model.encode(["ba bei"], output_value="token_embeddings")[0]
    expected = hidden[0] if found == "cls" else hidden.mean(0)
    torch.testing.assert_close(base.model.encode(["ba bei"], convert_to_tensor=True)[0].cpu(), expected.cpu())


def test_model_without_transformer_is_refused(tmp_path: Path) -> None:
    SentenceTransformer(modules=[BoW(["ba", "bo"])], device="cpu").save_pretrained(str(tmp_path / "words"))
    with pytest.raises(ModelError, match="BoW"):
        load_model(tmp_path / "words")


def test_missing_weights_are_initialised_reproducibly(bert_path: Path) -> None:
    """A masked language model has no pooler; a random one is added, which affects no vector."""
    torch.manual_seed(1)
    state = torch.get_rng_state()
    one = load_model(bert_path).model
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    other = load_model(bert_path).model
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())
    [pooler] = (value for name, value in one.state_dict().items() if name.endswith(".pooler.dense.weight"))
    digest = weights_digest(one)
    pooler.add_(1)
    assert weights_digest(one) == digest
    next(one.parameters()).data.add_(1)
    assert weights_digest(one) != digest
    assert all(each.requires_grad for each in one.parameters())


def test_copy(encoder_path: Path) -> None:
    base = load_model(encoder_path, dtype=torch.bfloat16)
    before = {name: value.clone() for name, value in base.model.state_dict().items()}
    again = base.copy("cls", 20)
    assert (again.name, again.tuned) == (base.name, base.tuned)
    assert (pooling_of(base.model), base.model.max_seq_length) == ("mean", 64)
    assert (pooling_of(again.model), again.model.max_seq_length) == ("cls", 20)
    assert again.model.preprocess(["ba " * 50])["input_ids"].shape[1] == 20
    found_weights = again.model.state_dict()
    assert found_weights.keys() == before.keys()
    for name, value in before.items():
        assert found_weights[name].dtype == torch.bfloat16
        assert torch.equal(found_weights[name], value)
    with torch.no_grad():
        next(again.model.parameters()).zero_()
    assert all(torch.equal(value, before[name]) for name, value in base.model.state_dict().items())
    assert base.copy(max_seq_length=64).model.max_seq_length == 64
    with pytest.raises(ConfigurationError, match=r"max_seq_length=65: .* 64 tokens"):
        base.copy(max_seq_length=65)


# Length.


def write_encoder(path: Path, kind: str, positions: int, max_length: int) -> Path:
    """Write an encoder whose tokenizer has a limit of its own, ``max_length``."""
    tokenizer = make_tokenizer(max_length=max_length)
    AutoModel.from_config(make_config(kind, len(tokenizer), max_position_embeddings=positions)).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def test_positions_beyond_the_tokenizer_limit_are_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_encoder(tmp_path / "m", "modernbert", 256, 64)
    loaded = load_model(path)
    assert loaded.model.max_seq_length == 64
    caplog.clear()
    with caplog.at_level("INFO", "simlte_st"):
        assert not lengthen(loaded, 257), "it has no such positions"
        assert lengthen(loaded, 50)
        assert (loaded.model.max_seq_length, caplog.messages) == (64, []), "it reads so many already"
        assert lengthen(loaded, 200)
    [message] = caplog.messages
    assert re.match(rf"{re.escape(str(path))}: max_seq_length raised from 64 to 200", message)
    loaded.model.save_pretrained(str(tmp_path / "saved"))
    for model in (loaded.copy().model, load_model(tmp_path / "saved").model):
        assert model.max_seq_length == 200
        assert model.preprocess(["ba " * 300])["input_ids"].shape[1] == 200
        assert model.encode(["ba " * 300]).shape == (1, 32)


def test_positions_limit_a_tokenizer_without_limit(tmp_path: Path) -> None:
    base = load_model(write_encoder(tmp_path, "roberta", 40, 10**30)).model
    assert base.max_seq_length == 39  # position 0 of 40 is for padding
    assert base.encode(["ba " * 100]).shape == (1, 32)


def set_module(folder: Path, values: Any) -> Path:
    modules = json.loads((folder / "modules.json").read_text())
    modules[1] = {**modules[1], **values}
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


@pytest.mark.parametrize("name", ["foreign.Code", "os.system", "simlte_st.modules.base.SavedModule"])
def test_foreign_code_is_not_run(
    name: str, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(encoder_path, tmp_path / "model"))
    for place in (tmp_path, folder):
        (place / "foreign.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nCode = Configuration = object\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelError, match="trust_remote_code"):
        load_model(set_module(folder, {"type": name}))
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(folder))
    shutil.copy(encoder_path / "modules.json", folder)
    config = json.loads((folder / "config.json").read_text())
    code = {"model_type": "foreign", "auto_map": {"AutoConfig": "foreign.Configuration", "AutoModel": "foreign.Code"}}
    (folder / "config.json").write_text(json.dumps({**config, **code}))
    with pytest.raises(ModelError, match="trust_remote_code"):
        load_model(folder)
    assert not (tmp_path / "ran").exists()


def test_pickles_are_not_run(encoder_path: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder_path, tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert load_model(folder).model.encode(["ba"]).shape == (1, 32), "tensors alone are read"
    torch.save({**weights, "more": Runs(tmp_path / "ran")}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="not be loaded"):
        load_model(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("prompt", ["", "ba [SEP] "])
def test_special_token_strings_are_read_as_text(encoder_path: Path, tmp_path: Path, prompt: str) -> None:
    stock = SentenceTransformer(str(encoder_path), device="cpu", prompts={"query": prompt})
    stock.save_pretrained(str(tmp_path / "stock"))
    model = load_model(tmp_path / "stock").model
    model.save_pretrained(str(tmp_path / "saved"))
    for loaded in (model, SentenceTransformer(str(tmp_path / "saved"), device="cpu")):
        ids = loaded.preprocess(["ba [MASK] bei [SEP] ba [CLS] [PAD]"])["input_ids"][0].tolist()
        counts = [
            ids.count(loaded.tokenizer.convert_tokens_to_ids(f"[{name}]")) for name in ("MASK", "SEP", "CLS", "PAD")
        ]
        # a model reads them as special tokens if its prompts use them
        assert counts == ([1, 2, 2, 1] if prompt else [0, 1, 1, 0])


@pytest.mark.parametrize("length", [1, 2])
def test_length_without_room_for_text_is_refused(length: int, encoder_path: Path) -> None:
    room = f"max_seq_length={length} tokens, but special tokens and the prompt take 2, leaving no room for text"
    with pytest.raises(ConfigurationError, match=room):
        load_model(encoder_path).copy(max_seq_length=length)
    loaded = load_model(encoder_path).copy(max_seq_length=3)
    with pytest.raises(ConfigurationError, match=room), reading_at_most(loaded.model, length):
        pass
    assert loaded.model.max_seq_length == 3


@pytest.mark.parametrize("name", ["modules.json", "config.json", "model.safetensors", "tokenizer.json"])
def test_damaged_files_are_refused(name: str, encoder_path: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder_path, tmp_path / "model"))
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError, match="not be loaded"):
        load_model(folder)


# Models of other kinds.


def write_settings(folder: Path, **files: Any) -> Path:
    folder.mkdir()
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("SparseEncoder", {"config_sentence_transformers": {"model_type": "SparseEncoder"}}),
        ("CrossEncoder", {"config_sentence_transformers": {"model_type": "CrossEncoder"}}),
        ("MultiVectorEncoder", {"config_sentence_transformers": {"model_type": "MultiVectorEncoder"}}),
        ("CrossEncoder", {"config": {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}}),
    ],
)
def test_other_kinds_are_named_in_the_error(kind: str, files: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=kind):
        load_model(write_settings(tmp_path / "model", **files))


def test_broken_config_is_not_mistaken_for_another_kind(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="could not be loaded"):
        load_model(write_settings(tmp_path / "model", config=["x"]))
