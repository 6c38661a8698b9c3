from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from support import make_document
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

from benchmarks import pretrain_mlm
from benchmarks.packed_text import Masking, pack
from benchmarks.pretrain_mlm import MaskedOnlyBert, main
from simlte_st import train
from simlte_st.data import read_documents
from simlte_st.losses.mlm_head import make_mlm_head
from simlte_st.models.base import load_model
from simlte_st.training.model import preset_for
from simlte_st.training.prepare import HeldOut
from simlte_st.training.presets import get_preset

STEPS = 14  # of 9 in a pass over the corpus: the second pass is begun


class Clock:
    """A clock that moves on by a second at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "tiny.parquet"
    rows = [{"id": number, "title": f"t{number}", "text": make_document(number)} for number in range(20)]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.fixture(scope="module")
def command(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    work = tmp_path_factory.mktemp("work")

    def make(output: Path, *more: object) -> list[str]:
        options = {
            "corpus": corpus, "output": output, "work": work, "vocabulary": 150, "layers": 2, "hidden": 32, "heads": 4,
            "max-length": 32, "steps": STEPS, "batch-size": 8, "learning-rate": 3e-3, "held-out": 2, "log-steps": 5,
            "device": "cpu",
        }  # fmt: skip
        return [*(str(part) for name, value in options.items() for part in (f"--{name}", value)), *map(str, more)]

    return make


@pytest.fixture(scope="module")
def whole(command: Callable[..., list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model made in one go."""
    output = tmp_path_factory.mktemp("whole") / "bert"
    main(command(output))
    return output


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_pieces_give_the_same_bytes_as_one_run(whole: Path, command: Callable[..., list[str]], tmp_path: Path) -> None:
    output = tmp_path / "bert"
    torch.manual_seed(1234)  # whatever the process did before
    ends = []
    # The first piece tokenizes and does some steps; the others do one step each, into the second pass.
    for seconds in (30, *[4] * STEPS):
        main(command(output, "--minutes", seconds / 60, "--work", tmp_path / "work"), Clock())
        ends.append(output.exists())
        if output.exists():
            break
    account = json.loads((output / "pretrain.json").read_text())
    assert ends == [False] * (len(ends) - 1) + [True]
    steps = [piece["steps"] for piece in account["pieces"]]
    assert 1 < steps[0] < 9
    assert steps[1:] == [1] * (STEPS - steps[0])
    assert weights(output) == weights(whole)
    one = json.loads((whole / "pretrain.json").read_text())
    assert account["pieces"][-1]["held_out_loss"] == one["pieces"][-1]["held_out_loss"]
    assert account["tokens_seen"] == one["tokens_seen"]
    assert not (tmp_path / "bert.run").exists()


def test_another_seed_gives_other_bytes(whole: Path, command: Callable[..., list[str]], tmp_path: Path) -> None:
    main(command(tmp_path / "bert", "--seed", 1))
    assert weights(tmp_path / "bert") != weights(whole)


