"""Topics: number, agreement with classes, and names, beside BERTopic on the same vectors.

    python -m benchmarks.topics --shared SHARED_DATA --clone contrib-versions

Up to 1,000 documents of six sets are encoded with `simlte-static`: posts, news, abstracts, news articles, the Brown
corpus, and terms of service, whose classes are the kinds of documents in a clone of
github.com/OpenTermsArchive/contrib-versions. `simlte explore` and BERTopic (UMAP, HDBSCAN, and words and pairs of words
without English stop words; otherwise its defaults, with a seed) find topics in the same vectors.

NMI is the normalised mutual information of topics and classes, where documents without a topic form a topic of their
own. The names are the first four terms. NPMI is the normalised pointwise mutual information of the terms of a name over
the documents, averaged over pairs and names; diversity is the share of distinct words among all words of the names.
CPU seconds leave out encoding the documents, but include encoding the halves on which `simlte explore` tries numbers of
topics; each system has run on nine tenths of the documents before, whose number of topics is "without a tenth".
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import normalized_mutual_info_score

from benchmarks.bank.sets import SAMPLES, divide, load_set
from benchmarks.grid.work import Work
from benchmarks.pages import document, explanation, table, write_results
from benchmarks.records import environments, make_parser
from simlte_st.data import Document, read_documents
from simlte_st.exploration.analysis import NONE, WORDS, find_topics, nearest_documents, topic_terms
from simlte_st.exploration.corpus import EncodedCorpus, encode_halves, open_corpus
from simlte_st.models.names import OWN_STATIC
from simlte_st.search.encoder import Encoder

TERMS, HALF = "terms", 500
SETS = ("20news", "ag_news", "arxiv", "bbc", "brown", TERMS)
FORMATS = {
    "topics": "{:.0f}", "without a tenth": "{:.0f}", "NMI": "{:.3f}", "NPMI": "{:.3f}", "diversity": "{:.2f}",
    "documents without a topic": "{:.0f}", "CPU seconds": "{:.1f}",
}  # fmt: skip


def find_ours(corpus: EncodedCorpus, encoder: Encoder) -> tuple[list[int], list[list[str]]]:
    """Return the topic of each document and the names of the topics, by ``simlte explore``."""
    halves = encode_halves(corpus, encoder, 2 * HALF, progress=False)
    topics = find_topics(corpus.vectors, halves, None, nearest_documents(corpus.vectors)[0])
    return topics.by_document.tolist(), topic_terms(corpus.texts, topics.by_document, len(topics.centres))


def find_theirs(corpus: EncodedCorpus, _: Encoder) -> tuple[list[int], list[list[str]]]:
    """Return the topic of each document and the names of the topics, by BERTopic."""
    from bertopic import BERTopic
    from umap import UMAP

    mapper = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0)
    model = BERTopic(umap_model=mapper, vectorizer_model=CountVectorizer(stop_words="english", ngram_range=(1, 2)))
    topics, _ = model.fit_transform(corpus.texts, corpus.vectors)
    return list(topics), [[word for word, _ in model.get_topic(topic)[:WORDS]] for topic in range(max(topics) + 1)]


SYSTEMS = {"simlte explore": find_ours, "BERTopic": find_theirs}


def load_documents(name: str, shared: Path, clone: Path) -> list[Document]:
    """Return up to 1,000 labelled documents of a set."""
    if name == TERMS:
        paths = sorted(clone.glob("*/*.md"))
        documents = [Document(str(path), path.read_text(encoding="utf-8"), label=path.stem) for path in paths]
        data = divide(name, documents, HALF, HALF)
    else:
        data = load_set(name, shared / SAMPLES[name].file if SAMPLES[name].file else None, HALF, HALF)
    return [*data.train, *data.held]


def measure(system: str, documents: list[Document]) -> dict[str, Any]:
    """Return the names that a system gives to its topics, and the columns of its row."""
    find, reader = SYSTEMS[system], read_documents([Document(row.id, row.text) for row in documents])
    corpus, encoder = open_corpus(OWN_STATIC, reader, progress=False)
    rows = np.sort(np.random.default_rng(0).permutation(len(documents))[: len(documents) * 9 // 10])
    part = replace(corpus, documents=[corpus.documents[row] for row in rows], vectors=corpus.vectors[rows])
    part_topics, _ = find(part, encoder)
    start = time.process_time()
    (topics, names), seconds = find(corpus, encoder), time.process_time() - start
    words = [word for name in names for term in name for word in term.lower().split()]
    numbers = {
        "topics": max(topics) + 1, "without a tenth": max(part_topics) + 1, "NPMI": coherence(names, corpus.texts),
        "NMI": float(normalized_mutual_info_score([row.label for row in documents], topics)),
        "diversity": len({*words}) / len(words), "documents without a topic": topics.count(NONE),
        "CPU seconds": seconds, "classes": len({row.label for row in documents}), "documents": len(documents),
    }  # fmt: skip
    return {"numbers": numbers, "names": names}


def coherence(names: list[list[str]], texts: list[str]) -> float:
    """Return the mean NPMI of the pairs of terms of each name."""
    plain_texts, scores = [spaced_words(text) for text in texts], []
    for name in names:
        rows = [np.array([spaced_words(term) in text for text in plain_texts]) for term in name]
        joint = [(float((a & b).mean()), float(a.mean() * b.mean())) for a, b in combinations(rows, 2)]
        scores += [[np.log(both / chance) / -np.log(both) if 0 < both < 1 else -1 for both, chance in joint]]
    return float(np.mean([np.mean(values) for values in scores if values]))


def spaced_words(text: str) -> str:
    """Return the lower-case words of a text, with spaces around each."""
    return " ".join(["", *re.findall(r"\w+", text.lower()), ""])


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output", "--work", work="topics.work")
    parser.add_argument("--clone", type=Path, required=True, help="clone of the terms of service")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    work, cells = Work(options.work), dict[str, dict[str, Any]]()
    for name in SETS:
        documents = load_documents(name, options.shared, options.clone)
        for system in SYSTEMS:
            job = partial(measure, system, documents)
            cells.setdefault(system, {})[name] = work.finish(f"{system}/{name}", {}, job)
        write_results("topics", {"systems": cells}, options.output)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    blocks = []
    for system, cells in record["systems"].items():
        numbers = pd.DataFrame({name: cell["result"]["numbers"] for name, cell in cells.items()}).T
        numbers.index = [f"{name} ({row.documents:.0f}, {row.classes:.0f} classes)" for name, row in numbers.iterrows()]
        numbers.loc["mean"] = numbers.mean()
        shown = {column: numbers[column].map(pattern.format) for column, pattern in FORMATS.items()}
        blocks += [f"## {system}", table(pd.DataFrame(shown))]
    for system, cells in record["systems"].items():
        names = ("; ".join(map(", ".join, cell["result"]["names"])) for cell in cells.values())
        blocks += [f"## Names by {system}", *(f"**{name}:** {line}." for name, line in zip(cells, names, strict=True))]
    machines = environments(cell for cells in record["systems"].values() for cell in cells.values())
    command = "python -m benchmarks.topics --shared SHARED_DATA --clone contrib-versions"
    return document("# Topics", explanation(__doc__), *blocks, machines=machines, command=command)


if __name__ == "__main__":
    main()
