"""The Longformer's speed and memory: against transformers' own, against BERT, and against the machine.

    python -m benchmarks.longformer --lengths-from 20newsgroups.parquet
    python -m benchmarks.longformer --device cuda --repeats 20 --lengths-from 20newsgroups.parquet

In 32 bits and in bfloat16: a model of MiniLM's size (6 layers, 384 hidden, 12 heads) with windows of 512 tokens and
random weights, the same in both implementations; [CLS] attends globally in both. What is compared takes turns in one
process; a ratio is one of medians. Memory is the peak that a process of its own reaches beyond what it had when the
model stood. The floor of the machine is the time that the operations of the matrix products would take at the rate of
one large matrix product.
``--lengths-from`` names a source of documents whose lengths are the mix to batch; without it that row is left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from transformers import AutoTokenizer, BertConfig, BertModel, LongformerConfig, LongformerModel, PreTrainedModel

from benchmarks.longformer_cost import attention_operations, encoder_operations
from benchmarks.pages import document, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import matrix_rate, own_process, ratio, resident, side_by_side, spread
from simlte_st.data import read_documents
from simlte_st.evaluation.table import markdown_table
from simlte_st.longformer import SimlteLongformerModel
from simlte_st.longformer.packing import pack_batch
from simlte_st.models.names import packaged_base_path
from simlte_st.training.dropout import set_attention_dropout

SIZE: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
DTYPES = ("float32", "bfloat16")
DROPOUT = 0.1
"""Of attention weights: what stock configurations have."""
Job = Callable[[], object]


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--length", type=int, default=4096, help="tokens of a long document (default: %(default)s)")
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--lengths-from", metavar="SOURCE", help="documents whose lengths are the mix to batch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peak", choices=("ours", "stock"), help=argparse.SUPPRESS)  # one side's process
    arguments = parser.parse_args(argv)
    torch.set_num_threads(arguments.threads)
    if arguments.peak:
        print(json.dumps(peak_of_step(arguments)))
        return
    parts: list[Bench] = []
    file = "longformer" if arguments.device == "cpu" else "longformer_gpu"
    for name in arguments.dtypes:
        bench = Bench(
            arguments,
            getattr(torch, name),
            lambda: write_results(file, result(parts, arguments), arguments.output, aloud=False),
        )
        parts.append(bench)
        bench.layer()
        bench.whole_model()
        bench.growth()
        bench.short_documents()
        if arguments.lengths_from:
            bench.mix_of_lengths(arguments.lengths_from)
        bench.memory()


class Bench:
    """Measures row after row in one type, and says so after each."""

    def __init__(self, arguments: argparse.Namespace, dtype: torch.dtype, measured: Callable[[], None]) -> None:
        self.options, self.write = arguments, measured
        self.device, self.dtype, self.name = arguments.device, dtype, str(dtype).removeprefix("torch.")
        self.rows: list[dict[str, Any]] = []
        self.rate = matrix_rate(self.dtype, self.device, max(5, arguments.repeats))
        torch.manual_seed(0)
        self.stock, self.ours = (self.place(model) for model in both(arguments.window, 4 * arguments.length))
        self.bert = self.place(BertModel(BertConfig(**SIZE, attn_implementation="sdpa")))

    def place(self, model: PreTrainedModel) -> PreTrainedModel:
        """Move a model to the device and type that are measured."""
        return torch.nn.Module.to(model, device=self.device, dtype=self.dtype)

    def compare(
        self,
        name: str,
        jobs: dict[str, Job],
        floor: str,
        aim: str,
        *,
        ours_over_other: bool = False,
        work: float = 0.0,
        sizes: tuple[int, int] = (1, 1),
        **more: Any,
    ) -> None:
        """Measure ours against one other and keep a row."""
        seconds = side_by_side(jobs, self.options.repeats, self.device)
        (mine, ours), (other, others) = seconds.items()
        times = [[each / size for each in turns] for turns, size in zip((ours, others), sizes, strict=True)]
        over, under = times if ours_over_other else times[::-1]
        low, high = spread(over, under)
        row = {
            "measure": name,
            "ours": mine,
            "other": other,
            "seconds": seconds,
            **more,
            "ratio": ratio(over, under),
            "lowest": low,
            "highest": high,
            "floor": floor,
            "aim": aim,
            "share_of_matrix_rate": work / self.rate / statistics.median(ours) if work else None,
        }
        self.rows.append(row)
        print(f"{name}: {row['ratio']:.2f} [{low:.2f}, {high:.2f}]", flush=True)
        self.write()

    def layer(self) -> None:
        """Measure one attention layer."""
        length, window = self.options.length, self.options.window
        ours, stock = self.ours.encoder.layer[0].attention.self, self.stock.encoder.layer[0].attention.self
        hidden = torch.randn(1, length, SIZE["hidden_size"], device=self.device, dtype=self.dtype)
        packing = pack_batch(torch.ones(1, length, dtype=torch.bool), cls=True, device=torch.device(self.device))
        mask = torch.zeros(1, length, device=self.device, dtype=self.dtype)
        mask[:, 0] = 1.0  # what the stock layer takes for a token with global attention
        keywords = {
            "attention_mask": mask,
            "is_index_masked": mask < 0,
            "is_index_global_attn": mask > 0,
            "is_global_attn": True,
        }
        for name, grad, times in (("forward", False, 1), ("forward + backward", True, 3)):
            jobs = {
                "simlte_st": step(lambda x: ours(x[0], packing, "sdpa"), hidden, grad),
                "transformers": step(lambda x: stock(x, **keywords)[0], hidden, grad),
            }
            self.compare(
                f"one attention layer, {name}, {length} tokens", jobs, ">= 6x", ">= 9x",
                work=times * attention_operations([length], window, SIZE["hidden_size"]),
            )  # fmt: skip

    def whole_model(self) -> None:
        """Measure the whole model on one long document."""
        length = self.options.length
        batch = self.random_batch([length])
        marked = {**batch, "global_attention_mask": first_column(batch["input_ids"])}
        half = self.dtype != torch.float32
        for name, grad, times, dropout, floor, aim in (
            ("forward", False, 1, 0.0, ">= 3x", ">= 2.5x" if half else ">= 4x"),
            ("forward + backward", True, 3, 0.0, ">= 3.5x", ">= 5x"),
            (f"forward + backward, attention dropout {DROPOUT}", True, 3, DROPOUT, "", ">= 3.5x" if half else ">= 4x"),
        ):
            for model in (self.stock, self.ours):
                set_attention_dropout(model.train(bool(dropout)), dropout)
            jobs = {
                "simlte_st": model_step(self.ours, batch, grad),
                "transformers": model_step(self.stock, marked, grad),
            }
            self.compare(f"whole model, {name}, {length} tokens", jobs, floor, aim, work=times * self.work([length]))
        for model in (self.stock, self.ours):
            set_attention_dropout(model.eval(), 0.0)

    def growth(self) -> None:
        """Measure a document four times as long."""
        length = self.options.length
        for name, grad, times in (("forward", False, 1), ("forward + backward", True, 3)):
            jobs = {
                f"{4 * length} tokens": model_step(self.ours, self.random_batch([4 * length]), grad),
                f"{length} tokens": model_step(self.ours, self.random_batch([length]), grad),
            }
            self.compare(
                f"time from {length} to {4 * length} tokens, {name}", jobs, "<= 4.5x", "<= 4.1x", ours_over_other=True,
                work=times * self.work([4 * length]),
            )  # fmt: skip

    def short_documents(self) -> None:
        """Measure a batch of short documents."""
        batch = self.random_batch([60] * 32)
        for name, grad, times in (("forward", False, 1), ("forward + backward", True, 3)):
            jobs = {"simlte_st": model_step(self.ours, batch, grad), "BERT, SDPA": model_step(self.bert, batch, grad)}
            self.compare(
                f"32 documents of 60 tokens, {name}, time against BERT", jobs, "<= 1.5x", "<= 1.15x",
                ours_over_other=True, work=times * self.work([60] * 32),
            )  # fmt: skip

    def mix_of_lengths(self, source: str) -> None:
        """Measure a batch with the lengths of real documents."""
        lengths = token_lengths(source, self.options.length)
        uniform = [512] * 32
        for name, grad, times in (("forward", False, 1), ("forward + backward", True, 3)):
            jobs = {
                "mix": model_step(self.ours, self.random_batch(lengths), grad),
                "uniform": model_step(self.ours, self.random_batch(uniform), grad),
            }
            self.compare(
                f"mix of lengths ({sum(lengths)} tokens in 32 documents), {name}, tokens a second against 32 of 512",
                jobs, ">= 0.8x", ">= 0.95x",
                work=times * self.work(lengths), sizes=(sum(lengths), sum(uniform)), lengths=lengths,
            )  # fmt: skip

    def memory(self) -> None:
        """Measure the peak of memory."""
        peaks = {}
        for side in ("ours", "stock"):
            command = [
                "benchmarks.longformer", "--peak", side, "--device", self.device,
                "--dtypes", self.name, "--length", str(self.options.length),
                "--window", str(self.options.window), "--threads", str(self.options.threads),
            ]  # fmt: skip
            peaks[side] = int(own_process(command)["bytes"])
        self.rows.append(
            {
                "measure": f"peak memory, forward + backward, 4 documents of {self.options.length} tokens",
                "ours": "simlte_st",
                "other": "transformers",
                "bytes": peaks,
                "ratio": peaks["ours"] / peaks["stock"],
                "floor": "<= 0.33x",
                "aim": "<= 0.2x",
            }
        )
        print(f"memory: {peaks['ours'] / 2**20:.0f} MiB against {peaks['stock'] / 2**20:.0f} MiB", flush=True)
        self.write()

    def work(self, lengths: list[int]) -> float:
        """Count the operations of a forward pass."""
        return encoder_operations(lengths, self.options.window, SIZE)

    def random_batch(self, lengths: list[int]) -> dict[str, torch.Tensor]:
        """Draw documents of the given lengths."""
        width = max(lengths)
        mask = (torch.arange(width)[None, :] < torch.tensor(lengths)[:, None]).long()
        ids = torch.randint(1000, SIZE["vocab_size"], mask.shape) * mask + (1 - mask)
        return {"input_ids": ids.to(self.device), "attention_mask": mask.to(self.device)}


def result(parts: Sequence[Bench], options: argparse.Namespace) -> dict[str, Any]:
    """Return what has been measured so far."""
    found = environment(parts[-1].dtype)
    del found["dtype"]  # it stands at each part
    # Names, not places: results are published.
    given = {
        key: Path(value).name if key == "lengths_from" else value
        for key, value in vars(options).items()
        if value is not None and key != "output"
    }
    measured = [{"dtype": part.name, "matrix_rate_gflops": part.rate / 1e9, "rows": part.rows} for part in parts]
    return {"options": given, "environment": found, "parts": measured}


def page(record: dict[str, Any]) -> str:
    """Return the page of what has been measured so far."""
    options, found = record["options"], record["environment"]
    blocks = []
    for part in record["parts"]:
        title = f"## {part['dtype']} (a large product: {part['matrix_rate_gflops']:,.0f} GFLOP/s)"
        blocks += [title, table(part["rows"])]
    source = f" --lengths-from {options['lengths_from']}" if "lengths_from" in options else ""
    return document(
        "# The Longformer's speed and memory",
        f"MiniLM's size (6 layers, 384 hidden, 12 heads), window {options['window']}, {found['device']}, "
        f"{options['threads']} thread{'s' * (options['threads'] > 1)}; torch {found['torch']}, transformers "
        f"{found['transformers']}. Ratios of medians of {options['repeats']} turns, taken side by side in one process, "
        "with the lowest and highest of one turn; `>=` rows are times faster than transformers' Longformer. The last "
        "column is the time that the matrix products must take at the rate of one large product, over the time "
        "measured.",
        *blocks,
        command=f"python -m benchmarks.longformer --device {options['device']} --repeats {options['repeats']} "
        f"--threads {options['threads']}{source}",
    )


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Lay out the rows of one type."""
    return markdown_table(
        ["measure", "ratio", "lowest - highest", "floor", "aim", "share of matrix rate"],
        [
            [
                row["measure"],
                f"{row['ratio']:.2f}x",
                f"{row['lowest']:.2f} - {row['highest']:.2f}" if "lowest" in row else "",
                row["floor"],
                row["aim"],
                f"{row['share_of_matrix_rate']:.0%}" if row.get("share_of_matrix_rate") else "",
            ]
            for row in rows
        ],
    )


