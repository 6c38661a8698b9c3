"""Read documents for :mod:`benchmarks.builder.passages`: pairs of a title, which may be empty, and a text."""

from __future__ import annotations

import ast
import csv
import html
import io
import json
import lzma
import random
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import pyarrow.parquet as pq

from simlte_st.reading.formats.mail import read_mail
from simlte_st.reading.rows import BadTextError, Reading
from simlte_st.reading.text_files import tidy_lines

Patterns = Iterable[Sequence[str]]
Pairs = Iterator[tuple[str, str]]
SEED = 0
"""Seed of all random choices."""

ARXIV_PAPERS = 900
"""Papers per category of arXiv."""

_SIGNATURES = ("--", "-- ")
_ORIGINAL = re.compile(r"-{3,}[^-].*-{3,}|_{20,}")  # above the original e-mail in replies from Outlook and others
_ORIGINAL_HEADER = re.compile(r"[^\s:>][^:]{0,20}: ")  # in any language
_INTRODUCTION = 3  # maximum number of lines that introduce a quote


def make_generator(name: str = "") -> random.Random:
    """Return a generator that depends only on :data:`SEED` and a name."""
    return random.Random(zlib.crc32(name.encode(), SEED))


def read_text(
    path: str, data: bytes, encoding: str = "utf-8", document: str = "(?s).+", title: str = "(?!)", edits: Patterns = ()
) -> Pairs:
    """Read text or markup by regular expressions.

    Args:
        path: Not used.
        data: Content of the file.
        encoding: Its encoding; damaged bytes are replaced.
        document: Matches a document (default: all of the file).
        title: Matches the title in a document, in its group.
        edits: Patterns and their replacements, applied to the document in this order. Tags are then removed.
    """
    for match in re.finditer(document, data.decode(encoding, "replace")):
        text, heading = match[0], re.search(title, match[0])
        for pattern, replacement in edits:
            text = re.sub(pattern, replacement, text)
        pair = (heading[1] if heading else "", text)
        yield tuple(html.unescape(re.sub("<[^>]+>", " ", part)) for part in pair)


def read_wikipedia(path: str, data: bytes) -> Pairs:
    for row in pq.read_table(io.BytesIO(data)).to_pylist():
        yield row["title"], row["text"].removeprefix(row["title"])


def read_arxiv(path: str, data: bytes) -> Pairs:
    """Draw abstracts of a category, except q-bio and q-fin of 2015 to 2017, which benchmarks classify."""
    rows = list(csv.DictReader(io.StringIO(lzma.decompress(data).decode("utf-8", "replace")), delimiter="\t"))
    make_generator(path).shuffle(rows)
    for row in rows[:ARXIV_PAPERS]:
        if not (re.search("q-bio|q-fin", row["categories"]) and re.match("201[567]", row["created"])):
            yield row["title"] or "", row["abstract"] or ""


def read_news(path: str, data: bytes) -> Pairs:
    for row in csv.DictReader(io.StringIO(data.decode("utf-8", "replace"))):
        yield row["title"], row["text"]


def read_pubmed(path: str, data: bytes) -> Pairs:
    for row in json.loads(data).values():
        yield row["QUESTION"], " ".join([*row["CONTEXTS"], row["LONG_ANSWER"]])


def read_dialogues(path: str, data: bytes) -> Pairs:
    for dialogue in json.loads(data):
        turns = dialogue.get("turns") or dialogue["utterances"]
        yield "", " ".join(turn["text"] if "text" in turn else turn["utterance"] for turn in turns)


def read_wordnet(path: str, data: bytes) -> Pairs:
    """Read senses: words, definitions, and up to two examples."""
    import yaml

    for sense in yaml.load(data, Loader=yaml.CSafeLoader).values():
        examples = [part if isinstance(part, str) else part["text"] for part in sense.get("example", ())[:2]]
        text = f"{', '.join(sense['members'][:4])}: {'; '.join(sense['definition'])}"
        yield "", " ".join(f"{part.strip()}." for part in [text, *examples])


def read_message(path: str, data: bytes) -> Pairs:
    """Read an e-mail without quotes, unless it is damaged; its title is the subject without prefixes."""
    with suppress(BadTextError):
        mail = read_mail(data, Reading())
        subject = str(mail.columns["subject"] or "")
        yield re.sub(r"(?i)^((re|fwd?):\s*)+|\[[^\]]*\]", "", subject), without_quotes(mail.text.removeprefix(subject))


def without_quotes(text: str) -> str:
    """Return the text of an e-mail without quotes, their introductory lines and the signature."""
    message: list[str] = []
    lines, in_quote = text.split("\n"), False
    for index, line in enumerate(lines):
        headers = sum(_ORIGINAL_HEADER.match(header.strip()) is not None for header in lines[index + 1 : index + 5])
        if line in _SIGNATURES or (headers > 1 and _ORIGINAL.fullmatch(line.strip())):
            break
        if not line.lstrip().startswith(">"):
            message.append(line)
        elif not in_quote:
            _remove_introduction(message)
        in_quote = line.lstrip().startswith(">")
    return tidy_lines("\n".join(message)) if len(message) < len(lines) else text


def _remove_introduction(lines: list[str]) -> None:
    """Remove the lines that introduce a quote and end in a colon, such as "On Monday A wrote:"."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if end and lines[end - 1].rstrip().endswith(":"):
        start = end - 1
        while start and lines[start - 1].strip() and end - start <= _INTRODUCTION:
            start -= 1
        del lines[start if end - start <= _INTRODUCTION else end - 1 :]
        lines.append("")


def read_docstrings(path: str, data: bytes) -> Pairs:
    """Read docstrings without examples; the first paragraph is the title."""
    nodes = () if re.search(r"/tests/|test[^/]*$", path) else ast.walk(ast.parse(data))
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            if len(text.split()) >= 12:
                text = re.sub(r"(?m)^\s*(>>>|\.\.\.|\.\. ).*$|^[-=~^]{3,}$", "", text)
                text = re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("`", "")
                yield text.partition("\n\n")[0], text


READERS = {
    "arxiv": read_arxiv, "dialogues": read_dialogues, "docstrings": read_docstrings, "message": read_message,
    "news": read_news, "pubmed": read_pubmed, "wikipedia": read_wikipedia, "wordnet": read_wordnet,
}  # fmt: skip
"""Readers by name; :func:`read_text` reads other formats, by the patterns in ``passages.json``."""