def test_it_stops_in_time_with_a_checkpoint(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    output = tmp_path / "bert"
    # One look for each of 20 documents, and one a step: the time is over in the middle of the training.
    options = ("--minutes", 32 / 60, "--held-out", 0, "--log-steps", 100, "--work", tmp_path / "work")
    main(command(output, *options), clock)
    assert not output.exists()
    run = tmp_path / "bert.run"
    (piece,) = json.loads((run / "pieces.json").read_text())
    assert 5 < piece["steps"] < STEPS
    assert (run / "checkpoints" / f"checkpoint-{piece['steps']}" / "complete").exists()
    assert clock.now <= 36  # two looks more, to say how it was
    said = capsys.readouterr().out
    assert f"Stopped after {piece['steps']} of {STEPS} steps" in said
    assert f"step {piece['steps']}/{STEPS}: loss" in said


def test_no_time_left_while_tokenizing(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(command(tmp_path / "bert", "--minutes", 5 / 60, "--work", tmp_path / "work"), Clock())
    assert "Stopped while tokenizing" in capsys.readouterr().out
    assert not list((tmp_path / "bert.run").glob("checkpoints/*"))


def test_killed_after_the_last_step(
    whole: Path, command: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "bert"

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pretrain_mlm, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            main(command(output))
    assert not output.exists()
    main(command(output))
    assert weights(output) == weights(whole)


def test_a_finished_run_is_left_alone(
    whole: Path, command: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    before = (whole / "model.safetensors").stat().st_mtime_ns
    main(command(whole))
    assert "is finished" in capsys.readouterr().out
    assert (whole / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(SystemExit, match="other settings"):
        main(command(whole, "--seed", 5))


def test_going_on_with_other_settings_is_refused(command: Callable[..., list[str]], tmp_path: Path) -> None:
    main(command(tmp_path / "bert", "--minutes", 4 / 60), Clock())
    with pytest.raises(SystemExit, match="batch_size: was 8, is 4"):
        main(command(tmp_path / "bert", "--batch-size", 4))


def test_the_account_says_what_was_done(whole: Path, corpus: Path) -> None:
    account = json.loads((whole / "pretrain.json").read_text())
    assert account["settings"]["corpus"] == "tiny.parquet"
    assert str(corpus.parent) not in (whole / "pretrain.json").read_text()
    assert account["corpus"]["documents"] == 20
    assert account["corpus"]["held_out_documents"] == 2
    sequences = account["corpus"]["sequences"]
    full, rest = divmod(sequences, 8)
    assert rest  # the last batch of a pass is smaller
    assert full + 1 < STEPS  # a second pass was begun
    seen = sequences + min(STEPS - full - 1, full) * 8
    assert account["tokens_seen"] == seen * 32
    assert account["passes"] == round(seen / sequences, 3)
    (piece,) = account["pieces"]
    assert piece["perplexity"] == pytest.approx(math.exp(piece["held_out_loss"]))
    assert [line["step"] for line in account["log"]] == [5, 10, STEPS]
    assert account["log"][-1]["loss"] < account["log"][0]["loss"]
    assert account["environment"]["torch"] == torch.__version__
    assert account["environment"]["dtype"] == "float32"


def test_the_held_out_loss_is_that_of_the_stock_model(whole: Path, corpus: Path) -> None:
    """Measured again, with the saved model, its tokenizer and transformers' own loss."""
    tokenizer = AutoTokenizer.from_pretrained(whole)
    holder = HeldOut(0.1, least=0, most=2)
    assert len(list(holder.divert(read_documents(corpus)))) == 18
    rows = pack([document.text for document in holder.documents], tokenizer, 32)
    batch = Masking(tokenizer, 0)([{"input_ids": torch.tensor(row)} for row in rows])
    model = BertForMaskedLM.from_pretrained(whole).eval()
    with torch.no_grad():
        loss = model(input_ids=batch["input_ids"], labels=batch["labels"]).loss
    account = json.loads((whole / "pretrain.json").read_text())
    assert account["pieces"][-1]["held_out_loss"] == pytest.approx(float(loss), rel=1e-5)


def test_the_model_is_a_base_with_its_head(whole: Path, documents: list[str], tmp_path: Path) -> None:
    base = load_model(whole)
    assert not base.tuned
    assert preset_for(base) == get_preset("docsplit-bert")
    assert base.model.max_seq_length == 32
    head = make_mlm_head(base.model, "pretrained")
    assert head.pretrained
    assert head.decoder is None  # tied
    saved = load_file(whole / "model.safetensors")
    assert torch.equal(head.dense.weight, saved["cls.predictions.transform.dense.weight"])
    assert json.loads((whole / "config.json").read_text())["architectures"] == ["BertForMaskedLM"]
    result = train(
        documents[:16], tmp_path / "model", base=whole, batch_size=8, max_steps=1, held_out=0.0, progress=False
    )
    assert result.steps == 1
    assert result.preset.pooling == "cls"
    assert "mlm" in result.log[0]


def test_predicting_where_a_token_is_masked_is_the_stock_loss() -> None:
    config = BertConfig(vocab_size=90, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    torch.manual_seed(0)
    ours = MaskedOnlyBert(config).eval()
    stock = BertForMaskedLM(config).eval()
    stock.load_state_dict(ours.state_dict())
    ids = torch.randint(0, 90, (3, 11))
    labels = torch.where(torch.rand(3, 11) < 0.3, ids, -100)
    losses = [ours(input_ids=ids, labels=labels).loss, stock(input_ids=ids, labels=labels).loss]
    assert torch.allclose(*losses, rtol=1e-6)
    for loss in losses:
        loss.backward()
    other = dict(stock.named_parameters())
    for name, parameter in ours.named_parameters():
        assert torch.allclose(parameter.grad, other[name].grad, atol=1e-6), name
    nothing = ours(input_ids=ids, labels=torch.full_like(ids, -100)).loss
    assert float(nothing.detach()) == 0.0


@pytest.mark.parametrize(
    ("option", "said"), [(["--heads", "3"], "32 cannot be divided among 3"), (["--layers", "0"], "at least 1")]
)
def test_settings_out_of_range(
    command: Callable[..., list[str]], tmp_path: Path, option: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(command(tmp_path / "bert", *option))
    assert said in capsys.readouterr().err


def test_a_missing_corpus_is_said(command: Callable[..., list[str]], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"Skipped: .*nowhere\.parquet is not there"):
        main(command(tmp_path / "bert", "--corpus", tmp_path / "nowhere.parquet"))
