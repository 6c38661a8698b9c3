"""What training on Wikipedia is worth to a static model: simlte-static, and what it is made of.

    python -m benchmarks.build_model simlte-static articles.parquet --limit 12000 --max-steps 0 --output distilled
    python -m benchmarks.static_start --shared SHARED_DATA --distilled distilled

all-MiniLM-L6-v2, distilled to a vector for each token; then trained by DocSplit on Wikipedia, with all that this
changed or with half of it, which is what the package carries, in 8 bits. Macro-F1 with five labelled documents
a class and with half of the documents (C = 10), nothing trained on them: of whole documents, and of short texts (TREC,
SUBJ). Spearman's correlation with people's judgement of how alike two sentences are, times 100.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from benchmarks.bank.outcomes import FEW, FULL, probes
from benchmarks.bank.sets import BankSet, load_sets
from benchmarks.builder.static_model import SHARE, StaticBuild, card
from benchmarks.nli.tasks import STS, load_labelled, load_pairs
from benchmarks.pages import document, explanation, write_results
from benchmarks.records import RESULTS, environment, make_parser
from simlte_st.data.document import Document
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import atomic_path, read_json
from simlte_st.models.base import load_model
from simlte_st.models.names import OWN_STATIC
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE, FOLDER

SETS = ("ag_news", "arxiv", "20news", "bbc", "fakenews", "movie_reviews", "brown", "sotu")
SHORT = ("TREC", "SUBJ")
HALVES = 5
DISTILLED, TRAINED = "distilled", "trained"


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    parser.add_argument("--distilled", type=Path, required=True, metavar="FOLDER", help="what training began with")
    parser.add_argument("--documents", type=int, default=300, metavar="N", help="judged, of each set")
    parser.add_argument("--pairs", type=int, metavar="N", help="of each set of pairs (default: all)")
    options = parser.parse_args(arguments)
    models = static_models(options.distilled)
    sets = [*load_sets(options.shared, list(SETS), 2, options.documents)]
    for name in SHORT:
        found = load_labelled(options.shared, name, 3 * options.documents)
        held = [Document(str(number), text) for number, text in enumerate(found.first)]
        sets.append(BankSet(name, [], held, [str(label) for label in found.labels]))
    pairs = {name: load_pairs(options.shared, name, options.pairs) for name in STS}
    rows: dict[str, Any] = {}
    for name, model in models.items():
        scores = {data.name: judge(data, model) for data in sets}
        alike = {key: similarity(each.first, each.second, each.scores, model) for key, each in pairs.items()}
        rows[name] = {"scores": scores, "similarity": alike}
        print(name, rows[name], flush=True)
    record = {"rows": rows, "documents": options.documents, "environment": environment()}
    write_results("static_start", record, options.output)
    if options.output == RESULTS:
        with atomic_path(FOLDER / OWN_STATIC / CARD_FILE) as path:
            path.write_text(card_of(record), encoding="utf-8")


def card_of(record: dict[str, Any]) -> str:
    """Return the card of the package's model, with the results."""
    build = StaticBuild(**read_json(FOLDER / OWN_STATIC / BUILD_FILE))
    about = f"{DISTILLED}: before training; {TRAINED}: with all that it changed. Nothing was trained on these sets.\n\n"
    return card(build, about + "\n\n".join(tables(record)))


def static_models(distilled: Path) -> dict[str, SentenceTransformer]:
    """Return the distilled model, the trained one, of which the package's has half of the change, and the package's."""
    start, shipped = (load_model(name, device="cpu").model for name in (distilled, OWN_STATIC))
    trained: Any = copy.deepcopy(start)
    before, after = (table.embedding.weight.detach() for table in (trained[0], shipped[0]))  # type: ignore[union-attr]
    with torch.no_grad():
        trained[0].embedding.weight.copy_(before + (after - before) / SHARE)
    return {DISTILLED: start, TRAINED: trained, OWN_STATIC: shipped}


def judge(data: BankSet, model: SentenceTransformer) -> list[float]:
    """Return macro-F1 with few and with all labels, means over divisions of the documents and draws."""
    texts = [each.text for each in data.held]
    vectors = model.encode(texts, show_progress_bar=False, convert_to_numpy=True).astype(np.float32)
    found = [probes(data, vectors, outcome, halves=HALVES) for outcome in (FEW, FULL)]
    return [float(np.mean([result.macro_f1 for _, result in each])) for each in found]


def similarity(first: list[str], second: list[str], scores: list[float], model: SentenceTransformer) -> float:
    """Return Spearman's correlation of cosine similarities with people's judgement."""
    one, two = (model.encode(texts, show_progress_bar=False, normalize_embeddings=True) for texts in (first, second))
    return float(spearmanr((one * two).sum(axis=1), scores).statistic)


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    return document(
        "# A static model trained on Wikipedia",
        explanation(__doc__),
        f"{record['documents']} documents of each set judged at most.",
        *tables(record),
        machines=[record["environment"]],
    )


def tables(record: dict[str, Any]) -> list[str]:
    """Return the tables: macro-F1 with few labels and with all, and similarity."""
    rows = record["rows"]
    sets, pairs = (list(next(iter(rows.values()))[key]) for key in ("scores", "similarity"))
    made = []
    for outcome, title in enumerate(("macro-F1, 5 labels a class", "macro-F1, all labels")):
        table = []
        for name, row in rows.items():
            values = [100 * row["scores"][each][outcome] for each in sets]
            mean = np.mean([value for each, value in zip(sets, values, strict=True) if each not in SHORT])
            table.append([name, *(f"{value:.1f}" for value in (*values, mean))])
        made.append(markdown_table([title, *sets, "mean without TREC, SUBJ"], table))
    alike = [[row["similarity"][each] for each in pairs] for row in rows.values()]
    table = [
        [name, *(f"{100 * value:.1f}" for value in (*values, np.mean(values)))]
        for name, values in zip(rows, alike, strict=True)
    ]
    return [*made, markdown_table(["similarity of sentences", *pairs, "mean"], table)]


if __name__ == "__main__":
    main()
