"""Read the files of :mod:`benchmarks.builder.passages`: pairs of a title, which may be empty, and a text."""

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
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow.parquet as pq

from simlte_st.reading.formats.mail import read_mail
from simlte_st.reading.rows import BadTextError, Reading

Pairs = Iterator[tuple[str, str]]
SEED = 0
"""Seed of all random choices."""

ARXIV_PAPERS = 900
"""Papers per category of arXiv."""


def make_generator(name: str = "") -> random.Random:
    """Return a generator that depends only on :data:`SEED` and a name."""
    return random.Random(zlib.crc32(name.encode(), SEED))


def decode(data: bytes) -> str:
    """Decode UTF-8, replacing what is damaged."""
    return data.decode("utf-8", "replace")


def strip_tags(markup: str) -> str:
    """Return the text of HTML or XML."""
    return html.unescape(re.sub(r"<[^>]+>", " ", markup))


def read_plain(path: str, data: bytes) -> Pairs:
    yield "", data.decode("latin-1")


def read_lines(path: str, data: bytes) -> Pairs:
    yield from ((strip_tags(line), "") for line in data.decode("latin-1").split("\n"))


def read_wikipedia(path: str, data: bytes) -> Pairs:
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    yield from ((row["title"], row["text"].removeprefix(row["title"])) for row in rows)


def read_arxiv(path: str, data: bytes) -> Pairs:
    """Draw abstracts of a category, except q-bio and q-fin of 2015 to 2017, which the benchmarks classify."""
    rows = list(csv.DictReader(io.StringIO(decode(lzma.decompress(data))), delimiter="\t"))
    make_generator(path).shuffle(rows)
    for row in rows[:ARXIV_PAPERS]:
        if not (re.search("q-bio|q-fin", row["categories"] or "") and row["created"][:4] in ("2015", "2016", "2017")):
            yield row["title"] or "", row["abstract"] or ""


def read_news(path: str, data: bytes) -> Pairs:
    yield from ((row["title"], row["text"]) for row in csv.DictReader(io.StringIO(decode(data))))


def read_questions(path: str, data: bytes) -> Pairs:
    pairs = re.findall(r"<Question[^>]*>(.*?)</Question>\s*<Answer>(.*?)</Answer>", decode(data), re.DOTALL)
    yield from ((strip_tags(question), strip_tags(answer)) for question, answer in pairs if answer.strip())


def read_pubmed(path: str, data: bytes) -> Pairs:
    for row in json.loads(data).values():
        yield row["QUESTION"], " ".join([*row["CONTEXTS"], row["LONG_ANSWER"]])


def read_sentences(path: str, data: bytes) -> Pairs:
    yield from ((strip_tags(part), "") for part in re.findall("<sentence .*?</sentence>", decode(data), re.DOTALL))


def read_xml(path: str, data: bytes, title: str, ignored: str) -> Pairs:
    """Read XML, with the names of the title's element and of elements to ignore."""
    text = decode(data)
    heading = re.search(f"<{title}>(.*?)</{title}>", text, re.DOTALL)
    text = re.sub(rf"<({ignored})\b[^>]*(?<!/)>.*?</\1>", " ", text, flags=re.DOTALL)
    yield strip_tags(heading[1]) if heading else "", strip_tags(text)


def read_page(path: str, data: bytes) -> Pairs:
    """Read a page of a manual or a book, without code, tables and navigation."""
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(decode(data))
    for node in page.css("script, style, nav, header, footer, pre, table"):
        node.decompose()
    title = page.css_first("h1") or page.css_first("title")
    yield title.text().strip().rstrip("¶") if title else "", page.body.text(separator=" ") if page.body else ""


