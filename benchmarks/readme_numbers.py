"""Numbers of the README and of ``docs/``, taken from the results.

    python -m benchmarks.readme_numbers

Fills the text between ``<!-- numbers: NAME -->`` and ``<!-- end -->`` with a block of
``benchmarks/templates/numbers.md``. A test checks that it is up to date.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import models, search, static
from benchmarks.bank import documents, trust
from benchmarks.bank.outcomes import FEW, FULL
from benchmarks.bank.page import PRESET, gains
from benchmarks.corpus_size import COMMANDS
from benchmarks.embeddings import set_means
from benchmarks.grid.experiments import CLASSIFICATION
from benchmarks.grid.page import docsplit_gains
from benchmarks.grid.printed import papers_gains
from benchmarks.linking.page import AVERAGES, score_cells
from benchmarks.nli.page import claim_cells, read_scores
from benchmarks.pages import fill
from benchmarks.records import RESULTS, mean_deviation, percent
from benchmarks.speed import STOCK
from benchmarks.timing import ratio
from simlte_st.files import read_json
from simlte_st.models.names import OWN_MODELS
from simlte_st.reading.document import LONG

CHECKOUT = Path(__file__).parent.parent
FIGURE = CHECKOUT / "docs" / "gain.svg"
WEIGHTS = CHECKOUT / "simlte_st" / "models" / "weights"
MARKED = re.compile(r"(<!-- numbers: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
ROWS = (static.TFIDF, static.LSA, static.AT_256, static.ADAPTED_256, static.TRAINED_LSA)
"""The rows of the page on static embeddings that the README shows."""

Values = dict[str, Any]
"""Values for a block of the template."""


@cache
def load(name: str) -> Any:
    """Load the JSON file of a page."""
    return read_json(RESULTS / f"{name}.json")


@cache
def training_scores(outcome: str) -> pd.DataFrame:
    """Return macro-F1 by set, ordered by document length, and by row of :data:`ROWS`."""
    scores = set_means(pd.DataFrame(load("static")["results"]), outcome)
    return scores.T.loc[static.set_groups(load("static"))["all sets"], [*ROWS]]


def gain() -> Values:
    """Return the gain from training by set, and the default for documents of that length."""
    sets = load("static")["sets"]
    defaults = {
        name: static.TRAINED_LSA if size["words"] >= LONG else static.ADAPTED_256 for name, size in sets.items()
    }
    return {"sets": sets, "few": training_scores(FEW), "full": training_scores(FULL), "defaults": defaults}


@cache
def judge_unseen(part: Callable[[str, trust.Entry], str]) -> list[trust.Judgement]:
    """Judge the bank's encoders with regressions fitted on all other parts."""
    return trust.left_out(trust.select_kind(load("verdict")["judged"], False), part)


def count_verdicts() -> Values:
    """Count how often labels agreed with a verdict of "helped"."""
    by_set, by_family = (
        [judgement.entry for judgement in judge_unseen(part) if judgement.says_helped]
        for part in (trust.set_name, trust.recipe_family)
    )
    return {
        "models": len(judge_unseen(trust.set_name)),
        "helped": len(by_set),
        "sets": trust.count_outcomes(by_set),
        "documents": trust.count_outcomes(by_set, documents.read_record()["wider"]),
        "families": trust.count_outcomes(by_family),
    }


def speedups() -> pd.DataFrame:
    """Return the speedups of encoding over sentence-transformers, by case and side."""
    turns = {row["case"]: row["seconds"] for row in load("speed")["encoding"]}
    return pd.DataFrame(
        {case: {side: ratio(sides[STOCK], sides[side]) for side in sides} for case, sides in turns.items()}
    ).T


def second_base() -> Values:
    """Return the gains with another base, and the verdict's probability."""
    base = "all-mpnet-base-v2"
    judged = {name: entries for name, entries in load("verdict")["judged"].items() if name.endswith(base)}
    chances = {id(judgement.entry): judgement.probability for judgement in judge_unseen(trust.set_name)}
    table = gains(judged, chances).query(f"recipe == {PRESET!r} and outcome == {FEW!r}")
    return {"base": base, "gains": table.assign(set=table["set"].str.removesuffix(f", {base}"))}