def both(window: int, length: int) -> tuple[LongformerModel, SimlteLongformerModel]:
    """Make transformers' model and ours, with the same weights."""
    config = LongformerConfig(**SIZE, attention_window=window, pad_token_id=1, max_position_embeddings=length + 2)
    stock = LongformerModel(config, add_pooling_layer=False)
    return stock.eval(), SimlteLongformerModel.from_longformer(stock).eval()


def step(run: Callable[[torch.Tensor], torch.Tensor], hidden: torch.Tensor, grad: bool) -> Job:
    """Make a job that runs a layer, and its backward pass too if asked."""

    def job() -> None:
        inputs = hidden.clone().requires_grad_(grad)
        with torch.set_grad_enabled(grad):
            output = run(inputs)
        if grad:
            output.square().mean().backward()

    return job


def model_step(model: PreTrainedModel, batch: dict[str, torch.Tensor], grad: bool) -> Job:
    """Make a job that runs a model, and its backward pass too if asked."""

    def job() -> None:
        model.zero_grad()
        with torch.set_grad_enabled(grad):
            output = model(**batch).last_hidden_state
        if grad:
            output.square().mean().backward()

    return job


def first_column(ids: torch.Tensor) -> torch.Tensor:
    """Mark the first token of each document."""
    marks = torch.zeros_like(ids)
    marks[:, 0] = 1
    return marks


