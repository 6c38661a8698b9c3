"""Search by words, and TF-IDF, in other languages: what a query finds in another form, and what words are worth.

    pip install jieba fugashi unidic-lite
    python -m benchmarks.languages_words --clones FOLDER --called NAME

Search: Parallel Universal Dependencies, the same 397 excerpts of news and Wikipedia in every language (CC BY-SA 3.0),
whose annotators name the lemma of each word. Queries are the forms of nouns, verbs and adjectives that have several in
the documents; relevant is what has any form of the word, by its Snowball stem or by its lemma. The same of words with
accents, written without them. BM25 finds what shares a term with the query: the share of what is relevant that is
found, and of what is found that is relevant (by the lemma; nothing found is 0). Hybrid is judged by its first ten hits.

Words: macro-F1 of TF-IDF on 300 documents as ``benchmarks.languages`` measures it, beside one whose words a dictionary
segmenter finds (jieba, or MeCab with UniDic), which are not part of the package.

``--called`` names the version of this package that is measured; the page of ``benchmarks.languages``, made of the same
work folder, shows each beside the others.
"""

from __future__ import annotations

import random
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import Stemmer
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.bank.outcomes import outcomes
from benchmarks.bank.sets import divide
from benchmarks.builder.multilingual_base import default_folder
from benchmarks.datasets.languages import default_clones, load_language
from benchmarks.grid.work import Work
from benchmarks.models import rotated, tfidf_rows
from benchmarks.records import TFIDF_INVERSE_L2, make_parser
from benchmarks.static import means
from simlte_st import Index
from simlte_st.data.document import Document
from simlte_st.errors import DataError

TREEBANKS = {
    "German": "de", "French": "fr", "Spanish": "es", "Russian": "ru", "Hindi": "hi", "Arabic": "ar", "English": "en",
}  # fmt: skip
"""Languages of the treebanks, and how their files begin: ``UD_German-PUD/de_pud-ud-test.conllu``."""

INFLECTED = ("NOUN", "VERB", "ADJ")
FIRST = 10
"""Hits that a hybrid search is judged by."""

QUERIES = 100
"""Queries of a kind and a language, drawn from all."""

SEGMENTED = ("Chinese", "Japanese")

