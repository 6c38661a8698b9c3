"""A small BERT from nothing: masked-language-model pretraining with transformers' own Trainer and collator.

    python -m benchmarks.pretrain_mlm --corpus enwiki2014.parquet --output bert-small --steps 20000

OUTPUT is a BERT with its MLM head and MiniLM's word pieces, the raw language model that the papers' objectives begin
with (``simlte train --base OUTPUT``, ``python -m benchmarks.paper --base OUTPUT``). The corpus: anything that ``simlte
train`` reads. As in transformers' ``run_mlm``, documents are joined, with [SEP] between two, and cut into sequences of
one length; nothing is padded. The same command again goes on at the last checkpoint of an interrupted run, in
``OUTPUT.run``, with other masks than an uninterrupted one draws.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import get_last_checkpoint

from benchmarks.records import dtype_of, environment, make_parser
from simlte_st.data import read_documents
from simlte_st.files import atomic_path, check_free, write_json
from simlte_st.models.names import packaged_base_path

ACCOUNT = "pretrain.json"
"""In the model's folder: the settings, and the loss on sequences that were held out."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--bf16")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="folder of the finished model")
    parser.add_argument("--limit", type=int, help="use no more than so many documents")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256, help="a multiple of 64, the size of an attention head")
    parser.add_argument("--max-length", type=int, default=256, help="tokens of a sequence, and positions of the model")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=5e-4, help="its peak (default: %(default)s)")
    parser.add_argument("--held-out", type=int, default=256, help="sequences to measure on (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-steps", type=int, default=500, help="steps between checkpoints")
    options = parser.parse_args(argv)
    check_free(options.output, overwrite=False)
    folder = options.output.with_name(f"{options.output.name}.run")
    set_seed(options.seed)
    tokenizer = AutoTokenizer.from_pretrained(packaged_base_path(), model_max_length=options.max_length)
    parts = pack(options.corpus, options.limit, tokenizer, options.max_length, folder / "text").train_test_split(
        options.held_out, seed=0
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=max(1, options.hidden // 64),
        intermediate_size=4 * options.hidden,
        max_position_embeddings=options.max_length,  # what lies beyond would never be trained
        pad_token_id=tokenizer.pad_token_id,
    )
    trainer = Trainer(
        model=BertForMaskedLM(config),
        args=TrainingArguments(
            output_dir=str(folder / "checkpoints"),
            max_steps=options.steps,
            per_device_train_batch_size=options.batch_size,
            learning_rate=options.learning_rate,
            warmup_steps=math.ceil(0.06 * options.steps),
            weight_decay=0.01,
            adam_beta2=0.98,  # this and the next as RoBERTa (Liu et al., 2019)
            adam_epsilon=1e-6,
            seed=options.seed,
            bf16=options.bf16,
            prediction_loss_only=True,
            save_steps=options.save_steps,
            save_total_limit=2,
            report_to="none",
        ),
        train_dataset=parts["train"],
        eval_dataset=parts["test"],
        data_collator=DataCollatorForLanguageModeling(tokenizer),
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(trainer.args.output_dir))
    set_seed(options.seed)  # the masks of what is measured
    loss = trainer.evaluate()["eval_loss"]
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    account: dict[str, Any] = {
        "settings": {**settings, "corpus": options.corpus.name, "output": options.output.name},
        "sequences": len(parts["train"]),
        "held_out_loss": loss,
        "log": [line for line in trainer.state.log_history if "loss" in line],
        "environment": environment(dtype_of(options.bf16)),
    }
    with atomic_path(options.output) as path:
        trainer.model.save_pretrained(path)
        tokenizer.save_pretrained(path)
        write_json(path / ACCOUNT, account)
    shutil.rmtree(folder)
    print(f"{options.output} is finished: held out, loss {loss:.3f}, perplexity {math.exp(loss):.1f}.")


def pack(
    corpus: str | Path, limit: int | None, tokenizer: PreTrainedTokenizerBase, length: int, cache: Path
) -> Dataset:
    """Join documents with [SEP] and cut them into sequences; the rest of each 1,000 that fills none is dropped."""

    def rows() -> Iterator[dict[str, str]]:
        for document in read_documents(corpus, limit=limit):
            yield {"text": document.text}

    def cut(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        tokens = tokenizer(batch["text"], add_special_tokens=False, verbose=False)["input_ids"]
        stream = list(chain.from_iterable([*ids, tokenizer.sep_token_id] for ids in tokens))
        ends = range(length - 2, len(stream) + 1, length - 2)
        made = [[tokenizer.cls_token_id, *stream[end - length + 2 : end], tokenizer.sep_token_id] for end in ends]
        special = set(tokenizer.all_special_ids)
        return {"input_ids": made, "special_tokens_mask": [[int(token in special) for token in ids] for ids in made]}

    text = Dataset.from_generator(rows, cache_dir=str(cache))
    return text.map(cut, batched=True, remove_columns=["text"])


if __name__ == "__main__":
    main()