def token_lengths(source: str, most: int) -> list[int]:
    """Count MiniLM's tokens of 32 documents drawn from a source, special tokens included, at most ``most``."""
    tokenizer = AutoTokenizer.from_pretrained(packaged_base_path())
    texts = [document.text for document in read_documents(source)]
    drawn = Random(0).sample(texts, 32)
    return [min(most, len(ids)) for ids in tokenizer(drawn, truncation=False, verbose=False)["input_ids"]]


def peak_of_step(arguments: argparse.Namespace) -> dict[str, int]:
    """Measure the peak of one forward and backward pass of one side, in a process of its own, in bytes."""
    torch.manual_seed(0)
    stock, ours = both(arguments.window, arguments.length)
    model = ours if arguments.peak == "ours" else stock
    del stock, ours
    model.to(device=arguments.device, dtype=getattr(torch, arguments.dtypes[0]))
    ids = torch.randint(1000, SIZE["vocab_size"], (4, arguments.length), device=arguments.device)
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if arguments.peak == "stock":
        batch["global_attention_mask"] = first_column(ids)
    if arguments.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        model_step(model, batch, True)()
        return {"bytes": torch.cuda.max_memory_allocated() - before}
    before = resident()
    model_step(model, batch, True)()
    return {"bytes": resident(peak=True) - before}


if __name__ == "__main__":
    main()
