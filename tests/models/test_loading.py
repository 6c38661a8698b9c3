from __future__ import annotations

import json
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import BoW, Normalize, Pooling
from support import Runs, make_tokenizer, write_jsonl
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5EncoderModel,
)

from simlte_st import train
from simlte_st.cli.main import main
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.evaluation.evaluator import reading_at_most
from simlte_st.models import loading
from simlte_st.models.base import load_model
from simlte_st.models.loading import lengthen
from simlte_st.models.parts import unused_parts, weights_digest
from simlte_st.modules import TokenAttention

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def pooling_of(model: SentenceTransformer) -> Any:
    (pooling,) = (module for module in model if isinstance(module, Pooling))
    return pooling.pooling_mode


# From a folder.


@pytest.mark.parametrize(("asked", "found"), [("keep", "mean"), ("cls", "cls"), ("mean", "mean")])
def test_a_raw_checkpoint(bert_path: Path, asked: str, found: str) -> None:
    base = load_model(bert_path, pooling=asked)
    assert not base.tuned
    assert base.name == str(bert_path)
    assert pooling_of(base.model) == found
    hidden = base.model.encode(["ba bei"], output_value="token_embeddings")[0]
    expected = hidden[0] if found == "cls" else hidden.mean(0)
    torch.testing.assert_close(base.model.encode(["ba bei"], convert_to_tensor=True)[0].cpu(), expected.cpu())


def test_a_plain_decoder_takes_the_last_token_as_stock_does(tmp_path: Path) -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = LlamaConfig(**sizes, vocab_size=140, max_position_embeddings=64, bos_token_id=2, eos_token_id=3)
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    model, stock = load_model(tmp_path).model, SentenceTransformer(str(tmp_path), device="cpu")
    assert pooling_of(model) == pooling_of(stock) == "lasttoken"
    texts = ["ba bei bo un", "du"]
    np.testing.assert_allclose(model.encode(texts), stock.encode(texts), atol=1e-6)


@pytest.mark.parametrize(("asked", "found"), [("keep", "mean"), ("cls", "cls"), ("mean", "mean")])
def test_a_sentence_encoder(encoder_path: Path, asked: str, found: str) -> None:
    base = load_model(str(encoder_path), pooling=asked)
    assert base.tuned
    assert base.name == str(encoder_path)
    assert pooling_of(base.model) == found


