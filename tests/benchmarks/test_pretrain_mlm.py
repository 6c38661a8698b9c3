from __future__ import annotations

from pathlib import Path

import pytest
from support import make_tokenizer, write_jsonl
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerBase, Trainer, TrainerCallback

from benchmarks import pretrain_mlm
from benchmarks.pretrain_mlm import main, pack
from simlte_st.errors import ConfigurationError
from simlte_st.files import read_json


@pytest.fixture
def corpus(documents: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    write_jsonl(path, ({"text": text} for text in documents))
    return path


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerBase:
    return make_tokenizer()


def test_no_token_is_lost_but_those_of_the_last_sequence(
    corpus: Path, documents: list[str], tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    packed = pack(corpus, None, tokenizer, 16, tmp_path / "cache")
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    stream = [token for ids in tokenizer(documents, add_special_tokens=False)["input_ids"] for token in (*ids, last)]
    sequences = packed["input_ids"][:]
    assert {(len(ids), ids[0], ids[-1]) for ids in sequences} == {(16, first, last)}
    inside = [token for ids in sequences for token in ids[1:-1]]
    assert inside == stream[: len(inside)]
    assert len(stream) - len(inside) < 14
    for row in packed:
        assert row["special_tokens_mask"] == [int(token in (first, last)) for token in row["input_ids"]]


def test_an_interrupted_run_goes_on_and_the_model_is_a_base(
    corpus: Path,
    encoder_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Kill(TrainerCallback):
        def on_step_begin(self, args: object, state: object, control: object, **options: object) -> None:
            if state.global_step == 4:  # type: ignore[attr-defined]
                raise KeyboardInterrupt

    monkeypatch.setattr(pretrain_mlm, "packaged_base_path", lambda: encoder_path)
    command = ["--corpus", str(corpus), "--layers", "1", "--hidden", "64", "--max-length", "32", "--steps", "6"]
    command += ["--batch-size", "4", "--held-out", "4", "--save-steps", "2"]
    command += ["--output", str(tmp_path / "made")]
    train = Trainer.train
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train", lambda self, **options: (self.add_callback(Kill), train(self, **options)))
        with pytest.raises(KeyboardInterrupt):
            main(command)
    assert not (tmp_path / "made").exists()
    begins: list[str] = []

    def resumed(self: Trainer, resume_from_checkpoint: str) -> object:
        begins.append(resume_from_checkpoint)
        return train(self, resume_from_checkpoint=resume_from_checkpoint)

    monkeypatch.setattr(Trainer, "train", resumed)
    main(command)
    assert [Path(begin).name for begin in begins] == ["checkpoint-4"]
    account = read_json(tmp_path / "made" / "pretrain.json")
    assert 0 < account["held_out_loss"] < 10
    assert account["settings"]["corpus"] == "rows.jsonl"
    assert "perplexity" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.run"))
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "made")
    assert model.config.max_position_embeddings == 32
    with pytest.raises(ConfigurationError, match="exists already"):
        main(command)
