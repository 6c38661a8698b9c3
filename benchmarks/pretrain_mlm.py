"""A small BERT from nothing: masked-language-model pretraining, in pieces where the time for one run is short.

    python -m benchmarks.pretrain_mlm --corpus enwiki2014.parquet --output bert-small --steps 20000 --minutes 9

The same command again goes on where it stopped, until all steps are done: pieces or no pieces, the model is the same,
byte for byte (on a CPU, with the same number of threads). What a piece needs lies in ``OUTPUT.run``; the tokens in the
folder ``--work``, where other runs on the same documents, with the same vocabulary and length, find them. OUTPUT is
then a BERT with its MLM head, the raw language model that the papers' objectives begin with (``simlte train --base
OUTPUT``), and ``pretrain.json`` says how it was made.

The corpus: anything that ``simlte train`` reads. Whole documents are packed into sequences (``packed_text.py``); the
Trainer is transformers' own.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, disable_progress_bars
from datasets.fingerprint import Hasher
from torch.nn import functional
from tqdm.auto import tqdm
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.modeling_outputs import MaskedLMOutput
from transformers.trainer import TRAINER_STATE_NAME

from benchmarks.packed_text import Masking, learn_word_pieces, read_packed, word_piece_tokenizer, write_packed
from benchmarks.records import add_bf16, dtype_of, environment
from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.data.epochs import EpochClock
from simlte_st.errors import ConfigurationError, SimlteError
from simlte_st.files import atomic_path, read_json, write_json
from simlte_st.models.names import packaged_base_path
from simlte_st.training.callbacks import CompleteCallback, InterruptCallback
from simlte_st.training.prepare import HeldOut
from simlte_st.training.run import RunFolder

ACCOUNT = "pretrain.json"
HELD_OUT_BATCH = 32  # with its masks a part of what is measured, so not a setting
Clock = Callable[[], float]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="folder of the finished model")
    parser.add_argument("--work", type=Path, default=Path("pretrain.work"), help="folder of the documents' tokens")
    parser.add_argument("--limit", type=int, help="use no more than so many documents")
    parser.add_argument("--vocabulary", type=int, help="learn so many word pieces (default: the packaged MiniLM's)")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, help="attention heads (default: one for 64 of --hidden)")
    parser.add_argument("--max-length", type=int, default=256, help="tokens of a sequence, and positions of the model")
    parser.add_argument("--steps", type=int, required=True, help="of the whole run, whatever the pieces")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=5e-4, help="its peak (default: %(default)s)")
    parser.add_argument("--warmup", type=float, default=0.06, help="share of all steps (default: %(default)s)")
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument(
        "--held-out", type=int, default=64, help="documents to measure on (at most a tenth), 0 for none"
    )
    parser.add_argument("--seed", type=int, default=0)
    add_bf16(parser)
    parser.add_argument("--device", choices=["auto", "cpu"], default="auto")
    parser.add_argument("--workers", type=int, default=0, help="processes that make batches")
    parser.add_argument("--minutes", type=float, help="stop in time to be done after so many, everything included")
    parser.add_argument("--save-steps", type=int, default=500, help="steps between checkpoints (a stop makes one too)")
    parser.add_argument("--log-steps", type=int, default=50)
    arguments = parser.parse_args(argv)
    for name in ("layers", "hidden", "steps", "batch_size", "save_steps", "log_steps"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} {getattr(arguments, name)}: at least 1.")
    arguments.heads = arguments.heads or max(1, arguments.hidden // 64)
    if arguments.hidden % arguments.heads:
        parser.error(f"--hidden {arguments.hidden} cannot be divided among {arguments.heads} heads.")
    arguments.cpu = arguments.device == "cpu" or not (torch.cuda.is_available() or torch.backends.mps.is_available())
    return arguments


def main(argv: Sequence[str] | None = None, clock: Clock = time.monotonic) -> None:
    arguments = parse(argv)
    if not arguments.corpus.exists():
        raise SystemExit(f"Skipped: {arguments.corpus} is not there.")
    deadline = math.inf if arguments.minutes is None else clock() + 60 * arguments.minutes
    try:
        pretrain(arguments, deadline, clock)
    except SimlteError as error:
        raise SystemExit(f"Error: {error}") from error
    except TimeIsUp:
        print("Stopped while tokenizing: the same command goes on.")


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Collect what decides the outcome."""
    names = (
        "limit", "vocabulary", "layers", "hidden", "heads", "max_length", "steps", "batch_size", "learning_rate",
        "warmup", "weight_decay", "held_out", "seed", "bf16",
    )  # fmt: skip
    return {"corpus": arguments.corpus.name, **{name: getattr(arguments, name) for name in names}}


