"""The transform under the unmodified Trainer: other views in each epoch, in this process and in workers."""

from __future__ import annotations

import copy
import logging
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from training_support import Ids, Recording, stock_trainer
from transformers import TrainerControl, TrainerState, TrainingArguments

from simlte_st.compat import view_budget
from simlte_st.data.corpus import Coverage, to_row
from simlte_st.data.document import Document, SegmentedDocument
from simlte_st.data.sentences import PunktSegmenter, segment_document, tokenizer_counter
from simlte_st.data.transform import DocSplitTransform, EpochClock
from simlte_st.data.views import DocSplit, InverseCloze, View, ViewPair, draw_views

BATCH = 8


def expected_pairs(
    documents: list[str], model: SentenceTransformer, epoch: int, seed: int = 0, view: View | None = None
) -> list[ViewPair]:
    count = tokenizer_counter(model.tokenizer)
    segmented = [
        segment_document(Document(str(number), text), PunktSegmenter(), count) for number, text in enumerate(documents)
    ]
    pairs = [
        draw_views(document, view or DocSplit(), seed=seed, epoch=epoch, budget=view_budget(model))
        for document in segmented
    ]
    return [pair for pair in pairs if pair]


def as_ids(pairs: list[ViewPair], model: SentenceTransformer) -> set[tuple[Ids, Ids]]:
    def ids(text: str) -> Ids:
        return tuple(model.tokenizer(text, truncation=True, max_length=model.max_seq_length)["input_ids"])

    return {(ids(pair.anchor), ids(pair.positive)) for pair in pairs}


@pytest.fixture
def train(model: SentenceTransformer, tmp_path: Path) -> Callable[..., Recording]:
    def run(dataset: Dataset, epochs: int = 2, callbacks: Any = (), **settings: Any) -> Recording:
        loss = Recording(model)
        options = {"per_device_train_batch_size": BATCH, "learning_rate": 1e-4, "save_strategy": "no", "seed": 3}
        options |= {"num_train_epochs": epochs, **settings}
        stock_trainer(model, loss, dataset, tmp_path / "out", callbacks, **options).train()
        return loss

    return run


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "callbacks=[views.callback]" in record.getMessage()]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"dataloader_num_workers": 1, "dataloader_persistent_workers": True},
        {"gradient_accumulation_steps": 4},
    ],
    ids=["this process", "a persistent worker", "accumulation"],
)
def test_each_epoch_trains_on_views_of_its_own(
    model: SentenceTransformer,
    documents: list[str],
    train: Callable[..., Recording],
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
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


def test_without_the_callback_it_warns_and_repeats_itself(
    model: SentenceTransformer, documents: list[str], train: Callable[..., Recording], caplog: pytest.LogCaptureFixture
) -> None:
    views = DocSplitTransform(model=model, segmenter=PunktSegmenter())
    dataset = views.attach(Dataset.from_dict({"text": documents}))
    with caplog.at_level(logging.WARNING):
        seen = train(dataset, epochs=3).batches
    assert len(warnings(caplog)) == 1
    steps = len(documents) // BATCH
    epochs = [{pair for batch in seen[start : start + steps] for pair in batch} for start in (0, steps, 2 * steps)]
    assert epochs[0] == epochs[1] == epochs[2]


def test_rows_are_the_views_of_the_clocks_epoch(model: SentenceTransformer, documents: list[str]) -> None:
    views = DocSplitTransform(InverseCloze(), model=model, seed=2, segmenter=PunktSegmenter())
    dataset = views.attach(Dataset.from_dict({"text": documents}))
    assert len(dataset) == len(documents)
    for epoch in (0, 1, 5):
        views.callback.epoch = epoch
        expected = expected_pairs(documents, model, epoch, seed=2, view=InverseCloze())
        rows = [{"anchor": pair.anchor, "positive": pair.positive} for pair in expected]
        assert [dataset[index] for index in range(len(dataset))] == rows
        assert dataset[3:6] == {name: [row[name] for row in rows[3:6]] for name in ("anchor", "positive")}
        assert list(dataset[0]) == ["anchor", "positive"]
        assert list(dataset) == rows


def test_with_a_model_long_documents_are_windowed(model: SentenceTransformer, documents: list[str]) -> None:
    text = " ".join(documents)
    views = DocSplitTransform(model=model, segmenter=PunktSegmenter())
    dataset = views.attach(Dataset.from_dict({"text": [text, text + " Ba."]}))
    budget = view_budget(model)
    assert budget is not None
    for epoch in range(10):
        views.callback.epoch = epoch
        row = dataset[0]
        assert budget < len(model.tokenizer.tokenize(row["anchor"] + " " + row["positive"])) <= 2 * budget


# Rows drawn by hand.


def views(budget: int | None = None, **settings: Any) -> DocSplitTransform:
    made = DocSplitTransform(**settings)
    made.budget = budget
    return made


# What a pass sees.


def corpus_of(tokens: list[list[int]]) -> Dataset:
    return Dataset.from_list(
        [
            to_row(SegmentedDocument(f"d{number}", tuple("s " * size for size in sizes), (0,), tuple(sizes)))
            for number, sizes in enumerate(tokens)
        ]
    )


def test_what_a_pass_cannot_see_is_counted() -> None:
    # 2 views of 10 tokens: two sentences of the first document, one in each view; all of the second one
    coverage = views(budget=10).coverage(corpus_of([[10] * 8, [5, 5]]))
    assert coverage == Coverage(documents=2, cut=1, tokens=90, seen=30, total=2)
    assert coverage.share == pytest.approx(1 / 3)
    assert re.search("33.3% .*1 of 2 documents", coverage.summary())


def test_at_most_so_many_documents_spread_evenly() -> None:
    corpus = corpus_of([[number, number] for number in range(1, 40)])
    coverage = views().coverage(corpus, most=20)
    assert coverage == Coverage(20, 0, 2 * 400, 2 * 400, 39)  # every other
    assert re.search(r"0 of 20 documents \(.* 39\)", coverage.summary())
    assert views().coverage(corpus_of([[2, 2]] * 600)).documents == 600  # several batches


# Copies, and processes that share no memory.


def test_a_copied_data_set_has_the_clock_that_the_trainer_tells(documents: list[str]) -> None:
    drawing = DocSplitTransform(segmenter=PunktSegmenter())
    dataset = copy.deepcopy(drawing.attach(documents))
    first = dataset[0]
    drawing.callback.epoch = 1
    assert dataset[0] != first


def test_it_can_be_sent_to_a_worker_that_shares_no_memory(model: SentenceTransformer, documents: list[str]) -> None:
    drawing = DocSplitTransform(model=model, segmenter=lambda text: re.split(r"(?<=\.)", text))
    dataset = drawing.attach(documents)
    assert list(pickle.loads(pickle.dumps(dataset))) == list(dataset)


def begin_epoch(clock: EpochClock, epoch: float | None) -> int:
    state = TrainerState()
    state.epoch = epoch
    clock.on_epoch_begin(TrainingArguments(), state, TrainerControl())
    return clock.epoch


@pytest.mark.parametrize(
    ("told", "epoch"),
    [(None, 0), (0.0, 0), (2.4, 2), (2.9999, 2), (2.9999999999, 3)],
)
def test_the_epoch_is_the_whole_part_of_the_trainers(told: float | None, epoch: int) -> None:
    assert begin_epoch(EpochClock(), told) == epoch
