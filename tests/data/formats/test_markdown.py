"""Markdown: front matter as columns, and what only looks like it."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from reading_support import texts

from simlte_st.data.documents import read_documents


def read_one(tmp_path: Path, text: str) -> tuple[str, dict[str, Any]]:
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    (document,) = read_documents(tmp_path / "a.md", metadata=True)
    return document.text, dict(document.metadata or {})


def test_front_matter_is_columns(tmp_path: Path) -> None:
    matter = "title: 'Größe: a word'\ndate: 2024-01-15\nat: 2024-01-15 10:30:00\ntags: [rain, snow]\nyear: 2024\n"
    matter += "share: 0.5\ndraft: true\n# a comment\nempty:\nauthor:\n  name: Ann\nsteps:\n- 1\n- {a: b}\n"
    text, columns = read_one(tmp_path, f"---\n{matter}---\n\n# Rain\n\n---\n\nAll day.\n")
    assert text == "# Rain\n\n---\n\nAll day.\n"
    assert columns == {
        "title": "Größe: a word", "date": date(2024, 1, 15), "at": datetime(2024, 1, 15, 10, 30), "tags": "rain, snow",
        "year": 2024, "share": 0.5, "draft": True, "steps": "1"
    }  # fmt: skip
    assert read_one(tmp_path, "---\na: 1\n...\nText.") == ("Text.", {"a": 1})
    assert read_one(tmp_path, "---\r\na: 1\r\n---\r\nText.") == ("Text.", {"a": 1})


@pytest.mark.parametrize(
    "text",
    [
        "No front matter.\n---\na: 1\n---\n",
        "---\na: [1\n---\nText.",
        "---\njust words\n---\nText.",
        "---\na: 1\nno end",
        "---\na: !!python/object/apply:os.system ['true']\n---\nText.",
        f"---\na: {'[' * 3000}\n---\nText.",
        f"---\na: {'9' * 5000}\n---\nText.",
        f"---\n{'a: 1' * 20_000}\n---\nText.",
        "---\na: &x [1, 2]\nb: *x\n---\nText.",
    ],
)
def test_what_is_no_mapping_in_yaml_is_text(tmp_path: Path, text: str) -> None:
    assert read_one(tmp_path, text) == (text, {})


def test_a_few_lines_do_not_stand_for_gigabytes(tmp_path: Path) -> None:
    levels = "".join(f"k{level}: &k{level}\n  <<: [{', '.join([f'*k{level - 1}'] * 9)}]\n" for level in range(1, 30))
    text = f"---\nk0: &k0 {{a: b}}\n{levels}---\nText."
    assert read_one(tmp_path, text) == (text, {})


def test_labels_are_read_from_front_matter_of_a_folder(tmp_path: Path) -> None:
    for name, topic in (("a", "rain"), ("b", "snow"), ("c", "")):
        (tmp_path / f"{name}.markdown").write_text(f"---\ntopic: {topic}\n---\nText {name}.")
    assert [document.label for document in read_documents(tmp_path, label_column="topic")] == ["rain", "snow", None]
    assert texts(tmp_path) == ["Text a.", "Text b.", "Text c."]