def pretrain(arguments: argparse.Namespace, deadline: float, clock: Clock) -> None:
    """Train until all steps are done or the time is up; write the model in the first case."""
    settings = settings_of(arguments)
    output = arguments.output
    begun = (output.with_name(f"{output.name}.run") / "settings.json").exists()
    if not begun and (output / ACCOUNT).exists():
        if read_json(output / ACCOUNT)["settings"] != settings:
            raise ConfigurationError(f"{output} was made with other settings: choose another output, or delete it.")
        print(f"{output} is finished.")
        return
    folder = RunFolder.open(output, settings, resume=begun, overwrite=False)
    tokenizer = make_tokenizer(arguments, folder)
    text, held_out, documents = packed(arguments, tokenizer, lambda: clock() >= deadline)

    measuring = 0 if held_out is None else len(held_out) / arguments.batch_size / 2  # a step is three forward passes
    piece = Piece(deadline, measuring, clock)
    interrupt = InterruptCallback()
    trainer = make_trainer(arguments, folder, tokenizer, text, [interrupt, piece, CompleteCallback()])
    checkpoint = folder.checkpoint
    state = None if checkpoint is None else TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    done_before = 0 if state is None else state.global_step
    began = clock()
    if state is None or state.global_step < arguments.steps:
        try:
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        finally:
            interrupt.restore()
        state = trainer.state
    else:  # killed after its last step, which the Trainer would now do once more
        trainer.model.load_state_dict(BertForMaskedLM.from_pretrained(checkpoint).state_dict())
    record: dict[str, Any] = {"steps": state.global_step - done_before, "seconds": round(clock() - began, 1)}
    if held_out is not None:
        trainer.data_collator = Masking(tokenizer, 0)
        loss = trainer.evaluate(held_out)["eval_loss"]
        record |= {"held_out_loss": loss, "perplexity": math.exp(loss)}
        print(f"held out: loss {loss:.3f}, perplexity {math.exp(loss):.1f}", flush=True)
    pieces = folder.path / "pieces.json"
    records = [*(read_json(pieces) if pieces.exists() else []), record]
    write_json(pieces, records)
    if state.global_step < arguments.steps:
        print(f"Stopped after {state.global_step} of {arguments.steps} steps: the same command goes on.", flush=True)
        return

    account = {
        "settings": settings,
        "corpus": {
            **documents,
            "sequences": len(text),
            "held_out_sequences": 0 if held_out is None else len(held_out),
        },
        "parameters": trainer.model.num_parameters(),
        "tokens_seen": int(state.num_input_tokens_seen),
        "passes": round(state.num_input_tokens_seen / arguments.max_length / len(text), 3),
        "seconds": round(sum(each["seconds"] for each in records), 1),
        "pieces": records,
        "log": [line for line in state.log_history if "loss" in line],
        "environment": environment(dtype_of(arguments.bf16)),
    }
    save(trainer.model, tokenizer, output, account)
    folder.close()
    print(f"{output} is finished: {account['tokens_seen']:,} tokens in {account['seconds']:.0f} s.", flush=True)


def make_tokenizer(arguments: argparse.Namespace, folder: RunFolder) -> BertTokenizer:
    """Take the packaged word pieces, or learn them, which the first piece of a run does."""
    if arguments.vocabulary is None:
        packaged = BertTokenizer.from_pretrained(packaged_base_path())
        return word_piece_tokenizer(packaged.get_vocab(), arguments.max_length)
    path = folder.path / "vocabulary.json"
    if not path.exists():

        def texts() -> Iterator[str]:
            return (document.text for document in reader_of(arguments))

        write_json(path, learn_word_pieces(texts, arguments.vocabulary, progress=True))
    return word_piece_tokenizer(read_json(path), arguments.max_length)


def reader_of(arguments: argparse.Namespace) -> DocumentReader:
    return read_documents(arguments.corpus, limit=arguments.limit)


class TimeIsUp(Exception):
    """There is no time left in which the documents could be tokenized; what was done is kept."""


def packed(
    arguments: argparse.Namespace, tokenizer: BertTokenizer, late: Callable[[], bool]
) -> tuple[Dataset, Dataset | None, dict[str, int]]:
    """Pack the corpus; later pieces and other runs take what is there.

    Which documents are held out depends on their ids only, not on the run's seed: seeds are compared on the same.

    Returns:
        The sequences to train on, those to measure on, and the numbers of documents of either.
    """
    length, most = arguments.max_length, arguments.held_out
    files = sorted(path for path in (arguments.corpus, *arguments.corpus.rglob("*")) if path.is_file())
    stamps = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    key = Hasher.hash([stamps, arguments.limit, most, length, sorted(tokenizer.get_vocab().items())])
    directory = arguments.work / key
    account = directory / "documents.json"
    if not account.exists():
        disable_progress_bars()  # those of each batch of documents
        holder, read = HeldOut(0.1, least=0, most=most), count()

        def documents() -> Iterator[Document]:
            for document in tqdm(reader_of(arguments), desc="Tokenizing", unit="doc"):
                if late():
                    raise TimeIsUp
                next(read)
                yield document

        write_packed(holder.divert(documents()), tokenizer, length, directory / "train")
        write_packed(holder.documents, tokenizer, length, directory / "held_out")
        write_json(account, {"documents": next(read), "held_out_documents": len(holder.documents)})
    documents_of = read_json(account)
    held_out = read_packed(directory / "held_out") if documents_of["held_out_documents"] else None
    return read_packed(directory / "train"), held_out, documents_of


