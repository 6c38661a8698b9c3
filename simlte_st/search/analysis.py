"""How the documents of an index become terms: by the analyzer, in the language of each, as its settings say."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from simlte_st.data.analyzer import ANALYZER, terms_of
from simlte_st.data.languages import LanguageFinder, check_language
from simlte_st.files import SETTINGS_FILE, write_json
from simlte_st.search.store import Store
from simlte_st.search.words import WORDS_FILE

_TOGETHER = 1_000  # documents whose terms are made again in a commit
_SAMPLE = 200  # of those that tell the languages of an index

logger = logging.getLogger(__name__)


def check_analyzer(folder: Path, settings: dict[str, Any]) -> None:
    """Warn where an index was made by another analyzer than questions are read by."""
    if settings["analyzer"] != ANALYZER:
        logger.warning(
            "The words of %s were made terms by another version, so that a search by words may miss some, above all of "
            "other languages than English. Adding to it, as with simlte index, makes them anew; nothing is encoded.",
            folder,
        )


class Analysis:
    """Makes terms of documents that are added to an index, and keeps in its settings what was done."""

    def __init__(self, folder: Path, settings: dict[str, Any], first: Sequence[str], named: str | None) -> None:
        self._folder, self._settings = folder, settings
        self._named = settings["language"] if named is None else check_language(named)
        self._find = LanguageFinder(first, self._named, settings["languages"])

    @property
    def languages(self) -> list[str]:
        """The languages that the index has so far."""
        return list(self._settings["languages"])

    def terms(self, texts: Sequence[str]) -> list[str]:
        """Return the terms of texts, with spaces between them; a language that is new is in the settings before."""
        languages = list(map(self._find, texts))
        self._keep([*self._settings["languages"], *languages])
        return [_joined(text, language) for text, language in zip(texts, languages, strict=True)]

    def _keep(self, languages: Sequence[str]) -> None:
        kept = {"analyzer": ANALYZER, "language": self._named, "languages": list(dict.fromkeys(languages))}
        if any(self._settings[name] != value for name, value in kept.items()):
            self._settings |= kept
            write_json(self._folder / SETTINGS_FILE, self._settings)

    def renew(self, store: Store) -> int:
        """Make the terms of an index again where another analyzer made them, or for another language; count them."""
        done = self._settings["analyzer"] == ANALYZER and self._settings["language"] == self._named
        names = [] if done else sorted(store.rows("part = 0", ["id"])["id"].to_pylist())
        sample = store.rows_of("id", names[:: max(1, len(names) // _SAMPLE)], ["text"], "part = 0")["text"].to_pylist()
        find, languages = LanguageFinder(sample, self._named), []
        for start in range(0, len(names), _TOGETHER):
            rows = store.rows_of("id", names[start : start + _TOGETHER], ["id", "part", "text"], "part = 0")
            texts = rows["text"].to_pylist()
            own = list(map(find, texts))
            languages += own
            terms = pa.array([_joined(text, language) for text, language in zip(texts, own, strict=True)])
            store.replace_terms(rows.drop_columns("text").append_column("terms", terms))
        if not done:
            (self._folder / WORDS_FILE).unlink(missing_ok=True)  # counted again
            self._keep(languages)
        return len(names)


def _joined(text: str, language: str) -> str:
    return " ".join(each.term for each in terms_of(text, language))
