"""DocSplit on documents in other languages, with a base that reads them: quality, and what the verdict says.

    python -m benchmarks.builder.multilingual_base
    python -m benchmarks.languages --clones FOLDER

The base is multilingual-e5-small. Some documents of a set and others that are judged, all of them without labels to
train on and to fit an LSA to, as a user has them. Macro-F1 of a logistic regression with five labels a class and with
those of half of the judged documents, over 10 divisions of these, 3 draws each. Its C is chosen by cross-validation
(TF-IDF: 100): the cosines of E5's embeddings are between .7 and 1, and with a C that suits others they can hardly be
told apart.

Rows: words (TF-IDF, LSA); all-MiniLM-L6-v2, which reads English, on 256 tokens; the base on 512 tokens and on whole
documents in chunks, and adapted by ``simlte train --encoder`` as it comes (30 steps), whole where 512 tokens would cut
more than a tenth; static models, distilled from the base and trained as ``simlte train --static`` does it. Documents
have the base's prompt before them, in training too, but where a row says "no prompt". Encoders compute in bfloat16,
training included; static models in float32.

Each cell is kept in the work folder, so that an interrupted benchmark goes on where it stopped; the page is written
anew after each, and what it had before stays: another ``--output`` measures all of it again. ``--rows`` and ``--sets``
choose. Rows, sets and seeds that have not been measured are missing; one seed has no ±.

Small differences say nothing, as few documents are judged. With the labels of half of them the second training on
Arabic makes 20 of 200 come out otherwise, and changes accuracy by -0.5 points, between -2.2 and +1.1 (95%, by
resampling documents): the base is right about 94% already.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.bank.outcomes import outcomes
from benchmarks.bank.sets import BankSet, divide
from benchmarks.builder.multilingual_base import default_folder
from benchmarks.datasets.languages import LANGUAGES, load_language
from benchmarks.grid.work import Busy, Clash, Work, differences
from benchmarks.languages_page import (
    DISTILLED,
    LSA,
    MINILM,
    PLAIN,
    ROWS,
    TFIDF,
    TRAINED,
    TRAININGS,
    UNPROMPTED,
    WHOLE,
)
from benchmarks.models import latent_rows, tfidf_rows
from benchmarks.pages import write_results
from benchmarks.records import TFIDF_INVERSE_L2, environments, make_parser
from benchmarks.static import means
from simlte_st import to_static, train
from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.data.document import count_words
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.errors import DataError, SimlteError
from simlte_st.files import atomic_path, read_json
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE

TOKENS = 32768
"""Tokens of a document that the base reads in chunks, at most."""

CHECKPOINT = 10_000
"""Steps between checkpoints: none is written, of a base of 470 MB."""

Result = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--clones", type=Path, metavar="FOLDER", help="of the repositories (default: the user's cache)")
    parser.add_argument("--base", type=Path, metavar="FOLDER", help="the base (default: where its builder puts it)")
    parser.add_argument("--sets", nargs="+", choices=LANGUAGES, default=list(LANGUAGES), metavar="NAME")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS, metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--documents", type=int, default=100, metavar="N", help="of a set, besides those judged")
    parser.add_argument("--held-out", type=int, default=200, metavar="N", help="judged documents of a set")
    parser.add_argument("--seeds", type=int, default=2, help="trainings (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="of a training, fewer than by default")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("languages.work"), help="folder of what is finished")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    settings = {name: getattr(options, name) for name in ("documents", "held_out", "threads", "steps")}
    work, base = Work(options.work, torch.bfloat16), options.base or default_folder()
    table = Table(work, base, settings, earlier_record(options.output / "languages.json", settings))
    for _ in table.fill(options.sets, options.rows, options.clones, options.seeds):
        write_results("languages", table.record(), options.output, aloud=False)
    write_results("languages", table.record(), options.output)


def earlier_record(path: Path, settings: Result) -> Result:
    """Return the record that a page was made of, of which nothing is measured again; {} where there is none."""
    if not path.exists():
        return {}
    record: Result = read_json(path)
    if different := sorted(differences(record["settings"], settings)):
        raise Clash(f"{path} was made with other settings: {'; '.join(different)}. Give another --output.")
    return record


class Table:
    """The table in a work folder, and what an earlier record has of it."""

    def __init__(self, work: Work, base: Path, settings: Result, earlier: Result) -> None:
        self.work, self.base, self.settings, self.earlier = work, str(base), settings, earlier

    def fill(self, names: Sequence[str], rows: Sequence[str], clones: Path | None, seeds: int) -> Iterator[None]:
        """Make what is missing, row by row; gives control back after each cell."""
        found: dict[str, BankSet] = {}
        for name in names:
            try:
                documents = load_language(name, clones)
            except DataError as error:
                print(f"Skipped {name}: {error}", flush=True)
                continue
            found[name] = divide(name, documents, self.settings["documents"], self.settings["held_out"])
            self.work.finish(f"lengths/{name}", self.settings, partial(self._lengths, found[name]))
        for seed in range(seeds):
            for row in rows if seed == 0 else [row for row in rows if row in TRAININGS]:
                for name, data in found.items():
                    if seed < len(self.earlier.get("results", {}).get(name, {}).get(row, ())):
                        continue
                    job = partial(self._judged, data, row, seed)
                    try:
                        self.work.finish_aloud(f"cells/{name}/{row}/{seed}", self.settings, job)
                    except (SimlteError, Busy) as error:
                        print(f"Skipped {row} on {name}: {error}", flush=True)
                    else:
                        yield

    def record(self) -> Result:
        """Return all that is finished, what ``benchmarks.languages_words`` has put into the work folder included."""
        found: dict[str, dict[str, dict[int, Result]]] = {}
        for name, rows in self.earlier.get("results", {}).items():
            found[name] = {row: dict(enumerate(results)) for row, results in rows.items()}
        cells = list(self.work.cells("cells/*/*/*"))
        for path, cell in cells:
            _, name, row, _ = path.parts
            found.setdefault(name, {}).setdefault(row, {})[int(path.stem)] = cell["result"]
        lengths = {path.stem: cell["result"] for path, cell in self.work.cells("lengths/*")}
        lengths = {**self.earlier.get("sets", {}), **lengths}
        known = [{"environment": each} for each in self.earlier.get("environments", ())]
        return {
            "settings": self.settings,
            "sets": {name: lengths[name] for name in LANGUAGES if name in lengths},
            "results": {
                name: {row: [results[seed] for seed in sorted(results)] for row, results in rows.items()}
                for name, rows in found.items()
            },
            **{kind: self._by_version(kind) for kind in ("search", "words")},
            "environments": environments([*known, *(cell for _, cell in cells)]),
        }

    def _by_version(self, kind: str) -> dict[str, dict[str, Result]]:
        """Return what was measured of words, by version of this package and language."""
        found = {version: dict(results) for version, results in self.earlier.get(kind, {}).items()}
        for path, cell in self.work.cells(f"{kind}/*/*"):
            found.setdefault(path.parts[1], {})[path.stem] = cell["result"]
        return found

    def _judged(self, data: BankSet, row: str, seed: int) -> Result:
        """Judge a row on a set; the vectors are kept beside."""
        texts = [document.text for document in data.held]
        began, found = time.process_time(), {}
        if row == TFIDF:
            vectors = tfidf_rows(texts)
        elif row == LSA:
            vectors = latent_rows([each.text for each in data.train] + texts)[len(data.train) :]
        elif row in TRAININGS:
            model, found = self._trained(row, data, seed)
            found["training"] = time.process_time() - began
            vectors = encoded(model, texts)
        else:
            vectors = encoded(self._fixed(row), texts)
        path = self.work.path(f"vectors/{data.name}/{row}/{seed}").with_suffix(".npy")
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, vectors)
        return {**means(outcomes(data, vectors, TFIDF_INVERSE_L2 if row == TFIDF else None)), **found}

    def _trained(self, row: str, data: BankSet, seed: int) -> tuple[SentenceTransformer, Result]:
        """Train a model on a set, and return it with what the verdict says."""
        static = row == TRAINED
        base = self._static() if static else self._plain() if row == UNPROMPTED else self.base
        with tempfile.TemporaryDirectory() as folder:
            result = train(
                [*data.train, *data.held],
                f"{folder}/model",
                base=base,
                static=static,
                bf16=not static,
                seed=seed,
                max_steps=self.settings["steps"],
                keep="trained",
                save_steps=CHECKPOINT,
                progress=False,
            )
            model = load_model(f"{folder}/model", dtype=torch.float32 if static else torch.bfloat16).model
        if row == UNPROMPTED:
            model.prompts = base_model(self.base).prompts
        gain = result.gain or {}
        return model, {"verdict": gain.get("verdict"), "probability": gain.get("probability")}

    def _fixed(self, row: str) -> SentenceTransformer:
        """Return a model that no documents have changed."""
        if row == DISTILLED:
            return load_model(self._static(), dtype=torch.float32).model
        source = {MINILM: PACKAGED_BASE, PLAIN: self._plain}.get(row, self.base)
        model = load_model(source() if callable(source) else source, dtype=torch.bfloat16).model
        return to_chunk_mean(model, TOKENS) if row == WHOLE else model

    def _static(self) -> str:
        """Return the folder of the static model that is distilled from the base, made once."""
        folder = self.work.folder / "models" / "static"
        if not folder.exists():
            to_static(self.base, folder, progress=False)
        return str(folder)

    def _plain(self) -> str:
        """Return the folder of the base without its prompts, made once."""
        folder = self.work.folder / "models" / "plain"
        if not folder.exists():
            model = load_model(self.base, dtype=torch.float32).model
            model.prompts = {}
            model.save_pretrained(str(folder))
        return str(folder)

    def _lengths(self, data: BankSet) -> Result:
        """Count documents, classes, words and tokens of a set."""
        texts = [document.text for document in (*data.train, *data.held)]
        counts = tokenizer_counter(base_model(self.base).tokenizer)(texts)
        return {
            "documents": len(texts),
            "judged": len(data.held),
            "classes": len(set(data.labels)),
            "words": float(np.median([count_words(text) for text in texts])),
            "tokens": float(np.median(counts)),
        }


@cache
def base_model(base: str) -> SentenceTransformer:
    """Return the base, for its tokenizer and its prompts."""
    return load_model(base).model


def encoded(model: SentenceTransformer, texts: Sequence[str]) -> np.ndarray:
    """Return the embeddings of documents, float32, with the model's prompt for them."""
    return np.asarray(model.encode_document(list(texts), batch_size=16, show_progress_bar=False), dtype=np.float32)


if __name__ == "__main__":
    logging.getLogger("simlte_st.evaluation").setLevel(logging.ERROR)  # that small classes give all they have
    main()
