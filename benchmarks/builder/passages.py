"""Collect the passages that teach ``simlte-static``: titles, sentences and paragraphs from 25 free sources.

    python -m benchmarks.builder.passages --clones CLONES --shared SHARED_DATA --debian DEBIAN --nltk NLTK \
        --output passages.parquet

``passages.json``, beside this module, lists licences, files and formats. ``--clones`` is a folder of git clones named
``owner/name`` or ``owner+name``, which have the commits of that list. ``--debian`` is where ``dpkg-deb -x`` unpacked
Debian's documentation packages; ``--nltk`` contains unzipped corpora of ``nltk_data``. Docstrings depend on the
versions of installed packages, all other passages only on the seed.

A quarter of a source's passages are titles and sentences, half have 40 to 110 words, and a quarter up to 300. Every
prefix of the output has the same mix of sources. Passages are dropped if benchmarks measure on them (a text or line of
up to 39 words, or 13 consecutive words) or if they nearly repeat another. A JSON file beside the output counts passages
by source.
"""

from __future__ import annotations

import io
import random
import re
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.builder.passage_readers import READERS, SEED, make_generator, read_text, read_wikipedia
from benchmarks.records import make_parser
from benchmarks.search import DOCUMENTS, draw_rows
from simlte_st.errors import DataError
from simlte_st.files import atomic_path, read_json, valid_unicode, write_json
from simlte_st.reading.bbc_news import bbc_news

FOLDERS = {"clones": "git clones", "debian": "unpacked Debian packages", "nltk": "unzipped corpora of nltk_data"}
"""Folders of texts, by option."""

LARGEST = 4 << 20
"""Maximum size of a file in a clone, in bytes. Partial clones may lack larger ones."""

SURPLUS, ROUNDS = 1.25, 12
"""Passages drawn for each one needed, and maximum number of passages per document."""

SHORT, PIECE = 40, 13
"""Words below which passages must not equal measured texts, and consecutive words that they must not share."""

WEIGHTS = np.cumprod(np.full(PIECE, 0x9E3779B97F4A7C15, dtype=np.uint64))
_SENTENCE_BREAK = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")

Document = tuple[str, list[str]]
"""Title and words."""

Files = tuple[Path, dict[str, str], str]
"""Folder, blobs by path (empty except in git directories), and name of the reader."""


def find_files(entry: Mapping[str, Any], folders: Mapping[str, Path]) -> Iterator[Files]:
    """Yield the files of an entry of the recipe.

    Raises:
        DataError: A folder or clone is missing, or has no such files.
    """
    kind = next(kind for kind in folders if kind in entry)
    for name in entry[kind]:
        folder = folders[kind]
        if kind == "clones":
            folder, blobs = list_clone(folder, name, entry[kind][name])
        else:
            places = sorted(path for path in (folder / name).rglob("*") if path.is_file())
            blobs = {path.relative_to(folder).as_posix(): "" for path in places}
        paths = [path for path in blobs if re.search(entry["paths"], path)]
        if not paths:
            raise DataError(f"{folder / name} is missing, or has no file {entry['paths']}")
        if "sample" in entry:
            make_generator().shuffle(paths)
        yield folder, {path: blobs[path] for path in paths[: entry.get("sample")]}, entry["reader"]


def list_clone(root: Path, name: str, commit: str) -> tuple[Path, dict[str, str]]:
    """Return the git directory of a clone, and the blobs of a commit's files by path."""
    names = (name, name.replace("/", "+"))
    folders = [root / base / inner for base in names for inner in ("", ".git", "repo", "repo/.git")]
    folder = next((folder for folder in folders if (folder / "HEAD").is_file()), None)
    if folder is None:
        raise DataError(f"git clone https://github.com/{name} {folders[0]}")
    listing = run_git(folder, "ls-tree", "-r", "-l", "-z", commit).decode("utf-8", "replace")
    entries = (line.split(maxsplit=4) for line in listing.split("\0")[:-1])
    return folder, {path: blob for *_, blob, size, path in entries if size.isdigit() and int(size) <= LARGEST}


def run_git(folder: Path, *arguments: str, text: str = "") -> bytes:
    result = subprocess.run(["git", f"--git-dir={folder}", *arguments], input=text.encode(), capture_output=True)
    if result.returncode:
        raise DataError(f"{folder}: git {' '.join(arguments)}: {result.stderr.decode().strip()}. Fetch it from origin.")
    return result.stdout


