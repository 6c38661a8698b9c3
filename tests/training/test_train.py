from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import numpy as np
import pytest
import sentence_transformers.base.model_card
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from training_support import LONG, OPTIONS, assert_same_bytes, weights

from simlte_st import SentenceTransformer as OwnSentenceTransformer
from simlte_st import train
from simlte_st.data import Crop, DocSplit
from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError, ModelError, ResumeError
from simlte_st.modules import TokenAttention


@pytest.fixture(scope="module")
def trained(encoder_path: Path, documents: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("trained") / "model"
    rows = [{"id": f"secret-name-{index}", "text": text} for index, text in enumerate(documents)]
    train(rows, output, base=encoder_path, epochs=3, learning_rate=3e-3, mlm_weight=0.1, seed=1, **OPTIONS)
    return output


def test_training_stays_offline_and_keeps_documents_private(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    base = tmp_path / "client-x" / "secret"
    shutil.copytree(encoder_path, base)
    asked: list[Any] = []

    def ask(*arguments: Any, **options: Any) -> None:
        asked.append(arguments)
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", ask)
    monkeypatch.setattr(socket, "getaddrinfo", ask)
    monkeypatch.setattr(sentence_transformers.base.model_card, "get_model_info", ask)
    (tmp_path / "docs").mkdir()
    for index, text in enumerate(documents):
        (tmp_path / "docs" / f"case-{index}.txt").write_text(text)
    (tmp_path / "docs" / "case-empty.txt").touch()
    train(tmp_path / "docs", tmp_path / "m", base=base, max_steps=2, **OPTIONS)
    OwnSentenceTransformer(str(tmp_path / "m")).save(str(tmp_path / "again"))  # as push_to_hub does
    assert not asked
    assert "## DocSplit training" in (tmp_path / "again" / "README.md").read_text()
    published = {path: path.read_bytes() for name in ("m", "again") for path in (tmp_path / name).rglob("*.*")}
    for path, content in published.items():
        assert b"case-" not in content, path
        assert b"client-x" not in content or path.name == "simlte.json", path


def test_model_loads_without_this_package(trained: Path, documents: list[str]) -> None:
    modules = json.loads((trained / "modules.json").read_text())
    assert all(module["type"].startswith("sentence_transformers.") for module in modules)
    code = (
        "import sys; from sentence_transformers import SentenceTransformer;"
        f"vectors = SentenceTransformer({str(trained)!r}, device='cpu').encode(['Ba bun.', 'Cis ka.']);"
        "assert vectors.shape == (2, 32); assert 'simlte_st' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=trained.parent)
    assert not (trained.parent / "model.run").exists()


def test_training_changes_weights_and_lowers_the_loss(trained: Path, encoder_path: Path) -> None:
    run = json.loads((trained / "simlte.json").read_text())
    contrastive = [line["contrastive"] for line in run["log"] if "contrastive" in line]
    assert np.mean(contrastive[-3:]) < np.mean(contrastive[:3])
    assert {"mlm", "mean_cosine", "alignment", "uniformity"} <= set(run["log"][0])
    before = weights(encoder_path)
    assert any(not np.allclose(value, before[name]) for name, value in weights(trained).items())


def test_run_file_and_card_are_complete(trained: Path, documents: list[str]) -> None:
    rows = [{"id": f"secret-name-{index}", "text": text} for index, text in enumerate(documents)]
    run = json.loads((trained / "simlte.json").read_text())
    assert run["corpus"]["documents"] + run["gain"]["documents"] == len(documents) == run["read"]["documents"]
    assert run["gain"]["verdict"] == "too few documents"
    assert {"TF-IDF", "base", "trained"} == set(run["gain"]["halves"])
    assert run["gain"]["summary"] in (trained / "README.md").read_text()
    assert f"\n\n{run['gain']['table']}\n" in (trained / "README.md").read_text()
    card = (trained / "README.md").read_text()
    assert "## DocSplit training" in card
    assert f"Trained on {run['corpus']['documents']} documents" in card
    for row in rows:
        assert row["text"][:60] not in card, "a user's document must not leak into the card"
        assert row["id"] not in card
    assert "# model" in card
    assert "widget" not in card
    assert f"64 tokens of a text: {run['truncation']['cut_texts']} of" in card
    assert run["truncation"]["cut_texts"] == run["corpus"]["documents"], "12 sentences of 8 words"
    assert run["truncation"]["advice"] in card
    assert "simlte convert model --output LONGER" in card, "where it lies concerns nobody"


def test_same_seed_gives_the_same_bytes(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        train(documents, tmp_path / name, base=encoder_path, seed=seed, mlm_weight=0.1, dropout=0.1, **OPTIONS)
    assert_same_bytes(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "model.safetensors").read_bytes() != (tmp_path / "c" / "model.safetensors").read_bytes()


def test_preset_follows_the_base(encoder_path: Path, bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    short: dict[str, Any] = {"max_steps": 1, "held_out": 0.0, "max_length": "base", "progress": False}
    raw = train(documents, tmp_path / "raw", base=bert_path, **short)
    assert (raw.preset.pooling, raw.preset.batch_size, raw.preset.mlm_weight) == ("cls", 36, 0.1)
    assert raw.preset.view == DocSplit()
    assert "cls" in (tmp_path / "raw" / "1_Pooling" / "config.json").read_text()
    tuned = train(documents, tmp_path / "tuned", base=encoder_path, **short)
    assert (tuned.preset.pooling, tuned.preset.scale, tuned.preset.mlm_weight) == ("keep", 2.0, 0.0)
    assert "mean" in (tmp_path / "tuned" / "1_Pooling" / "config.json").read_text()


def test_max_view_length_keeps_the_model_length(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    short: dict[str, Any] = {"max_steps": 1, "max_view_length": 20, "view": Crop(), "held_out": 0.0, **OPTIONS}
    result = train(documents, tmp_path / "m", base=encoder_path, **short)
    assert result.preset.max_view_length == 20
    assert SentenceTransformer(str(tmp_path / "m"), device="cpu").max_seq_length == 64


def test_invalid_input_is_refused_before_writing(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    output = tmp_path / "m"
    with pytest.raises(ConfigurationError, match="batch_size=1"):
        train(documents, output, base=encoder_path, batch_size=1)
    with pytest.raises(TypeError, match=r"bach_size.*batch_size"):
        train(documents, output, base=encoder_path, bach_size=8)
    with pytest.raises(ConfigurationError, match="Unknown preset"):
        train(documents, output, base=encoder_path, preset="best")
    with pytest.raises(ConfigurationError, match=r"held_out=0.9"):
        train(documents, output, base=encoder_path, held_out=0.9)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EmptyCorpusError, match=r"at least 2 documents.* 1 can be used\.$"):
        train(documents[:1], output, base=encoder_path, held_out=0.0, progress=False)
    with pytest.raises(DataError, match=r"nowhere\.jsonl"):
        train("nowhere.jsonl", output, base=encoder_path, progress=False)
    with pytest.raises(ModelError, match="no-model"):
        train(documents, output, base=tmp_path / "no-model", progress=False)
    assert list(tmp_path.iterdir()) == [], "a run that could not begin leaves nothing to resume"


def test_finished_model_is_not_overwritten_by_default(trained: Path, encoder_path: Path, documents: list[str]) -> None:
    before = (trained / "model.safetensors").read_bytes()
    with pytest.raises(ConfigurationError, match="already exists"):
        train(documents, trained, base=encoder_path)
    with pytest.raises(ResumeError, match="is finished"):
        train(documents, trained, base=encoder_path, resume=True)
    assert (trained / "model.safetensors").read_bytes() == before


def test_half_precision_base_is_trained_in_float32(bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    half = SentenceTransformer(str(bert_path), device="cpu").to(torch.bfloat16)
    half.save_pretrained(str(tmp_path / "half"))
    train(documents, tmp_path / "m", base=tmp_path / "half", max_steps=2, mlm_weight=0.1, held_out=0.0, **OPTIONS)
    assert {str(value.dtype) for value in weights(tmp_path / "m").values()} == {"float32"}


def test_short_base_is_converted_to_read_long_documents(
    bert_path: Path, documents: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long = [" ".join(documents[number : number + 3]) for number in range(40)]  # 324 tokens; the base reads 64
    with caplog.at_level("INFO", "simlte_st"):
        result = train(long, tmp_path / "m", base=bert_path, preset="docsplit-longformer", max_length=400, **LONG)
    assert "converted to read 400 tokens" in caplog.text
    assert "Using the checkpoint's MLM head" in caplog.text
    assert result.truncation.cut_texts == 0
    model = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    assert model.max_seq_length == 400
    assert type(model[0].auto_model).__name__ == "SimlteLongformerModel"
    assert model[0].auto_model.config.attention_probs_dropout_prob == 0.1, "what training does without is not lost"
    assert (tmp_path / "m" / "README.md").read_text().count("from simlte_st import SentenceTransformer\n") == 1
    assert json.loads((tmp_path / "m" / "simlte.json").read_text())["base"] == str(bert_path)
    assert not (tmp_path / "m.run").exists()


def test_token_attention_is_kept(bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    made = SentenceTransformer(modules=[Transformer(str(bert_path)), TokenAttention(32)], device="cpu")
    made.save_pretrained(str(tmp_path / "base"))
    settings: dict[str, Any] = {"base": tmp_path / "base", "max_steps": 2, "bf16": False, "progress": False}
    result = train(documents, tmp_path / "model", keep="trained", batch_size=8, **settings)
    trained = OwnSentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert isinstance(trained[1], TokenAttention)
    assert not torch.equal(trained[1].query.weight, made[1].query.weight)
    assert result.load(device="cpu").encode("a text").shape == (32,)
