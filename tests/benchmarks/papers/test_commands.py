from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from support import make_document, write_jsonl
from tagger_support import EndingTagger
from tokenizers_support import byte_level
from transformers import BertConfig, BertModel

from benchmarks.papers import attention, layers, redundancy, weights
from simlte_st.modules import BaseForm, TokenAttention

COMMANDS = {"attention": attention, "layers": layers, "redundancy": redundancy, "weights": weights}


def run(command: str | list[str]) -> None:
    name, *arguments = shlex.split(command) if isinstance(command, str) else command
    COMMANDS[name].main(arguments)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": f"d{n}", "text": make_document(n, sentences=2 + 3 * n)} for n in range(6)]
    write_jsonl(path, rows)
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Put a tagger that needs no spaCy in its place; the list has what was asked of it."""
    asked: list[tuple[str, bool]] = []

    def tagger(pipeline: str, *, lemmas: bool = True) -> EndingTagger:
        asked.append((pipeline, lemmas))
        return EndingTagger()

    for command in (attention, redundancy):
        monkeypatch.setattr(command, "SpacyTagger", tagger)
    return asked


def test_redundancy(
    source: Path, asked: list[tuple[str, bool]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "redundancy.json"
    command = f"redundancy {source} --pipeline some_name --limit 5 --seed 2 --output {output} --quiet"
    run(command)
    out, err = capsys.readouterr()
    for row in ("| 0-50 ", "| 101-200 ", "| more than 300 ", "| all "):
        assert row in out
    assert "limit of 5" in err
    values = json.loads(output.read_text())
    assert (values["data"], values["seed"], values["all"]["documents"]) == (str(source), 2, 5)
    assert asked == [("some_name", True)]


def test_attention(
    source: Path,
    asked: list[tuple[str, bool]],
    encoder_path: Path,
    bert_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    heat_map, output = tmp_path / "map.html", tmp_path / "attention.json"
    command = (
        f"attention {source} --model {encoder_path} --compare {bert_path} --heatmap {heat_map} --document d4 "
        f"--output {output} --layer 0 --max-seq-length 50 --quiet"
    )
    run(command)
    out = capsys.readouterr().out
    assert f"a word, % [95%]: {encoder_path}" in out
    assert "| nouns " in out
    assert re.search(rf"{bert_path} reads .* 50 tokens .* 4 of 6 ", out)
    assert "the layer 0" in out
    values = json.loads(output.read_text())
    assert set(values["models"]) == {str(encoder_path), str(bert_path)}
    assert values["models"][str(bert_path)]["truncation"]["cut_tokens"] == sum(
        9 * (2 + 3 * n) - 48 for n in range(2, 6)
    )
    page = heat_map.read_text(encoding="utf-8")
    assert make_document(4, sentences=14).split()[0] in page
    assert f"{bert_path} read 48 of 126 tokens" in page
    assert asked == [("en_core_web_sm", False)]


@pytest.mark.usefixtures("asked")
def test_heat_map_of_what_a_model_with_base_form_conversion_reads(bert_path: Path, tmp_path: Path) -> None:
    model, source, heat_map = tmp_path / "model", tmp_path / "a.txt", tmp_path / "map.html"
    SentenceTransformer(modules=[BaseForm(str(bert_path)), TokenAttention(32)], device="cpu").save_pretrained(
        str(model)
    )
    source.write_text("Ca won't ba.")
    run(f"attention {source} --model {model} --heatmap {heat_map} --quiet")
    page = heat_map.read_text()
    assert ">will<" in page
    assert "won" not in page


def test_tables_fit_the_terminal_and_are_there_as_json(
    source: Path,
    asked: list[tuple[str, bool]],
    encoder_path: Path,
    bert_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = f"--model {encoder_path} --compare {bert_path} --limit 3 --quiet"
    monkeypatch.setenv("COLUMNS", "80")
    for analysis in ("attention", "layers"):
        run(f"{analysis} {source} {models}")
        table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
        assert max(map(len, table)) <= 80
    for command in (f"attention {source} {models}", f"layers {source} {models}", f"redundancy {source} --quiet"):
        run(f"{command} --json")
        values = json.loads(capsys.readouterr().out)
        assert values["data"] == str(source)
        assert command.startswith("redundancy") or set(values["models"]) == {str(encoder_path), str(bert_path)}


def test_bars(source: Path, asked: list[tuple[str, bool]], encoder_path: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra figures)")
    bars = tmp_path / "bars.svg"
    command = f"attention {source} --model {encoder_path} --bars {bars} --quiet"
    run(command)
    assert bars.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--bars bars.html", r"bars\.html: .* \.svg or \.png"),
        ("--heatmap map.png", r"map\.png: .* \.html"),
        ("--document d1", "--heatmap"),
        ("--heatmap {out}/map.html --document d99", "'d99'"),
        ("--layer 7", "layer=7"),
        ("--output {out}/corpus.jsonl --overwrite", r"holds the documents"),
        ("--limit 0", "limit=0"),
    ],
)
@pytest.mark.usefixtures("asked")
def test_errors(options: str, message: str, source: Path, encoder_path: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=message):
        run(f"attention {source} --model {encoder_path} --quiet {options.format(out=tmp_path)}")


def test_results_do_not_replace_a_file_unasked(source: Path, encoder_path: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious.html"
    precious.write_text("years")
    for command in (
        f"redundancy {source} --output",
        f"attention {source} --model no --heatmap",
        f"layers {source} --model no --lines",
        "weights text --model no --heatmap",
    ):
        with pytest.raises(SystemExit, match="exists already"):
            run(f"{command} {precious}")
    assert precious.read_text() == "years"


def test_without_spacy(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(SystemExit, match=r"\[pos\]"):
        run(f"redundancy {source} --quiet")


def test_layers(
    source: Path, encoder_path: Path, bert_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, output = tmp_path / "lines.svg", tmp_path / "layers.json"
    command = f"layers {source} --model {encoder_path} --compare {bert_path} --limit 3 --quiet"
    run(f"{command} --lines {lines} --output {output}")
    out, _ = capsys.readouterr()
    assert "| 2 " in out
    values = json.loads(output.read_text())
    assert list(values["models"]) == [str(encoder_path), str(bert_path)]
    assert len(values["models"][str(bert_path)]["mean"]) == 2
    assert lines.exists()


def test_layers_of_a_text(
    source: Path, encoder_path: Path, bert_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, output = tmp_path / "lines.svg", tmp_path / "layers.json"
    models = f"--model {encoder_path} --compare {bert_path}"
    command = f"layers --text 'Ca ba {'di ' * 70}' {models} --lines {lines} --output {output}"
    run(command)
    out, err = capsys.readouterr()
    rows = [[cell.strip() for cell in line.split("|")] for line in out.splitlines() if line.startswith("| ")]
    assert rows[0] == ["", "token", "1", "2", ""]
    assert [row[1] for row in rows[1:3]] == ["Ca", "ba"]
    assert f"{bert_path} read 62 of 72 tokens" in err
    values = json.loads(output.read_text())
    assert values["cut"] == {str(encoder_path): 10, str(bert_path): 10}
    first = values["models"][str(encoder_path)][0]
    assert (first["token"], len(first["cosines"])) == ("Ca", 2)
    assert "<!-- 1 Ca -->" in lines.read_text()
    for wrong in (f"layers {models}", f"layers {source} --text Ca {models}"):
        with pytest.raises(SystemExit, match="--text"):
            run(wrong)


def test_weights_of_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encoder, tokenizer = tmp_path / "encoder", byte_level()
    tokenizer.save_pretrained(encoder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **sizes)).save_pretrained(encoder)
    modules = [Transformer(str(encoder)), TokenAttention(32)]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(tmp_path / "model"))
    drawn = tmp_path / "map.html"
    told = ["weights", "bo 👍 bun", "--model", str(tmp_path / "model"), "--json", "--heatmap", str(drawn)]
    run(told)
    [tokens] = json.loads(capsys.readouterr().out)["models"].values()
    shares = [token["weight"] for token in tokens if "👍" in token["token"]]
    assert len(shares) == 4, "bytes of one character"
    found = re.findall(r'title="([\d.]+)%">👍</mark>', drawn.read_text())
    assert [float(one) for one in found] == pytest.approx([sum(shares)], rel=0.01)


def test_weights(bert_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, heat_map = tmp_path / "model", tmp_path / "map.html"
    modules = [BaseForm(str(bert_path)), TokenAttention(32)]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(model))
    run(["weights", "ca won't ba", "--model", str(model), "--heatmap", str(heat_map)])
    out = capsys.readouterr().out
    assert [line.split("|")[1].strip() for line in out.splitlines() if "%" in line][:1] == ["ca"]
    assert "will" in heat_map.read_text()
    run(["weights", "ca won't ba", "--model", str(model), "--json"])
    tokens = json.loads(capsys.readouterr().out)["models"][str(model)]
    assert tokens[0]["token"] == "ca"
    assert 0 < sum(token["weight"] for token in tokens) < 100
    with pytest.raises(SystemExit, match="no token"):
        run(["weights", "", "--model", str(model)])
    long = ["weights", "ca ba " * 50, "--model", str(model), "--heatmap", str(heat_map), "--overwrite"]
    run(long)
    said = f"{model} read 62 of 100 tokens; the rest is not shown."
    assert said in capsys.readouterr().err
    page = heat_map.read_text()
    assert said in page
    assert "--heat:0.000" in page
    assert "<small>0%" not in page
