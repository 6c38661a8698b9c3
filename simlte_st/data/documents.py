"""Documents from any source, one by one: the function that every other begins with."""

from __future__ import annotations

import logging
from typing import Any, cast

from simlte_st.arguments import Count, checked
from simlte_st.data.document import Document
from simlte_st.data.reader import DocumentReader
from simlte_st.data.rows import Reading
from simlte_st.data.shards import Shards, open_shards
from simlte_st.errors import ConfigurationError

__all__ = ["DocumentReader", "list_documents", "read_documents"]

logger = logging.getLogger(__name__)


@checked
def read_documents(
    source: Any,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    encoding: str = "utf-8",
    limit: Count | None = None,
    mails: bool = False,
    drop_quotes: bool = False,
    html: bool = False,
    metadata: bool = False,
    max_characters: Count = 20_000_000,
    stream: bool = False,
) -> DocumentReader:
    """Read documents, one by one.

    A row or file that cannot be used is skipped and counted in the reader's report; none is lost silently.

    Args:
        source: One of: a folder of files that hold a document each (with its subfolders; the id is the path in the
            folder), or such a file; a file that is a table; ``hub:NAME``, ``hub:NAME:SPLIT`` or
            ``hub:NAME:CONFIG:SPLIT`` for a data set of the Hugging Face Hub; a ``datasets.Dataset`` or
            ``IterableDataset``; a pandas or polars ``DataFrame`` or a ``pyarrow.Table``; an iterable of strings (a
            list, a generator, a column of the former), of mappings, or of :class:`Document`, which keep their id, label
            and split, whatever columns are named; a list of paths and ``hub:`` names, which are read one after the
            other. A reader that this function made is returned as it is.
            :data:`simlte_st.data.formats.FORMATS` lists the files that can be read: text, Markdown, e-mails, HTML, PDF,
            DOCX, ODT, RTF and EPUB hold a document each; JSON (an array of objects or of strings, or JSON lines), CSV,
            TSV and mailboxes, also compressed by gzip or Zstandard, and parquet are tables. Those from HTML to EPUB
            need the extra ``documents``; in a folder, they are skipped and counted without it. Of several sources, the
            ids that are made name the source: ``b.csv:17``, ``folder/a.txt``.
        text_column: Column of the text, or its path in a struct, such as ``article.body`` (default: text; else the
            first of content, body, document, article, abstract, full_text, raw and message; else the only column of
            strings).
        id_column: Column of the ids, or its path (default: id, doc_id, document_id or _id; else the row's number from
            0, or the text's hash for texts without rows). A second document with the same id gets ``#2`` after it.
        label_column: Column of the classes, or its path; read only when named. For Markdown and e-mails, the name of a
            header.
        encoding: Encoding of text, JSON, CSV and HTML files that are not valid UTF-8. A byte order mark, or the
            encoding that an HTML file declares, takes precedence.
        limit: Maximum number of documents to read (default: all).
        mails: Parse raw e-mails: text files, files without a known suffix, and texts that begin with e-mail headers.
        drop_quotes: Leave quoted text and signatures out of e-mails.
        html: Turn texts with HTML tags, such as tickets in a table, into what a browser shows.
        metadata: Keep the values of all other columns, the label's too, as the documents' metadata.
        max_characters: Maximum length of a text in characters; longer texts are skipped and counted.
        stream: Read shards in random order without holding them, to train on a corpus larger than the disk. The source
            must be parquet files (also at an address such as ``s3://bucket/*.parquet``), ``hub:NAME`` or a
            ``datasets.IterableDataset``.

    Returns:
        The reader: iterate it for the documents, as often as wanted; see its ``report`` afterwards. With ``stream=``,
        the :class:`~simlte_st.data.shards.Shards`, for :func:`~simlte_st.train`.

    Raises:
        DataError: The source does not exist or is of no known form, there is no such encoding, or of a list that
            seems to be one of paths some do not exist. Iterating raises it too, for missing columns and for broken
            files, and ``EmptyCorpusError`` if nothing is usable.
        MissingExtraError: The source is a file that needs the extra ``documents``, which is not installed.
        ConfigurationError: An argument is out of its range, a reader is given with further arguments, or ``stream=``
            with one that streams do not know.
    """
    options = {name: value for name, value in locals().items() if name not in ("source", "stream")}
    reading = Reading(**options)
    if isinstance(source, (DocumentReader, Shards)):
        if stream or reading != Reading():
            raise ConfigurationError("A reader is read as it was made: pass the options to its with_options().")
        return cast(DocumentReader, source)
    # Only training takes shards, and recognises them by their type.
    return cast(DocumentReader, open_shards(source, reading)) if stream else DocumentReader(source, reading)


def list_documents(source: Any) -> list[Document]:
    """Return all documents of a source; what could not be used is logged."""
    reader = read_documents(source)
    documents = list(reader)
    if reader.report.skipped:
        logger.warning("%s", reader.report.summary())
    return documents
