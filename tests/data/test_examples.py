"""DocSplit for ``SentenceTransformer.fit``: examples, and several epochs of fresh views in one ``fit``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from training_support import Ids, Recording

from simlte_st.compat import view_budget
from simlte_st.data.document import Document
from simlte_st.data.sentences import PunktSegmenter, segment_document, tokenizer_counter
from simlte_st.data.transform import docsplit_examples, docsplit_objectives
from simlte_st.data.views import DocSplit, InverseCloze, draw_views

PUNKT = PunktSegmenter()


def texts_by_id(examples: Any) -> dict[str, list[str]]:
    return {example.guid: example.texts for example in examples}


def examples_of(documents: Any, **settings: Any) -> dict[str, list[str]]:
    return texts_by_id(docsplit_examples(documents, segmenter=PUNKT, **settings))


def test_the_texts_are_the_views_of_the_document(model: SentenceTransformer, documents: list[str]) -> None:
    rows = [{"id": f"d{number}", "text": text * 3} for number, text in enumerate(documents[:6])]
    view = DocSplit(p=0.4)
    count = tokenizer_counter(model.tokenizer)
    expected = {}
    for row in rows:
        segmented = segment_document(Document(row["id"], row["text"]), PUNKT, count)
        pair = draw_views(segmented, view, seed=3, epoch=2, budget=view_budget(model))
        assert pair is not None
        assert pair.seen < pair.tokens  # windowed
        expected[row["id"]] = [pair.anchor, pair.positive]
    assert examples_of(rows, view=view, seed=3, epoch=2, model=model) == expected


def test_the_prompt_for_documents_stands_before_the_views_and_takes_its_room(
    model: SentenceTransformer, documents: list[str]
) -> None:
    texts = [text * 3 for text in documents[:6]]
    plain = examples_of(texts, model=model, seed=3)
    model.prompts = {"query": "cis: ", "document": "", "passage": "ba bei bo: "}
    made = examples_of(texts, model=model, seed=3)
    [(loader, _)] = docsplit_objectives(texts, torch.nn.Identity(), model=model, seed=3, segmenter=PUNKT)
    assert texts_by_id(loader.dataset) == made
    assert all(view.startswith("ba bei bo: ") for own in made.values() for view in own)
    words = [sum(len(view.split()) for own in each.values() for view in own) for each in (plain, made)]
    assert words[1] - 3 * 2 * len(texts) < words[0], "views are drawn for what is left"


def test_documents_that_are_too_short_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert len(examples_of(["Ba bei. Bo.", "Word", "One sentence"])) == 2
        assert len(examples_of(["Ba bei. Bo.", "Word", "One sentence"], view=InverseCloze())) == 1
    told = [record.getMessage() for record in caplog.records if "too short" in record.getMessage()]
    assert [message.split()[0] for message in told] == ["1", "2"]


def test_one_loader_an_epoch_with_views_of_its_own(model: SentenceTransformer, documents: list[str]) -> None:
    loss = MultipleNegativesRankingLoss(model)
    objectives = docsplit_objectives(documents, loss, epochs=3, batch_size=7, seed=4, model=model, segmenter=PUNKT)
    assert len(objectives) == 3
    for epoch, (loader, its_loss) in enumerate(objectives):
        assert its_loss is loss
        assert loader.batch_size == 7
        assert texts_by_id(loader.dataset) == examples_of(documents, seed=4, epoch=epoch, model=model)
    every = [text for loader, _ in objectives for example in loader.dataset for text in example.texts]  # type: ignore[attr-defined]
    assert len(set(every)) == len(every) == 3 * 2 * len(documents)


def test_fit_trains_on_the_views_of_every_epoch(
    model: SentenceTransformer, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # fit writes its checkpoints to the working directory
    epochs, batch_size = 3, 8
    loss = Recording(model)
    objectives = docsplit_objectives(
        documents, loss, epochs=epochs, batch_size=batch_size, model=model, segmenter=PUNKT
    )
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    model.fit(objectives, epochs=1, warmup_steps=1, show_progress_bar=False)

    def ids(text: str) -> Ids:
        return tuple(model.tokenizer(text, truncation=True, max_length=model.max_seq_length)["input_ids"])

    origin = {}  # of each pair of views: its epoch and document
    for epoch in range(epochs):
        for name, (anchor, positive) in examples_of(documents, epoch=epoch, model=model).items():
            origin[ids(anchor), ids(positive)] = (epoch, name)
    assert len(origin) == epochs * len(documents)
    seen = [[origin[pair] for pair in batch] for batch in loss.batches]  # a KeyError: trained on something else
    assert sorted(item for batch in seen for item in batch) == sorted(origin.values())
    assert len(seen) == epochs * len(documents) // batch_size
    for batch in seen:
        assert len({name for _, name in batch}) == len(batch) == batch_size
        assert len({epoch for epoch, _ in batch}) == 1
    changed = [name for name, weights in model.state_dict().items() if not torch.equal(weights.cpu(), before[name])]
    assert changed