Result = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--clones", type=Path, metavar="FOLDER", help="of the repositories (default: the user's cache)")
    parser.add_argument("--base", type=Path, metavar="FOLDER", help="the base (default: where its builder puts it)")
    parser.add_argument("--called", required=True, metavar="NAME", help="what the version of this package is called")
    parser.add_argument("--languages", nargs="+", choices=TREEBANKS, default=list(TREEBANKS), metavar="NAME")
    parser.add_argument("--sets", nargs="*", choices=SEGMENTED, default=SEGMENTED, metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("languages.work"), help="folder of what is finished")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    work, base = Work(options.work, torch.bfloat16), str(options.base or default_folder())
    for name in options.sets:
        job = partial(segmented, name, options.clones)
        work.finish_aloud(f"words/{options.called}/{name}", {}, job)
    for language in options.languages:
        treebank = read_treebank(language, options.clones or default_clones())
        job = partial(recall, treebank, base)
        work.finish_aloud(f"search/{options.called}/{language}", {"queries": QUERIES}, job)


def segmented(name: str, clones: Path | None) -> Result:
    """Judge TF-IDF, and TF-IDF of the words that a segmenter finds."""
    data = divide(name, load_language(name, clones), 300, 300)
    texts = [document.text for document in data.held]
    vectorizer = TfidfVectorizer(analyzer=partial(words_of, name), sublinear_tf=True, dtype=np.float32)
    rows = {"TF-IDF": tfidf_rows(texts), "dictionary": rotated(vectorizer.fit_transform(texts).toarray())}
    return {row: means(outcomes(data, vectors, TFIDF_INVERSE_L2)) for row, vectors in rows.items()}


def words_of(name: str, text: str) -> list[str]:
    """Return the words of a text that a dictionary segmenter finds, without punctuation."""
    if name == "Chinese":
        import jieba

        found = jieba.lcut(text)
    else:
        found = [each.surface for each in _mecab()(text)]
    return [word.lower() for word in found if any(character.isalnum() for character in word)]


@cache
def _mecab() -> Any:
    import fugashi

    return fugashi.Tagger()


@dataclass
class Treebank:
    """Documents whose words are annotated.

    Attributes:
        language: Its name.
        documents: The documents.
        lemmas: By lemma, the forms that it has, and for each the numbers of the documents that have it.
        forms: By form, whatever its lemma, the same.
    """

    language: str
    documents: list[Document] = field(default_factory=list)
    lemmas: dict[str, dict[str, set[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    forms: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))


def read_treebank(language: str, clones: Path) -> Treebank:
    """Read a treebank of Parallel Universal Dependencies: its sentences by document."""
    code = TREEBANKS[language]
    folder = f"UD_{language}-PUD"
    path = clones / folder / f"{code}_pud-ud-test.conllu"
    if not path.exists():
        raise DataError(
            f"There is no {path}. Get it (licence: CC BY-SA 3.0) by: git clone "
            f"https://github.com/UniversalDependencies/{folder} {clones / folder}"
        )
    texts: dict[str, list[str]] = {}
    found = Treebank(language)
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = block.split("\n")
        notes = dict(line[2:].split(" = ", 1) for line in lines if line.startswith("# ") and " = " in line)
        texts.setdefault(notes["sent_id"][:-3], []).append(notes["text"])
        number = len(texts) - 1
        for form, lemma, kind in written_words([line.split("\t") for line in lines if not line.startswith("#")]):
            found.forms[form].add(number)
            if kind in INFLECTED and lemma != "_":
                found.lemmas[f"{lemma} {kind}"][form].add(number)
    found.documents = [Document(name, " ".join(sentences)) for name, sentences in texts.items()]
    return found


def written_words(rows: list[list[str]]) -> Iterator[tuple[str, str, str]]:
    """Return words as they are written, in lower case, with lemma and part of speech of the one that is inflected.

    Several words can be written as one ("du", "وبالكتاب"): it counts for the noun, verb or adjective in it, if it has
    one only.
    """
    words = {row[0]: row for row in rows}
    covered: set[str] = set()
    for row in rows:
        if "-" not in row[0]:
            continue
        first, last = map(int, row[0].split("-"))
        inside = [words[str(number)] for number in range(first, last + 1)]
        covered.update(each[0] for each in inside)
        chosen = [each for each in inside if each[3] in INFLECTED]
        yield row[1].lower(), *((chosen[0][2], chosen[0][3]) if len(chosen) == 1 else ("_", "X"))
    for row in rows:
        if row[0].isdigit() and row[0] not in covered:
            yield row[1].lower(), row[2], row[3]


def recall(treebank: Treebank, base: str) -> Result:
    """Measure what queries in another form find."""
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(f"{folder}/index", base)
        index.add(treebank.documents)
        return {kind: _recall(index, treebank, drawn) for kind, drawn in queries(treebank).items() if drawn}


def queries(treebank: Treebank) -> dict[str, list[tuple[str, str, set[int], set[int]]]]:
    """Draw queries by kind: what is asked, the form that it stands for, and what is relevant, by stem and by lemma."""
    stem = Stemmer.Stemmer(treebank.language.lower()).stemWord
    by_stem: dict[str, set[int]] = defaultdict(set)
    for form, documents in treebank.forms.items():
        by_stem[stem(form)] |= documents
    inflected, bare = [], []
    for forms in treebank.lemmas.values():
        wanted = set().union(*forms.values())
        for form, documents in forms.items():
            if not form.replace("-", "").isalpha() and treebank.language not in ("Hindi", "Arabic"):
                continue
            relevant = by_stem[stem(form)]
            if len(wanted) > len(documents):
                inflected.append((form, form, relevant, wanted))
            if (plain := without_accents(form)) != form:
                bare.append((plain, form, relevant, wanted))
    drawn = {"inflected": inflected, "without accents": bare}
    return {
        kind: random.Random(0).sample(sorted(found, key=lambda each: each[:2]), min(QUERIES, len(found)))
        for kind, found in drawn.items()
    }


def without_accents(word: str) -> str:
    """Return a word of Latin letters without its accents."""
    parts = unicodedata.normalize("NFD", word)
    return "".join(part for part in parts if not "\u0300" <= part <= "\u036f") if parts[0].isascii() else word


def _recall(index: Index, treebank: Treebank, drawn: list[tuple[str, str, set[int], set[int]]]) -> Result:
    number = {document.id: row for row, document in enumerate(treebank.documents)}
    shares: dict[str, list[float]] = defaultdict(list)
    for query, _, by_stem, by_lemma in drawn:
        found = {number[hit.id] for hit in index.search(query, mode="text", top_k=len(number))}
        first = {number[hit.id] for hit in index.search(query, top_k=FIRST)}
        for gold, wanted in (("stem", by_stem), ("lemma", by_lemma)):
            shares[f"text {gold}"].append(len(wanted & found) / len(wanted))
            shares[f"hybrid {gold} @{FIRST}"].append(len(wanted & first) / min(len(wanted), FIRST))
        shares["precision"].append(len(by_lemma & found) / max(1, len(found)))
    return {"queries": len(drawn), **{name: float(np.mean(values)) for name, values in shares.items()}}


if __name__ == "__main__":
    main()