class MaskedOnlyBert(BertForMaskedLM):
    """BERT that predicts where a token is masked, and nowhere else: the same loss for a seventh of the products.

    In a small model the product with all words of the vocabulary is most of the work.
    """

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> MaskedLMOutput:  # type: ignore[override]
        """Compute the mean loss over the tokens whose label is not -100."""
        chosen = labels != -100
        logits = self.cls(self.bert(input_ids).last_hidden_state[chosen])
        total = functional.cross_entropy(logits.float(), labels[chosen], reduction="sum")
        return MaskedLMOutput(loss=total / chosen.sum().clamp(min=1), logits=logits)


def make_model(arguments: argparse.Namespace, tokenizer: BertTokenizer) -> MaskedOnlyBert:
    """Make the model, with weights that depend on the seed only."""
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=arguments.hidden,
        num_hidden_layers=arguments.layers,
        num_attention_heads=arguments.heads,
        intermediate_size=4 * arguments.hidden,
        max_position_embeddings=arguments.max_length,  # what lies beyond would never be trained
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(arguments.seed)
        return MaskedOnlyBert(config)


def make_trainer(
    arguments: argparse.Namespace,
    folder: RunFolder,
    tokenizer: BertTokenizer,
    text: Dataset,
    callbacks: list[TrainerCallback],
) -> Trainer:
    """Set up the stock Trainer."""
    clock = EpochClock()
    trainer = Trainer(
        model=make_model(arguments, tokenizer),
        args=TrainingArguments(
            output_dir=str(folder.checkpoints),
            max_steps=arguments.steps,
            per_device_train_batch_size=arguments.batch_size,
            per_device_eval_batch_size=HELD_OUT_BATCH,
            learning_rate=arguments.learning_rate,
            lr_scheduler_type="linear",
            warmup_steps=math.ceil(arguments.warmup * arguments.steps),
            weight_decay=arguments.weight_decay,
            adam_beta2=0.98,  # this and the next as RoBERTa (Liu et al., 2019)
            adam_epsilon=1e-6,
            seed=arguments.seed,
            bf16=arguments.bf16,
            use_cpu=arguments.cpu,
            dataloader_num_workers=arguments.workers,
            dataloader_pin_memory=not arguments.cpu,
            remove_unused_columns=False,
            prediction_loss_only=True,
            include_num_input_tokens_seen="all",
            save_strategy="steps",
            save_steps=arguments.save_steps,
            save_total_limit=2,
            logging_steps=arguments.log_steps,
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=text,
        data_collator=Masking(tokenizer, arguments.seed, clock),
        callbacks=[clock, *callbacks],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


class Piece(TrainerCallback):
    """One piece of a run: says how it goes, and ends it in time, with a checkpoint.

    Args:
        deadline: Time of the clock at which all is to be done.
        measuring: What comes after the last step, in steps.
        clock: Gives seconds.
    """

    def __init__(self, deadline: float, measuring: float, clock: Clock) -> None:
        self._deadline = deadline
        self._measuring = measuring
        self._clock = clock
        self._began = self._first_step = self._first_tokens = 0.0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Look at the clock."""
        self._began = self._clock()
        self._first_step, self._first_tokens = state.global_step, state.num_input_tokens_seen

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        """Ask for a checkpoint and the end where one more step, and measuring, would be too late."""
        now = self._clock()
        seconds = (now - self._began) / (state.global_step - self._first_step)
        if now + (1 + self._measuring) * seconds > self._deadline:
            control.should_save = control.should_training_stop = True
        if control.should_training_stop:
            control.should_log = True
        return control

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Print a line."""
        if logs is None or "loss" not in logs or state.global_step == self._first_step:
            return
        passed = self._clock() - self._began
        rate = (state.num_input_tokens_seen - self._first_tokens) / max(passed, 1e-9)
        left = passed / (state.global_step - self._first_step) * (state.max_steps - state.global_step)
        print(
            f"step {state.global_step}/{state.max_steps}: loss {float(logs['loss']):.3f}, {rate:,.0f} tokens/s, "
            f"{left / 60:.0f} min left of all steps",
            flush=True,
        )


def save(model: MaskedOnlyBert, tokenizer: BertTokenizer, output: Path, account: dict[str, Any]) -> None:
    """Write the model as a stock BERT, with its tokenizer and the account, in one rename."""
    stock = BertForMaskedLM(model.config)
    stock.load_state_dict({name: value.cpu() for name, value in model.state_dict().items()})
    with atomic_path(output) as path:
        stock.save_pretrained(path)
        tokenizer.save_pretrained(path)
        write_json(path / ACCOUNT, account)


if __name__ == "__main__":
    main()
