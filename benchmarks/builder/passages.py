"""Collect the passages that teach ``simlte-static``: titles, sentences and paragraphs of 25 free sources.

    python -m benchmarks.builder.passages --clones CLONES --shared SHARED_DATA --debian DEBIAN --nltk NLTK \
        --output passages.parquet

``passages.json`` beside this module lists licences and files. ``--clones`` contains git clones, in folders named
``owner/name`` or ``owner+name``, with the commits in that list. ``--debian`` contains Debian's documentation packages,
unpacked by ``dpkg-deb -x``; ``--nltk`` contains unzipped corpora of ``nltk_data``. The docstrings depend on the versions
of the installed packages, which are recorded. Everything else depends only on the seed.

A quarter of the passages of a source are titles and sentences, half have 40 to 110 words, and a quarter up to 300. Every
prefix of the output has the same mix of sources. Passages are dropped if a benchmark measures on them (a text or line of
less than 40 words, or 13 consecutive words) and if they nearly repeat another passage. Beside the output, a JSON file
counts passages by source.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import random
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.builder.passage_readers import READERS, SEED, Pairs, decode, make_generator
from benchmarks.records import make_parser
from benchmarks.search import DOCUMENTS, draw_rows
from simlte_st.data import bbc_news
from simlte_st.errors import DataError
from simlte_st.files import atomic_path, read_json, write_json

RECIPE = Path(__file__).with_suffix(".json")
LARGEST = 4 << 20
"""Maximum size of a file in a clone, in bytes. Partial clones may lack larger ones."""

SURPLUS, ROUNDS = 1.25, 12
"""Passages drawn per passage needed, and maximum number of passages of a document."""

SHORT, PIECE = 40, 13
"""Words from which passages may overlap with measured texts, and the overlap that drops them."""

WEIGHTS = np.cumprod(np.full(PIECE, 0x9E3779B97F4A7C15, dtype=np.uint64))
_WORD = re.compile(r"\w+")
_SENTENCE_BREAK = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")


class Files(NamedTuple):
    """Files of a folder, or of a clone by their git blobs."""

    folder: Path
    paths: Sequence[str]
    blobs: Sequence[str]
    reader: str


def find_files(files: Mapping[str, Any], folders: Mapping[str, Path | None]) -> list[Files]:
    """Return the files of an entry of the recipe, by folder.

    Raises:
        DataError: A folder, clone or package is missing, or contains no such file.
    """
    kind = next(kind for kind in ("clones", "shared", "debian", "nltk", "packages") if kind in files)
    root, listings = folders.get(kind), []
    if root is None and kind != "packages":
        raise DataError(f"--{kind} is missing")
    for name in files[kind]:
        if kind == "clones":
            folder, pairs = list_clone(root, name, files[kind][name])
        else:
            folder, paths = root or find_package(name), sorted(((root or find_package(name)) / name).rglob("*"))
            pairs = [(path.relative_to(folder).as_posix(), "") for path in paths if path.is_file()]
        pairs = [pair for pair in pairs if re.search(files["paths"], pair[0])]
        if not pairs:
            raise DataError(f"{folder / name} has no file {files['paths']}")
        if "sample" in files:
            make_generator().shuffle(pairs)
        paths, blobs = zip(*pairs[: files.get("sample")], strict=True)
        listings.append(Files(folder, paths, blobs if kind == "clones" else (), files.get("reader", "")))
    return listings


def find_package(name: str) -> Path:
    """Return the folder that contains an installed package."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(f"the package {name} is not installed")
    return Path(spec.submodule_search_locations[0]).parent


def list_clone(root: Path, name: str, commit: str) -> tuple[Path, list[tuple[str, str]]]:
    """Return the git directory of a clone, and paths and blobs of the files of a commit."""
    names = (name.replace("/", "+"), name)
    places = [root / name / inner for name in names for inner in ("", ".git", "repo", "repo/.git")]
    folder = next((place for place in places if (place / "HEAD").is_file()), None)
    if folder is None:
        raise DataError(f"git clone https://github.com/{name} {root / names[0]}")
    listing = run_git(folder, "ls-tree", "-r", "-l", "-z", commit)
    output = listing.communicate()[0].decode("utf-8", "replace")
    if listing.returncode:
        raise DataError(f"git -C {folder} fetch origin {commit}")
    entries = (line.partition("\t") for line in output.split("\0")[:-1])
    parts = ((*head.split(), path) for head, _, path in entries)
    return folder, [
        (path, blob) for _, kind, blob, size, path in parts if kind == "blob" and size != "BAD" and int(size) <= LARGEST
    ]