def read_markdown(path: str, data: bytes) -> Pairs:
    """Read Markdown with its title: of the front matter, or else the first heading."""
    text = decode(data)
    front = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
    text = text[front.end() :] if front else text
    title = re.search(r'^title:\s*"?([^"\n]+)', front[1] if front else "", re.MULTILINE)
    title = title or re.search(r"^#\s+(.+)$", text, re.MULTILINE)
    text = re.sub("```.*?```", " ", text, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}|<[^>]+>", " ", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    yield title[1] if title else "", re.sub(r"[*_`#>|\\]+", " ", text)


def read_command(path: str, data: bytes) -> Pairs:
    """Read a page about a command, whose title is only its name."""
    yield from (("", text) for _, text in read_markdown(path, data))


def read_transcript(path: str, data: bytes) -> Pairs:
    """Read a podcast without the names of its speakers."""
    turns = re.sub(r"\\?\[[^\]]*\\?\]", " ", decode(data)).split("\n\n")
    text = " ".join(re.sub(r"^\*\*[^*]+\*\*:?\s*", "", turn) for turn in turns)
    yield "", re.sub(r"[*_`#\\]+", "", text)


def read_phone(path: str, data: bytes) -> Pairs:
    """Read the calls of Switchboard, whose utterances are numbered, without marks of disfluency."""
    calls = [list[str]()]
    previous = 1
    for number, text in re.findall(r"^\S+\s+[AB]\.(\d+) utt\d+: (.*?)\s*/?\s*$", decode(data), re.MULTILINE):
        if int(number) == 1 != previous:
            calls.append([])
        calls[-1].append(text)
        previous = int(number)
    yield from (("", re.sub(r"[{}\[\]#+<>]|\b[A-Z] ", "", " ".join(call))) for call in calls)


def read_dialogues(path: str, data: bytes) -> Pairs:
    for dialogue in json.loads(data):
        turns = dialogue.get("turns") or dialogue["utterances"]
        yield "", " ".join(turn["text"] if "text" in turn else turn["utterance"] for turn in turns)


def read_tagged(path: str, data: bytes) -> Pairs:
    """Read words with tags (``word_TAG``)."""
    text = " ".join(word.rpartition("_")[0] or word for word in decode(data).split())
    text = re.sub(r" (n't|'\w+|[.,;:!?%)])", r"\1", text)
    yield "", text.replace("( ", "(").replace("`` ", '"').replace(" ''", '"')


def read_wordnet(path: str, data: bytes) -> Pairs:
    """Read senses: words, definitions, and up to two examples."""
    import yaml

    for sense in yaml.load(data, Loader=yaml.CSafeLoader).values():
        examples = [part if isinstance(part, str) else part.get("text", "") for part in sense.get("example", [])]
        examples = [f"{example.strip()}." for example in examples[:2]]
        yield "", " ".join([f"{', '.join(sense['members'][:4])}: {'; '.join(sense['definition'])}.", *examples])


def read_message(path: str, data: bytes) -> Pairs:
    """Read an e-mail without quotes, forwarded headers and addresses."""
    try:
        mail = read_mail(data, Reading(drop_quotes=True))
    except BadTextError:
        return
    subject = mail.columns["subject"] or ""
    ignored = r"^([|:>]|(Content-\w+|Date|From|To|URL):).*$|^\S+@\S+$|^[-_=*]{4,}.*$"
    text = re.sub(ignored, "", mail.text.removeprefix(subject), flags=re.MULTILINE)
    yield re.sub(r"(?i)^((re|fwd?):\s*)+|\[[^\]]*\]", "", subject), text


def read_docstrings(path: str, data: bytes) -> Pairs:
    """Read docstrings without examples; the first paragraph is the title."""
    if "test" in path.rpartition("/")[2] or "/tests/" in path:
        return
    for node in ast.walk(ast.parse(data)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            if len(text.split()) >= 12:
                text = re.sub(r"^\s*(>>>|\.\.\.|\.\. ).*$|^[-=~^]{3,}$", "", text, flags=re.MULTILINE)
                text = re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("`", "")
                yield text.partition("\n\n")[0], text


READERS: dict[str, Callable[[str, bytes], Pairs]] = {
    "arxiv": read_arxiv,
    "command": read_command,
    "dialogues": read_dialogues,
    "docstrings": read_docstrings,
    "economics": partial(read_xml, title="title", ignored="metadata|m:math|table"),
    "law": partial(read_xml, title="heading", ignored="annotations|annotation|meta|citations"),
    "lines": read_lines,
    "markdown": read_markdown,
    "message": read_message,
    "news": read_news,
    "page": read_page,
    "phone": read_phone,
    "plain": read_plain,
    "play": partial(read_xml, title="heading", ignored="SPEAKER"),
    "pubmed": read_pubmed,
    "questions": read_questions,
    "sentences": read_sentences,
    "tagged": read_tagged,
    "transcript": read_transcript,
    "wikipedia": read_wikipedia,
    "wordnet": read_wordnet,
}
"""Readers by name in ``passages.json``."""