def gain_over_simcse(name: str) -> pd.DataFrame:
    """Return the cells of DocSplit's gain over SimCSE in the papers' experiments beside the papers' own."""
    _, ours, papers = docsplit_gains(load(name)["gains"])
    return pd.concat([table[probe] for probe in CLASSIFICATION for table in (ours, papers)], axis=1)


def static_gain() -> Values:
    """Return the lead of a static model over an adapted encoder, by document length."""
    cells = static.set_differences(load("static")).loc[f"{static.TRAINED_LSA} against {static.ADAPTED_256}"]
    seconds = static.costs(load("static"))["s to encode"].round(1)  # as in the table
    speedup = seconds[static.AT_256] / seconds[static.TRAINED_LSA]
    return {"long": cells.iloc[0].split(" / "), "shorter": cells.iloc[1].split(" / "), "speedup": speedup}


def language_scores() -> Values:
    """Return macro-F1 with few labels before and after adapting a multilingual base, by language."""
    results = pd.DataFrame(load("languages")["results"])
    cells = results.pivot_table(FEW, "row", "set", aggfunc=mean_deviation)[[*load("languages")["sets"]]]
    return {"cells": cells, "means": set_means(results, FEW).mean(axis=1).map(percent)}


@cache
def block_texts() -> dict[str, str]:
    """Return the text of each marked block."""
    averages, systems = score_cells(load("ast"))["mAP"], load("search")["systems"]
    text = fill(
        "numbers.md",
        adapted=load("own_documents")["gains"],
        ast={
            "here": averages,
            "paper": AVERAGES["mAP"].reindex(averages.index).map("{:.1f}".format, na_action="ignore").fillna(""),
        },
        citation=load("citation"),
        commands=COMMANDS,
        corpus_size=load("corpus_size"),
        gain=gain(),
        languages=language_scores(),
        models=models.summary(load("models")).fillna(""),
        mrr={name: search.mean_reciprocal_ranks(search.read_ranks(cells)) for name, cells in systems.items()},
        printed_gains={probe: papers_gains(probe).mean() for probe in CLASSIFICATION},
        paper=gain_over_simcse("paper"),
        paper_longer=gain_over_simcse("paper_400_steps/paper"),
        pretrained=load("paper_400_steps/paper")["gains"]["docsplit-no-mlm over simcse"],
        rerank_seconds=search.median_seconds(systems["simlte-static, rerank"]),
        second_base=second_base(),
        shipped={name: sum(file.stat().st_size for file in (WEIGHTS / name).iterdir()) / 1e6 for name in OWN_MODELS},
        similarities=static.costs(load("static"))["STS-B"],
        speed=speedups(),
        static_gain=static_gain(),
        ta_sbert=claim_cells(read_scores(load("ta_sbert")), "minilm-mlm"),
        verdict=count_verdicts(),
    )
    return {match[2]: match[3].strip() for match in MARKED.finditer(text)}


def fill_blocks(text: str) -> str:
    """Return a page with its marked blocks filled in."""
    return MARKED.sub(lambda match: f"{match[1]}{block_texts()[match[2]]}\n{match[4]}", text)


def pages() -> list[Path]:
    """Return the README and all handwritten pages."""
    docs = CHECKOUT / "docs"
    return [CHECKOUT / "README.md", *sorted(p for p in docs.rglob("*.md") if not p.is_relative_to(docs / "results"))]


def figure() -> str:
    """Draw the default's gain with few labels as SVG, with three bars for each data set."""
    return fill("gain.svg", **gain())


def main() -> None:
    FIGURE.write_text(figure(), encoding="utf-8")
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (new := fill_blocks(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(CHECKOUT))


if __name__ == "__main__":
    main()