def run_git(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(["git", f"--git-dir={folder}", *arguments], stdin=pipe, stdout=pipe, stderr=pipe)


def read_files(files: Files) -> Iterator[tuple[str, bytes]]:
    """Yield paths and contents."""
    if not files.blobs:
        yield from ((path, (files.folder / path).read_bytes()) for path in files.paths)
        return
    with run_git(files.folder, "cat-file", "--batch") as process:
        for path, blob in zip(files.paths, files.blobs, strict=True):
            process.stdin.write(f"{blob}\n".encode())
            process.stdin.flush()
            size = int(process.stdout.readline().split()[2])
            yield path, process.stdout.read(size + 1)[:-1]


def draw_passages(documents: list[tuple[str, list[str]]], generator: random.Random) -> Iterator[str]:
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
    last = len(words) - length
    start = generator.randrange(last + 1)
    if generator.random() < 0.7 and start:
        places = range(start, min(start + 40, last + 1))
        beginnings = (place for place in places if words[place - 1][-1] in ".!?" and words[place][0].isupper())
        start = next(beginnings, start)
    return " ".join(words[start : start + length])


def is_prose(text: str) -> bool:
    """Return whether a text consists of letters, most of them Latin."""
    letters = sum(character.isalpha() or character == " " for character in text)
    return letters >= 0.75 * len(text) and sum(ord(character) > 0x24F for character in text) < 0.03 * len(text) + 1


@functools.cache
def hash_word(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def hash_words(text: str) -> np.ndarray:
    """Return the hashes of the words of a text, without case and punctuation, as uint64 ``[words]``."""
    return np.array([hash_word(word) for word in _WORD.findall(text.lower())], dtype=np.uint64)


def hash_pieces(words: np.ndarray) -> np.ndarray:
    """Return the hashes of all runs of :data:`PIECE` words, as uint64 ``[words - PIECE + 1]``."""
    count = max(len(words) - PIECE + 1, 0)
    return sum((words[j : j + count] * WEIGHTS[j] for j in range(PIECE)), np.zeros(count, dtype=np.uint64))


class Measured:
    """Texts that benchmarks measure on."""

    def __init__(self, texts: Iterable[str]) -> None:
        pieces, self.short = [np.full(1, np.iinfo(np.uint64).max, dtype=np.uint64)], set()
        for text in texts:
            words = hash_words(text)
            pieces.append(np.unique(hash_pieces(words)))
            if len(words) < SHORT:
                self.short.add(words.tobytes())
            else:
                lines = (line for line in text.split("\n") if 2 < len(line.split()) < SHORT)
                self.short.update(hash_words(line).tobytes() for line in lines)
        self.pieces = np.unique(np.concatenate(pieces))

    def overlaps(self, words: np.ndarray, pieces: np.ndarray) -> bool:
        """Return whether a text is a short measured text or shares a piece with one."""
        return words.tobytes() in self.short or bool(
            (self.pieces[np.searchsorted(self.pieces, pieces)] == pieces).any()
        )


def searched_articles(shared: Path) -> list[tuple[str, str]]:
    """Return the articles of Wikipedia in :mod:`benchmarks.search`."""
    pairs = READERS["wikipedia"]("", (shared / "enwiki2014.parquet").read_bytes())
    return draw_rows((pair for pair in pairs if len(pair[1].split()) >= 50), DOCUMENTS)


def measured_texts(shared: Path, clones: Iterable[Files]) -> Iterator[str]:
    """Yield all texts of the data sets, and the proposals, terms and requests that benchmarks read from clones."""
    for path in sorted(shared.glob("*.parquet")):
        columns = pq.read_table(path).columns if path.stem != "enwiki2014" else []
        for column in columns:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                yield from filter(None, column.to_pylist())
    for pair in searched_articles(shared):
        yield from pair
    yield from (document.text for document in bbc_news())
    for files in clones:
        yield from (decode(data) for _, data in read_files(files))


def choose_passages(
    texts: Iterable[str], measured: Measured, hashes: set[int | bytes], count: int
) -> tuple[list[str], dict[str, int]]:
    """Return the first passages that neither overlap with measured texts nor nearly repeat others, and counts.

    Passages are near-duplicates if at least half of one's sampled pieces occur in others. ``hashes`` holds those of all
    passages so far.
    """
    chosen: list[str] = []
    counts = {"passages": 0, "leaked": 0, "duplicates": 0}
    for text in texts:
        words = hash_words(text)
        pieces = hash_pieces(words)
        sample = (pieces[pieces % np.uint64(8) == 0] if len(pieces) > 8 else pieces[:1]).tolist()
        if measured.overlaps(words, pieces):
            counts["leaked"] += 1
        elif words.tobytes() in hashes or 2 * sum(piece in hashes for piece in sample) > len(sample):
            counts["duplicates"] += 1
        else:
            hashes.update(sample, [words.tobytes()])
            chosen.append(text)
        if len(chosen) == count:
            break
    return chosen, counts | {"passages": len(chosen), "words": sum(len(text.split()) for text in chosen)}


def read_documents(listings: Iterable[Files], minimum: int, titles: set[str]) -> list[tuple[str, list[str]]]:
    """Return titles and words of documents, except too short ones and those with certain titles."""

    def pairs() -> Pairs:
        for files in listings:
            for path, data in read_files(files):
                yield from READERS[files.reader](path, data)

    documents = ((" ".join(title.split()), text.split()) for title, text in pairs())
    return [
        (title, words)
        for title, words in documents
        if (words or title) and len(words) >= minimum and simplify(title) not in titles
    ]


def simplify(title: str) -> str:
    return " ".join(_WORD.findall(title.lower()))


def build_passages(
    recipe: Mapping[str, Any], folders: Mapping[str, Path | None], output: Path, skip: Sequence[str] = ()
) -> dict[str, Any]:
    """Write the passages and, beside them, the counts by source, which are also returned.

    Raises:
        DataError: Files of a source that is not skipped, or measured texts, are missing.
    """
    sources = {name: source for name, source in recipe["sources"].items() if name not in skip}
    listings: dict[str, list[Files]] = {}
    missing = []
    for name, entries in {"measured": recipe["measured"], **{name: sources[name]["files"] for name in sources}}.items():
        try:
            listings[name] = [files for entry in entries for files in find_files(entry, folders)]
        except DataError as error:
            missing.append(f"{name}: {error}")
    if missing:
        raise DataError("\n".join(["Some texts are missing; fetch them, or use --skip SOURCE:", *missing]))
    shared = folders["shared"]
    titles = {title for title, _ in searched_articles(shared)}
    titles = {
        simplify(title)
        for title in titles.union(pq.read_table(shared / "arxiv_abstracts.parquet")["title"].to_pylist())
    }
    measured, hashes = Measured(measured_texts(shared, listings.pop("measured"))), set[int | bytes]()
    mix, counts = np.random.default_rng(SEED), dict[str, Any]()
    rows: list[tuple[float, str, str, str]] = []
    for name, source in sources.items():
        documents = read_documents(listings[name], source.get("minimum", 0), titles)
        drafts = islice(draw_passages(documents, make_generator(name)), round(SURPLUS * source["passages"]))
        texts = list(dict.fromkeys(drafts))
        random.Random(SEED + 1).shuffle(texts)
        texts, counts[name] = choose_passages(texts, measured, hashes, source["passages"])
        counts[name] |= {key: source[key] for key in ("licence", "origin")}
        packages = {package for entry in source["files"] for package in entry.get("packages", ())}
        if packages:
            distributions = metadata.packages_distributions()
            counts[name]["versions"] = {
                package: metadata.version(distributions[package][0]) for package in sorted(packages)
            }
        places = (np.arange(len(texts)) + mix.random(len(texts))) / max(len(texts), 1)
        rows += [(place, name, source["licence"], text) for place, text in zip(places.tolist(), texts, strict=True)]
        print(f"{name}: {counts[name]['passages']:,} passages", flush=True)
    columns = list(zip(*sorted(rows), strict=True))[1:] if rows else [[], [], []]
    report = output.with_suffix(".json")
    with atomic_path(output, report) as path:
        pq.write_table(pa.table(columns, names=["source", "licence", "text"]), path, compression="zstd")
        write_json(path.with_name(report.name), counts)
    return counts


def main(argv: list[str] | None = None) -> None:
    recipe = read_json(RECIPE)
    parser = make_parser(__doc__, "--shared")
    parser.add_argument("--clones", type=Path, required=True, metavar="FOLDER", help="git clones")
    parser.add_argument("--debian", type=Path, metavar="FOLDER", help="unpacked Debian packages")
    parser.add_argument("--nltk", type=Path, metavar="FOLDER", help="unzipped corpora of nltk_data")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="parquet file to write")
    parser.add_argument("--skip", nargs="*", default=[], choices=recipe["sources"], metavar="SOURCE", help="leave out")
    options = parser.parse_args(argv)
    folders = {name: getattr(options, name) for name in ("clones", "shared", "debian", "nltk")}
    counts = build_passages(recipe, folders, options.output, options.skip)
    total, words = (sum(row[key] for row in counts.values()) for key in ("passages", "words"))
    print(f"{total:,} passages, {words:,} words; skipped: {', '.join(options.skip) or 'none'}")


if __name__ == "__main__":
    main()
