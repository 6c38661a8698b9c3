"""Does making views starve training? Reading, segmenting and splitting against the model, on one core.

    python -m benchmarks.starvation --data folder-or-file

Side by side in one process on one thread, several rounds, medians: documents a second of (a) reading and segmenting,
done once a run; (b) drawing views and tokenizing them, done each step; and of the model's training step on the same
documents. Training never waits if (b), and (a) on the way in, are much faster than the step. Without ``--data`` the
packaged BBC News articles are used.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from simlte_st.data.pairs import PairDrawer

from benchmarks.records import RESULTS, environment
from simlte_st.compat import view_budget
from simlte_st.data import DocSplitCollator, PunktSegmenter, read_documents, write_corpus
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.data.views import DocSplit
from simlte_st.datasets.bbc import packaged_corpus_path
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import write_json
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training.dropout import set_dropout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="any source of documents; default: the packaged BBC News")
    parser.add_argument("--documents", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128, help="tokens a view may have")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    source = arguments.data or packaged_corpus_path()
    model = load_model(PACKAGED_BASE, max_seq_length=arguments.tokens).model
    set_dropout(model, 0.0)
    model.train()
    documents = list(read_documents(source, limit=arguments.documents, encoding="latin-1"))
    cut = PunktSegmenter.installed() or PunktSegmenter.learn(document.text for document in documents)
    view = DocSplit()
    with tempfile.TemporaryDirectory() as folder:
        corpus, _ = write_corpus(
            documents, folder, view=view, segmenter=cut, count_tokens=tokenizer_counter(model.tokenizer)
        )
        rows = corpus.to_list()
    collator = DocSplitCollator(
        preprocess_fn=model.preprocess, drawer=PairDrawer(view=view, seed=0, budget=view_budget(model))
    )
    loss = MultipleNegativesRankingLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    batch = rows[:16]

    def prepare() -> int:
        with tempfile.TemporaryDirectory() as target:
            stream = read_documents(source, limit=arguments.documents, encoding="latin-1")
            write_corpus(stream, target, view=view, segmenter=cut, count_tokens=tokenizer_counter(model.tokenizer))
        return len(documents)

    def collate() -> int:
        for start in range(0, len(rows), len(batch)):
            collator(rows[start : start + len(batch)])
        return len(rows)

    def step() -> int:
        features = collator(batch)
        columns = [
            {key.removeprefix(f"{name}_"): value for key, value in features.items() if key.startswith(f"{name}_")}
            for name in ("anchor", "positive")
        ]
        began = time.perf_counter()
        loss(columns, None).backward()
        optimizer.step()
        optimizer.zero_grad()
        spent.append(time.perf_counter() - began)
        return len(batch)

    spent: list[float] = []
    rates: dict[str, list[float]] = {"read and segment": [], "split and tokenize": [], "training step": []}
    step()
    for number in range(arguments.rounds):
        rates["read and segment"].append(rate(prepare))
        rates["split and tokenize"].append(rate(collate))
        rates["training step"].append(step() / spent[-1])
        print(f"round {number + 1} of {arguments.rounds}", flush=True)
    model_rate = statistics.median(rates["training step"])
    table = markdown_table(
        ["stage", "documents a second", "times the model's rate"],
        [
            [name, f"{statistics.median(values):.1f}", f"{statistics.median(values) / model_rate:.1f}"]
            for name, values in rates.items()
        ],
    )
    words = statistics.median(len(document.text.split()) for document in documents)
    text = [
        "# Making views against training, on one core",
        "",
        f"all-MiniLM-L6-v2, {arguments.tokens} tokens a view, batches of {len(batch)}, {len(documents)} documents "
        f"(median {words:.0f} words); medians of {arguments.rounds} rounds in one process on one thread. Reading and "
        "segmenting is done once a run, splitting and tokenizing in each step.",
        "",
        table,
        "",
        "    python -m benchmarks.starvation" + (f" --data {Path(str(arguments.data)).name}" if arguments.data else ""),
        "",
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "starvation.md").write_text("\n".join(text), encoding="utf-8")
    options = {"documents": len(documents), "rounds": arguments.rounds, "tokens": arguments.tokens}
    write_json(
        RESULTS / "starvation.json", {"options": options, "environment": environment(), "documents_per_second": rates}
    )
    print("\n".join(text))


def rate(job: Callable[[], int]) -> float:
    began = time.perf_counter()
    return job() / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
