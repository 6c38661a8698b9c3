"""The transform in the unmodified Trainer: new views in each epoch, in this process and in workers."""

from __future__ import annotations

import copy
import logging
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from training_support import Ids, Recording, stock_trainer
from transformers import TrainerControl, TrainerState, TrainingArguments

from benchmarks.rivals.train import InverseCloze
from simlte_st.compat import view_budget
from simlte_st.errors import ConfigurationError
from simlte_st.reading.document import Document
from simlte_st.views.transform import DocSplitTransform, EpochClock, docsplit_examples, docsplit_objectives
from simlte_st.views.views import DocSplit, View, ViewPair, draw_views
from simlte_st.words.sentences import PunktSegmenter, segment_document, tokenizer_counter

BATCH, PUNKT = 8, PunktSegmenter()
Train = Callable[..., Recording]


def expected_pairs(
    documents: list[str], model: SentenceTransformer, epoch: int, seed: int = 0, view: View | None = None
) -> list[ViewPair]:
    count = tokenizer_counter(model.tokenizer)
    rows = [Document(str(number), text) for number, text in enumerate(documents)]
    options: dict[str, Any] = {"seed": seed, "epoch": epoch, "budget": view_budget(model)}
    pairs = [draw_views(segment_document(row, PUNKT, count), view or DocSplit(), **options) for row in rows]
    return [pair for pair in pairs if pair]


def ids_of(text: str, model: SentenceTransformer) -> Ids:
    return tuple(model.tokenizer(text, truncation=True, max_length=model.max_seq_length)["input_ids"])


def as_ids(pairs: list[ViewPair], model: SentenceTransformer) -> set[tuple[Ids, Ids]]:
    return {(ids_of(pair.anchor, model), ids_of(pair.positive, model)) for pair in pairs}


@pytest.fixture
def train(model: SentenceTransformer, tmp_path: Path) -> Train:
    def run(dataset: Dataset, epochs: int = 2, callbacks: Any = None, **settings: Any) -> Recording:
        loss = Recording(model)
        options = {"per_device_train_batch_size": BATCH, "learning_rate": 1e-4, "save_strategy": "no", "seed": 3}
        options |= {"num_train_epochs": epochs, **settings}
        stock_trainer(model, loss, dataset, tmp_path / "out", callbacks, **options).train()
        return loss

    return run


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "callbacks=trainer_callbacks(" in record.getMessage()]


