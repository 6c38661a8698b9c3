from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from support import make_document, write_jsonl
from tagger_support import EndingTagger

from benchmarks.papers import attention, layers, redundancy, weights
from simlte_st.modules import BaseForm, TokenAttention


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    write_jsonl(path, [{"id": f"d{n}", "text": make_document(n, sentences=2 + 3 * n)} for n in range(6)])
    return path


@pytest.fixture
def tagged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a tagger that needs no spaCy."""
    for command in (attention, redundancy):
        monkeypatch.setattr(command, "SpacyTagger", lambda **options: EndingTagger())


@pytest.mark.usefixtures("tagged")
def test_redundancy(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    redundancy.main(shlex.split(f"{source} --limit 5 --output {tmp_path / 'out.json'}"))
    out, err = capsys.readouterr()
    for row in ("| 0-50 ", "| 101-200 ", "| more than 300 ", "| all "):
        assert row in out
    assert "limit of 5" in err
    assert json.loads((tmp_path / "out.json").read_text())["all"]["documents"] == 5


@pytest.mark.usefixtures("tagged")
def test_attention(source: Path, encoder_path: Path, bert_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = source.with_name("out.json")
    command = f"{source} --model {encoder_path} --compare {bert_path} --output {output} --layer 0"
    attention.main(shlex.split(f"{command} --max-seq-length 50"))
    out = capsys.readouterr().out
    assert f"a word, % [95%]: {encoder_path}" in out
    assert "| nouns " in out
    assert "6 documents, their first 50 tokens; attention of the layer 0" in out
    assert set(json.loads(output.read_text())["models"]) == {str(encoder_path), str(bert_path)}


def test_layers(source: Path, encoder_path: Path, bert_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = f"{source} --model {encoder_path} --compare {bert_path} --limit 3"
    layers.main(shlex.split(command))
    out = capsys.readouterr().out
    assert out.count("| 2 ") == 2
    layers.main(shlex.split(f"{command} --tokens"))
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert rows[0] == "token"
    assert rows[1] == make_document(0).split()[0]


def test_weights(bert_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model"
    modules = [BaseForm(str(bert_path)), TokenAttention(32)]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(model))
    weights.main(["ca won't ba", "--model", str(model), "--output", str(tmp_path / "out.json")])
    tokens = json.loads((tmp_path / "out.json").read_text())[str(model)]
    assert [token["token"] for token in tokens] == ["ca", "will", "not", "ba"]
    assert 0 < sum(token["weight"] for token in tokens) < 100
    assert "| will " in capsys.readouterr().out
