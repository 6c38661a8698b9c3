"""Markdown: the text after the front matter, and text that only looks like front matter."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_support import texts


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (
            "---\ntitle: 'Größe: a word'\ndate: 2024-01-15\n---\n\n# Rain\n\n---\n\nAll day.\n",
            "Größe: a word\n\n# Rain\n\n---\n\nAll day.\n",
        ),
        ("---\nsubtitle: x\ntitle: Rain\n---\n# Rain\n", "# Rain\n"),
        ("---\na: 1\n...\nText.", "Text."),
        ("---\r\na: 1\r\n---\r\nText.", "Text."),
        ("No front matter.\n---\na: 1\n---\n", None),
        ("---\na: 1\nno end", None),
        (f"---\n{'a: 1' * 20_000}\n---\nText.", None),
    ],
)
def test_front_matter_is_not_text(tmp_path: Path, written: str, text: str | None) -> None:
    (tmp_path / "a.md").write_bytes(written.encode())
    assert texts(tmp_path) == [written if text is None else text]