@pytest.mark.parametrize(
    "settings",
    [{}, {"dataloader_num_workers": 1, "dataloader_persistent_workers": True}, {"gradient_accumulation_steps": 4}],
    ids=["this process", "a persistent worker", "accumulation"],
)
def test_each_epoch_trains_on_new_views(
    model: SentenceTransformer, documents: list[str], train: Train, caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    views = DocSplitTransform(model=model, seed=11, segmenter=PunktSegmenter())
    dataset = views.attach(Dataset.from_dict({"text": documents}))
    with caplog.at_level(logging.WARNING):
        seen = train(dataset, callbacks=[views.callback], **settings).batches
    steps = len(documents) // BATCH
    assert len(seen) == 2 * steps
    epochs = [{pair for batch in seen[start : start + steps] for pair in batch} for start in (0, steps)]
    for epoch in (0, 1):
        assert epochs[epoch] == as_ids(expected_pairs(documents, model, epoch, seed=11), model)
        assert len(epochs[epoch]) == len(documents)
    assert not epochs[0] & epochs[1]
    assert warnings(caplog) == []
    assert dataset[0]  # the Arrow file outlives the workers


def test_views_repeat_with_a_warning_without_the_callback(
    model: SentenceTransformer, documents: list[str], train: Train, caplog: pytest.LogCaptureFixture
) -> None:
    views = DocSplitTransform(model=model, segmenter=PunktSegmenter())
    dataset = views.attach(Dataset.from_dict({"text": documents}))
    with caplog.at_level(logging.WARNING):
        seen = train(dataset, epochs=3).batches
    assert len(warnings(caplog)) == 1
    steps = len(documents) // BATCH
    epochs = [{pair for batch in seen[start : start + steps] for pair in batch} for start in (0, steps, 2 * steps)]
    assert epochs[0] == epochs[1] == epochs[2]


# Copies, and processes that share no memory.


def test_copied_dataset_shares_the_epoch_clock(documents: list[str]) -> None:
    drawing = DocSplitTransform(segmenter=PunktSegmenter())
    dataset = copy.deepcopy(drawing.attach(documents))
    first = dataset[0]
    drawing.callback.epoch = 1
    assert dataset[0] != first


def test_dataset_can_be_pickled(model: SentenceTransformer, documents: list[str]) -> None:
    drawing = DocSplitTransform(model=model, segmenter=lambda text: re.split(r"(?<=\.)", text))
    dataset = drawing.attach(documents)
    assert list(pickle.loads(pickle.dumps(dataset))) == list(dataset)


def begin_epoch(clock: EpochClock, epoch: float | None) -> int:
    state = TrainerState()
    state.epoch = epoch
    clock.on_epoch_begin(TrainingArguments(), state, TrainerControl())
    return clock.epoch


@pytest.mark.parametrize(("told", "epoch"), [(None, 0), (0.0, 0), (2.4, 2), (2.9999, 2), (2.9999999999, 3)])
def test_epoch_is_the_floor_of_the_trainer_epoch(told: float | None, epoch: int) -> None:
    assert begin_epoch(EpochClock(), told) == epoch


def texts_by_id(examples: Any) -> dict[str, list[str]]:
    return {example.guid: example.texts for example in examples}


def examples_of(documents: Any, **settings: Any) -> dict[str, list[str]]:
    return texts_by_id(docsplit_examples(documents, segmenter=PUNKT, **settings))


def test_examples_are_views_of_the_documents(model: SentenceTransformer, documents: list[str]) -> None:
    rows = [{"id": f"d{number}", "text": text * 3} for number, text in enumerate(documents[:6])]
    view = DocSplit(p=0.4)
    count = tokenizer_counter(model.tokenizer)
    expected = {}
    for row in rows:
        segmented = segment_document(Document(row["id"], row["text"]), PUNKT, count)
        pair = draw_views(segmented, view, seed=3, epoch=2, budget=view_budget(model))
        assert pair is not None
        assert len(pair.anchor) + len(pair.positive) < len(row["text"]) * 0.9  # windowed
        expected[row["id"]] = [pair.anchor, pair.positive]
    assert examples_of(rows, view=view, seed=3, epoch=2, model=model) == expected


def test_document_prompt_precedes_views_within_the_budget(model: SentenceTransformer, documents: list[str]) -> None:
    texts = [text * 3 for text in documents[:6]]
    plain = examples_of(texts, model=model, seed=3)
    model.prompts = {"query": "cis: ", "document": "", "passage": "ba bei bo: "}
    made = examples_of(texts, model=model, seed=3)
    [(loader, _)] = docsplit_objectives(texts, torch.nn.Identity(), model=model, seed=3, segmenter=PUNKT)
    with pytest.raises(ConfigurationError, match="batch_size=1"):  # without negatives
        docsplit_objectives(texts, torch.nn.Identity(), batch_size=1)
    assert texts_by_id(loader.dataset) == made
    assert all(view.startswith("ba bei bo: ") for own in made.values() for view in own)
    words = [sum(len(view.split()) for own in each.values() for view in own) for each in (plain, made)]
    assert words[1] - 3 * 2 * len(texts) < words[0], "views are drawn for what is left"


def test_too_short_documents_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert len(examples_of(["Ba bei. Bo.", "Word", "One sentence"])) == 2
        assert len(examples_of(["Ba bei. Bo.", "Word", "One sentence"], view=InverseCloze())) == 1
    told = [record.getMessage() for record in caplog.records if "too short" in record.getMessage()]
    assert [message.split()[2] for message in told] == ["1", "2"]


def test_fit_trains_on_views_of_every_epoch(
    model: SentenceTransformer, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # fit writes its checkpoints to the working directory
    epochs, batch_size = 3, 8
    loss = Recording(model)
    settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "model": model, "segmenter": PUNKT}
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    objectives = docsplit_objectives(documents, loss, **settings)
    model.fit(objectives, epochs=1, warmup_steps=1, show_progress_bar=False)

    origin = {}  # of each pair of views: its epoch and document
    for epoch in range(epochs):
        for name, (anchor, positive) in examples_of(documents, epoch=epoch, model=model).items():
            origin[ids_of(anchor, model), ids_of(positive, model)] = (epoch, name)
    assert len(origin) == epochs * len(documents)
    seen = [[origin[pair] for pair in batch] for batch in loss.batches]  # a KeyError if other texts were used
    assert sorted(item for batch in seen for item in batch) == sorted(origin.values())
    assert len(seen) == epochs * len(documents) // batch_size
    for batch in seen:
        assert len({name for _, name in batch}) == len(batch) == batch_size
        assert len({epoch for epoch, _ in batch}) == 1
    changed = [name for name, weights in model.state_dict().items() if not torch.equal(weights.cpu(), before[name])]
    assert changed