def test_what_else_is_in_the_model_stays(encoder_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    model[1].include_prompt = False
    model.append(Normalize())
    model.save_pretrained(str(tmp_path / "model"))
    changed = load_model(tmp_path / "model", pooling="cls").model
    assert [type(module).__name__ for module in changed] == ["Transformer", "Pooling", "Normalize"]
    assert pooling_of(changed) == "cls"
    assert changed[1].include_prompt is False
    weights = model.state_dict()
    assert all(torch.equal(value.cpu(), weights[name]) for name, value in changed.state_dict().items())


def test_keep_does_not_need_a_pooling_but_a_change_does(encoder_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    SentenceTransformer(modules=[model[0]], device="cpu").save_pretrained(str(tmp_path / "model"))
    assert load_model(tmp_path / "model").tuned
    with pytest.raises(ModelError, match=r"Pooling.*'cls'"):
        load_model(tmp_path / "model", pooling="cls")


def test_a_model_that_is_no_transformer(tmp_path: Path) -> None:
    SentenceTransformer(modules=[BoW(["ba", "bo"])], device="cpu").save_pretrained(str(tmp_path / "words"))
    with pytest.raises(ModelError, match="BoW"):
        load_model(tmp_path / "words")


def test_what_a_checkpoint_lacks_is_the_same_each_time(bert_path: Path) -> None:
    """The checkpoint of a masked language model has no pooler, which is drawn, and no vector depends on it."""
    torch.manual_seed(1)
    state = torch.get_rng_state()
    one = load_model(bert_path).model
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    other = load_model(bert_path).model
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())
    (prefix,) = unused_parts(one)
    assert prefix.endswith(".pooler.")
    pooler = one.state_dict()[f"{prefix}dense.weight"]
    digest = weights_digest(one)
    pooler.add_(1)
    assert weights_digest(one) == digest
    next(one.parameters()).data.add_(1)
    assert weights_digest(one) != digest
    assert all(each.requires_grad for each in one.parameters())


@pytest.mark.parametrize("which", ["encoder", "bert"])
def test_a_copy(
    which: str, encoder_path: Path, bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = load_model(encoder_path if which == "encoder" else bert_path, dtype=torch.bfloat16)
    found = []
    load = loading.load_stock
    monkeypatch.setattr(
        loading, "load_stock", lambda source, *args, **options: found.append(source) or load(source, *args, **options)
    )
    before = {name: value.clone() for name, value in base.model.state_dict().items()}
    again = base.copy("cls", 20)
    assert not found
    assert (again.name, again.tuned) == (base.name, base.tuned)
    assert (pooling_of(base.model), base.model.max_seq_length) == ("mean", 64)
    assert (pooling_of(again.model), again.model.max_seq_length) == ("cls", 20)
    found_weights = again.model.state_dict()
    assert found_weights.keys() == before.keys()
    for name, value in before.items():
        assert found_weights[name].dtype == torch.bfloat16
        assert torch.equal(found_weights[name], value)
    with torch.no_grad():
        next(again.model.parameters()).zero_()
    assert all(torch.equal(value, before[name]) for name, value in base.model.state_dict().items())
    with pytest.raises(ConfigurationError, match="max_seq_length=65"):
        base.copy(max_seq_length=65)


# Length.


def test_the_length(bert_path: Path) -> None:
    assert load_model(bert_path).model.max_seq_length == 64
    base = load_model(bert_path, max_seq_length=20)
    assert base.model.max_seq_length == 20
    assert base.model.preprocess(["ba " * 50])["input_ids"].shape[1] == 20
    assert load_model(bert_path, max_seq_length=64).model.max_seq_length == 64
    with pytest.raises(ConfigurationError, match=r"max_seq_length=65: .* 64 tokens"):
        load_model(bert_path, max_seq_length=65)


def test_a_length_that_was_cut_can_be_restored(encoder_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    model.max_seq_length = 16
    model.save_pretrained(str(tmp_path / "short"))
    assert load_model(tmp_path / "short").model.max_seq_length == 16
    assert load_model(tmp_path / "short", max_seq_length=48).model.max_seq_length == 48


def model_with_a_shorter_tokenizer(kind: str, path: Path, tokenizer_path: Path, **settings: Any) -> Path:
    """The tokenizer says 64 tokens, whatever the positions are."""
    config = AutoConfig.for_model(kind, **SIZES, vocab_size=140, pad_token_id=0, **settings)
    AutoModel.from_config(config).save_pretrained(path)
    AutoTokenizer.from_pretrained(tokenizer_path).save_pretrained(path)
    return path


@pytest.mark.parametrize("from_checkpoint", [False, True], ids=["as loaded", "saved"])
def test_positions_beyond_the_tokenizers_limit_are_used(
    from_checkpoint: bool, bert_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = model_with_a_shorter_tokenizer("modernbert", tmp_path / "m", bert_path, max_position_embeddings=256)
    loaded = load_model(path)
    assert loaded.model.max_seq_length == 64
    caplog.clear()
    with caplog.at_level("INFO", "simlte_st"):
        assert not lengthen(loaded, 257), "it has no such positions"
        assert lengthen(loaded, 50)
        assert (loaded.model.max_seq_length, caplog.messages) == (64, []), "it reads so many already"
        assert lengthen(loaded, 200)
    [message] = caplog.messages
    assert re.match(rf"{re.escape(str(path))} .* 64 .* 256: .* 200", message)
    if from_checkpoint:
        loaded.model.save_pretrained(str(tmp_path / "saved"))
        model = load_model(tmp_path / "saved").model
    else:
        model = loaded.copy().model
    assert model.max_seq_length == 200
    assert model.preprocess(["ba " * 300])["input_ids"].shape[1] == 200
    assert model.encode(["ba " * 300]).shape == (1, 32)


def test_a_model_without_a_table_of_positions_reads_any_length(bert_path: Path, tmp_path: Path) -> None:
    settings = {"d_model": 32, "d_ff": 48, "d_kv": 8, "num_layers": 1, "num_heads": 4, "vocab_size": 140}
    T5EncoderModel(T5Config(**settings)).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(bert_path).save_pretrained(tmp_path)
    loaded = load_model(tmp_path, pooling="mean")
    assert loaded.model.max_seq_length == 64
    assert lengthen(loaded, 10_000)
    assert loaded.model.max_seq_length == 10_000


def test_a_tokenizer_without_a_limit_is_cut_where_the_positions_end(bert_path: Path, tmp_path: Path) -> None:
    config = AutoConfig.for_model("roberta", **SIZES, max_position_embeddings=40, vocab_size=140, pad_token_id=0)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(bert_path)
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(tmp_path)
    base = load_model(tmp_path).model
    assert base.max_seq_length == 39  # of 40 positions, position 0 is the padding's
    assert base.encode(["ba " * 100]).shape == (1, 32)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not be loaded"):
        load_model(tmp_path)


def test_a_damaged_model(bert_path: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(bert_path, tmp_path / "damaged"))
    weights = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelError, match="not be loaded"):
        load_model(path)


FILES = (
    "modules.json", "config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json",
    "sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer_config.json",
)  # fmt: skip
OPTIONAL = FILES[-3:]


@pytest.mark.parametrize("damage", ["gone", "cut", "empty", "no JSON values that fit"])
@pytest.mark.parametrize("name", FILES)
def test_files_that_are_missing_or_damaged(name: str, damage: str, encoder_path: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder_path, tmp_path / "model"))
    data = (folder / name).read_bytes()
    (folder / name).unlink()
    if damage != "gone":
        (folder / name).write_bytes({"cut": data[: len(data) // 2], "empty": b""}.get(damage, b'["a", null]'))
    if damage == "gone" and name in OPTIONAL:
        assert load_model(folder).model.encode(["ba"]).shape == (1, 32)
    else:
        with pytest.raises(ModelError, match="not be loaded"):
            load_model(folder)


def set_module(folder: Path, values: Any) -> Path:
    modules = json.loads((folder / "modules.json").read_text())
    modules[1] = {**modules[1], **values}
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


@pytest.mark.parametrize("name", ["foreign.Code", "os.system", "subprocess.Popen"])
def test_foreign_code_is_not_run(
    name: str, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(encoder_path, tmp_path / "model"))
    for place in (tmp_path, folder):
        (place / "foreign.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nCode = Configuration = object\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelError, match="custom code"):
        load_model(set_module(folder, {"type": name}))
    shutil.copy(encoder_path / "modules.json", folder)
    config = json.loads((folder / "config.json").read_text())
    code = {"model_type": "foreign", "auto_map": {"AutoConfig": "foreign.Configuration", "AutoModel": "foreign.Code"}}
    (folder / "config.json").write_text(json.dumps({**config, **code}))
    with pytest.raises(ModelError, match="custom code"):
        load_model(folder)
    assert not (tmp_path / "ran").exists()


def test_paths_that_climb_out_of_a_model(encoder_path: Path, tmp_path: Path) -> None:
    shutil.copytree(encoder_path / "1_Pooling", tmp_path / "outside")
    for path in ("../outside", str(tmp_path / "outside"), "../../../etc"):
        folder = Path(shutil.copytree(encoder_path, tmp_path / "model", dirs_exist_ok=True))
        with pytest.raises(ModelError, match=r"without '\.\.'"):
            load_model(set_module(folder, {"path": path}))


def test_pickles_are_not_run(encoder_path: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder_path, tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert load_model(folder).model.encode(["ba"]).shape == (1, 32), "tensors alone are read"
    torch.save({**weights, "more": Runs(tmp_path / "ran")}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pickle.*model\.safetensors"):
        load_model(folder)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Runs(tmp_path / "ran")))
    with pytest.raises(ModelError, match="pickle"):
        load_model(folder)
    for name in ("model.tar.gz", "model.zip", "model.pkl"):
        (tmp_path / name).write_bytes(pickle.dumps(Runs(tmp_path / "ran")))
        with pytest.raises(ModelError, match="is a file"):
            load_model(tmp_path / name)
    assert not (tmp_path / "ran").exists()


def test_weights_that_are_no_numbers(bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bert_path, tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    weights["bert.encoder.layer.1.output.dense.weight"][3, 4] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"damaged: 1 of .*layer\.1\.output\.dense\.weight"):
        load_model(folder)
    with pytest.raises(ModelError, match="damaged"):
        train(documents, tmp_path / "out", base=folder, progress=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_tokens_without_an_embedding(encoder_path: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder_path, tmp_path / "model"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    size = len(tokenizer)
    tokenizer.add_tokens(["zzz"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match=rf"{size} tokens.* {size}:.*resize_token_embeddings"):
        load_model(folder)


def test_models_with_modules_of_ours_load(bert_path: Path, tmp_path: Path) -> None:
    made = SentenceTransformer(modules=[Transformer(str(bert_path)), TokenAttention(32)], device="cpu")
    made.save_pretrained(str(tmp_path / "model"))
    loaded = load_model(tmp_path / "model")
    assert loaded.tuned
    assert type(loaded.model) is SentenceTransformer
    assert isinstance(loaded.model[1], TokenAttention)


@pytest.mark.parametrize("prompt", ["", "ba [SEP] "])
def test_the_words_of_special_tokens_are_text(encoder_path: Path, tmp_path: Path, prompt: str) -> None:
    stock = SentenceTransformer(str(encoder_path), device="cpu", prompts={"query": prompt})
    stock.save_pretrained(str(tmp_path / "stock"))
    model = load_model(tmp_path / "stock").model
    model.save_pretrained(str(tmp_path / "saved"))
    for loaded in (model, SentenceTransformer(str(tmp_path / "saved"), device="cpu")):
        ids = loaded.preprocess(["ba [MASK] bei [SEP] ba [CLS] [PAD]"])["input_ids"][0].tolist()
        counts = [
            ids.count(loaded.tokenizer.convert_tokens_to_ids(f"[{name}]")) for name in ("MASK", "SEP", "CLS", "PAD")
        ]
        # a model whose own prompts are written with them reads them
        assert counts == ([1, 2, 2, 1] if prompt else [0, 1, 1, 0])


@pytest.mark.parametrize("length", [1, 2])
def test_a_length_without_room_for_a_text_is_refused(
    length: int, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room = f"max_seq_length={length} tokens, of which special tokens take 2: there is no room for a text"
    with pytest.raises(ConfigurationError, match=room):
        load_model(encoder_path, max_seq_length=length)
    loaded = load_model(encoder_path, max_seq_length=3)
    with pytest.raises(ConfigurationError, match=room), reading_at_most(loaded.model, length):
        pass
    assert loaded.model.max_seq_length == 3
    with pytest.raises(ConfigurationError, match=f"max_view_length={length} .*{room}"):
        train(["Ba bei. Bo bun."] * 3, tmp_path / "m", base=encoder_path, max_view_length=length, device="cpu")
    assert not (tmp_path / "m").exists()
    documents = tmp_path / "a.jsonl"
    rows = [{"text": f"Ba bei bo {'bun ' * number}", "label": "ab"[number % 2]} for number in range(40)]
    write_jsonl(documents, rows)
    words = ["evaluate", str(encoder_path), "--data", str(documents), "--label", "label", "--max-seq-length"]
    assert main([*words, str(length), "--quiet"]) == 1
    assert f"--max-seq-length {length} tokens" in " ".join(capsys.readouterr().err.split())
