"""Labelled documents in other languages, read from clones of public repositories.

All clones are in one folder. If one is missing, the error shows the command that clones it.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from simlte_st.data import Document
from simlte_st.errors import DataError

LabelledTexts = Iterator[tuple[str, str]]
"""Pairs of text and class."""


@dataclass(frozen=True)
class LanguageSet:
    """Labelled documents of one language.

    Attributes:
        language: ISO 639-1 code.
        title: Name of the set.
        repository: ``OWNER/NAME`` on GitHub.
        commit: The commit behind the results.
        licence: Licence of the texts.
        reader: Function that reads a clone.
        digest: First 12 digits of the SHA-256 of texts and classes.
        classes: Number of largest classes to use; None for all.
    """

    language: str
    title: str
    repository: str
    commit: str
    licence: str
    reader: Callable[[Path], LabelledTexts]
    digest: str
    classes: int | None = None

    @property
    def folder(self) -> str:
        """Name of the clone's folder."""
        return self.repository.split("/")[1]


def load_language(name: str, clones: Path) -> list[Document]:
    """Read the labelled documents of a language from a clone.

    Raises:
        DataError: The clone is missing or at another version.
    """
    corpus = LANGUAGES[name]
    folder = clones / corpus.folder
    if not folder.is_dir():
        raise DataError(
            f"There is no {folder}. Get {corpus.title} (licence: {corpus.licence}): "
            f"git clone https://github.com/{corpus.repository} {folder} && git -C {folder} checkout {corpus.commit}"
        )
    pairs = [(text, label) for text, label in corpus.reader(folder) if text.strip()]
    digest = hashlib.sha256("\0".join(part for pair in pairs for part in pair).encode()).hexdigest()[:12]
    if digest != corpus.digest:
        raise DataError(
            f"{folder} holds {len(pairs):,} documents with digest {digest}, not {corpus.digest}: check out the commit "
            f"{corpus.commit}."
        )
    if corpus.classes is not None:
        counts = Counter(label for _, label in pairs)
        largest = sorted(counts, key=lambda label: (-counts[label], label))[: corpus.classes]
        pairs = [pair for pair in pairs if pair[1] in largest]
    return [Document(f"{name} {number}", text, label=label) for number, (text, label) in enumerate(pairs)]


def _read_german(folder: Path) -> LabelledTexts:
    with (folder / "test.csv").open(encoding="utf-8", newline="") as file:
        for label, text in csv.reader(file, delimiter=";", quotechar="'"):
            yield text, label


def _read_french(folder: Path) -> LabelledTexts:
    for part in ("test", "dev"):
        with (folder / "data" / "fra" / f"{part}.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                yield f"{row['headline']}\n\n{row['text']}", row["category"]


def _read_japanese(folder: Path) -> LabelledTexts:
    """Read one article per file, without the first two lines (address and date), so that it starts with the title."""
    for path in sorted((folder / "experiments" / "text").glob("*/*-*.txt")):
        yield path.read_text(encoding="utf-8").split("\n", 2)[2], path.parent.name


def _read_chinese(folder: Path) -> LabelledTexts:
    for part in ("train_few_all", "dev_few_all", "test_public"):
        with (folder / "datasets" / "csldcp" / f"{part}.json").open(encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                yield row["content"], row["label"]


def _read_arabic(folder: Path) -> LabelledTexts:
    """Read the seven classes of SANAD, without the repository's two additional ones."""
    for label in ("Culture", "Finance", "Medical", "Politics", "Religion", "Sports", "Tech"):
        for path in sorted((folder / "dataset" / label).glob("0*.txt")):
            yield path.read_text(encoding="utf-8"), label


LANGUAGES = {
    "German": LanguageSet(
        "de", "10kGNAD, its test articles of Der Standard", "tblock/10kGNAD",
        "da845fe4a16f02a8de10903ffbc636d1c8d21862", "CC BY-NC-SA 4.0", _read_german, "8840c8d26d67",
    ),
    "French": LanguageSet(
        "fr", "MasakhaNEWS, French (BBC Afrique)", "masakhane-io/masakhane-news",
        "819be052e79e0a600e0ed4a7356594681cb5c4f3", "AFL-3.0", _read_french, "7f46169b9407",
    ),
    "Japanese": LanguageSet(
        "ja", "livedoor news corpus", "jkatsuta/18_4q_doc2vec", "2bd5f73aa53b7ff81e1e08429eb91d080a09f3cd",
        "CC BY-ND 2.1 JP", _read_japanese, "9ea55672aa2a",
    ),
    "Chinese": LanguageSet(
        "zh", "CSLDCP of FewCLUE, abstracts by discipline", "CLUEbenchmark/FewCLUE",
        "62a02c6f31cf32814cfe522f78ef088228840f8d", "none stated; for research", _read_chinese, "6d1d59a6c67e", 12,
    ),
    "Arabic": LanguageSet(
        "ar", "SANAD (Al-Khaleej), without punctuation", "aizen991/arabic-Text-classification",
        "0953f302f1992c417a2446ffaf9928487ac6a802", "CC BY 4.0 (SANAD)", _read_arabic, "6ec33d7e71f6",
    ),
}  # fmt: skip
"""All sets by language."""