def read_files(folder: Path, blobs: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield paths and contents."""
    if not all(blobs.values()):
        yield from ((path, (folder / path).read_bytes()) for path in blobs)
        return
    contents = io.BytesIO(run_git(folder, "cat-file", "--batch", text="\n".join(blobs.values())))
    for path in blobs:
        size = int(contents.readline().split()[2])
        yield path, contents.read(size + 1)[:-1]


def draw_passages(documents: list[Document], generator: random.Random) -> Iterator[str]:
    """Yield a passage of every document, in random order, several times."""
    for _ in range(ROUNDS):
        generator.shuffle(documents)
        for title, words in documents:
            text = draw_passage(title, words, generator)
            if len(text.split()) >= 3 and len(text) < 3500 and is_prose(text):
                yield text


def draw_passage(title: str, words: list[str], generator: random.Random) -> str:
    """Draw a title, a sentence or a paragraph; empty if there is none of the length drawn."""
    share = generator.random()
    if share >= 0.25 and len(words) >= SHORT:
        return draw_paragraph(words, generator.randint(*((SHORT, 110) if share < 0.75 else (110, 300))), generator)
    if 3 <= len(title.split()) <= 20 and (generator.random() < 0.55 or not words):
        return title
    if len(words) < SHORT:
        return " ".join(words)
    start = generator.randrange(max(len(words) - 120, 1))
    sentences = _SENTENCE_BREAK.split(" ".join(words[start : start + 150]))[1:-1]
    sentences = [sentence for sentence in sentences if 4 <= len(sentence.split()) <= SHORT]
    return generator.choice(sentences) if sentences else ""


def draw_paragraph(words: list[str], length: int, generator: random.Random) -> str:
    """Draw consecutive words, which usually begin with a sentence if one begins within 40 words."""
    length = min(length, len(words))
    end = len(words) - length + 1
    start = generator.randrange(end)
    places = range(start, min(start + 40, end)) if generator.random() < 0.7 and start else ()
    beginnings = (place for place in places if words[place - 1][-1] in ".!?" and words[place][0].isupper())
    start = next(beginnings, start)
    return " ".join(words[start : start + length])


def is_prose(text: str) -> bool:
    """Return whether a text consists of letters, most of them Latin."""
    letters = sum(map(str.isalpha, text)) + text.count(" ")
    return letters >= 0.75 * len(text) and len(re.findall("[^\0-\u024f]", text)) < 0.03 * len(text) + 1


def find_words(text: str) -> list[str]:
    """Return words without case and punctuation."""
    return re.findall(r"\w+", text.lower())


def hash_pieces(words: Sequence[str]) -> np.ndarray:
    """Return the hashes of all runs of :data:`PIECE` words, as uint64 ``[words - PIECE + 1]``."""
    count = max(len(words) - PIECE + 1, 0)
    hashes = pd.util.hash_array(np.array(words if count else [], dtype=object), categorize=False)
    return sum((hashes[j : j + count] * WEIGHTS[j] for j in range(PIECE)), np.zeros(count, dtype=np.uint64))


def searched_articles(shared: Path) -> list[tuple[str, str]]:
    """Return the articles of Wikipedia in :mod:`benchmarks.search`."""
    pairs = read_wikipedia("", (shared / "enwiki2014.parquet").read_bytes())
    return draw_rows((pair for pair in pairs if len(pair[1].split()) >= 50), DOCUMENTS)


def measured_texts(shared: Path, clones: Iterable[Files]) -> Iterator[str]:
    """Yield the texts of all data sets, and those that benchmarks read from clones."""
    for path in sorted(set(shared.glob("*.parquet")) - {shared / "enwiki2014.parquet"}):
        for _, column in pd.read_parquet(path).items():
            yield from (text for text in column if isinstance(text, str))
    yield from (text for pair in searched_articles(shared) for text in pair)
    yield from (document.text for document in bbc_news())
    yield from (data.decode("utf-8", "replace") for *files, _ in clones for _, data in read_files(*files))


class PassageFilter:
    """Drops passages that overlap with texts that benchmarks measure on, or that nearly repeat others."""

    def __init__(self, measured: Iterable[str]) -> None:
        pieces, self.lines = [np.full(1, np.iinfo(np.uint64).max, dtype=np.uint64)], set[str]()
        for text in measured:
            words = find_words(text)
            pieces.append(np.unique(hash_pieces(words)))
            lines = text.split("\n") if len(words) >= SHORT else [text]
            self.lines.update(" ".join(find_words(line)) for line in lines if 0 < len(line.split()) < SHORT)
        self.pieces, self.chosen = np.unique(np.concatenate(pieces)), set[int | str]()

    def choose(self, texts: Iterable[str], counts: Counter[str]) -> Iterator[str]:
        """Yield passages, and count them and what was dropped.

        A passage is a near-duplicate if passages chosen before contain more than half of its sampled pieces.
        """
        for text in texts:
            words = find_words(text)
            line, pieces = " ".join(words), hash_pieces(words)
            sample = (pieces[pieces % np.uint64(8) == 0] if len(pieces) > 8 else pieces[:1]).tolist()
            repeats = sum(piece in self.chosen for piece in sample)
            if line in self.lines or (self.pieces[np.searchsorted(self.pieces, pieces)] == pieces).any():
                counts["leaks"] += 1
            elif line in self.chosen or 2 * repeats > len(sample):
                counts["duplicates"] += 1
            else:
                self.chosen.update(sample, [line])
                counts.update(passages=1, words=len(text.split()))
                yield text


def read_documents(listings: Iterable[Files], readers: Mapping[str, Any], minimum: int) -> Iterator[Document]:
    """Yield titles and words of documents with at least ``minimum`` words."""
    for folder, blobs, reader in listings:
        for path, data in read_files(folder, blobs):
            rows = ((title.split(), valid_unicode(text).split()) for title, text in readers[reader](path, data))
            yield from ((" ".join(title), words) for title, words in rows if len(words) >= minimum and title + words)


def build_passages(
    recipe: Mapping[str, Any], folders: Mapping[str, Path], output: Path, skip: Sequence[str] = ()
) -> dict[str, Any]:
    """Write the passages and, beside them, a JSON file of counts by source, which are also returned.

    Raises:
        DataError: Measured texts or the files of a source that is not skipped are missing.
    """
    sources = {name: source for name, source in recipe["sources"].items() if name not in skip}
    listings, missing = dict[str, list[Files]](), list[str]()
    for name, source in {"measured texts": recipe["measured"], **sources}.items():
        try:
            listings[name] = [files for entry in source["files"] for files in find_files(entry, folders)]
        except DataError as error:
            missing.append(f"{name} ({source['origin']}): {error}")
    if missing:
        raise DataError("\n".join(["Files are missing. Fetch them, or leave sources out by --skip.", *missing]))
    shared = folders["shared"]
    titles = [*dict(searched_articles(shared)), *pd.read_parquet(shared / "arxiv_abstracts.parquet")["title"]]
    measured_titles = {" ".join(find_words(title)) for title in titles}
    passage_filter = PassageFilter(measured_texts(shared, listings["measured texts"]))
    readers = READERS | {name: partial(read_text, **patterns) for name, patterns in recipe["formats"].items()}
    mix, counts, tables = np.random.default_rng(SEED), dict[str, Any](), list[pd.DataFrame]()
    for name, source in sources.items():
        pairs = read_documents(listings[name], readers, source.get("minimum", 0))
        documents = [(title, words) for title, words in pairs if " ".join(find_words(title)) not in measured_titles]
        drafts = draw_passages(documents, make_generator(name))
        texts = list(dict.fromkeys(islice(drafts, round(SURPLUS * source["passages"]))))
        random.Random(SEED + 1).shuffle(texts)
        numbers = Counter(passages=0, words=0, leaks=0, duplicates=0)
        texts = list(islice(passage_filter.choose(texts, numbers), source["passages"]))
        counts[name] = {**numbers, "licence": source["licence"], "origin": source["origin"]}
        places = (np.arange(len(texts)) + mix.random(len(texts))) / max(len(texts), 1)
        tables.append(pd.DataFrame({"source": name, "licence": source["licence"], "text": texts}, index=places))
        print(f"{name}: {dict(numbers)}", flush=True)
    with atomic_path(output, report := output.with_suffix(".json")) as path:
        pd.concat(tables).sort_index().to_parquet(path, index=False, compression="zstd")
        write_json(path.with_name(report.name), counts)
    return counts


def main(argv: list[str] | None = None) -> None:
    recipe = read_json(Path(__file__).with_suffix(".json"))
    parser = make_parser(__doc__, "--shared")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="parquet file to write")
    for name, content in FOLDERS.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", default=name, help=f"{content} (default: {name})")
    parser.add_argument("--skip", nargs="*", default=[], choices=recipe["sources"], metavar="SOURCE", help="leave out")
    options = parser.parse_args(argv)
    folders = {name: getattr(options, name) for name in ("shared", *FOLDERS)}
    folders["packages"] = Path(sysconfig.get_path("purelib"))
    build_passages(recipe, folders, options.output, options.skip)
    print(f"Wrote {options.output}; skipped sources: {', '.join(options.skip) or 'none'}")


if __name__ == "__main__":
    main()
