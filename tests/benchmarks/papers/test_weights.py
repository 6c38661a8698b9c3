from __future__ import annotations

from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from benchmarks.papers.weights import token_weights
from simlte_st.errors import DataError, ModelError
from simlte_st.modules import BaseForm, TokenAttention

TEXT = "Ca ba won't di"


@pytest.fixture
def weighing(bert_path: Path) -> SentenceTransformer:
    """In training, where dropout would make the weights others each time."""
    return SentenceTransformer(modules=[BaseForm(str(bert_path)), TokenAttention(32)], device="cpu").train()


def test_the_weights_are_those_of_the_embedding(weighing: SentenceTransformer) -> None:
    read, spans = token_weights(weighing, TEXT)
    assert read.text == "Ca ba will not di"
    assert [read.text[span.start : span.stop] for span in spans] == read.tokens
    assert read.tokens[:2] == ["Ca", "ba"]
    assert (read.cut, read.notes("m")) == (0, [])
    assert weighing.training
    weighing.eval()
    features = weighing(weighing.preprocess([TEXT]))
    special = features["token_attention"][0, [0, -1]].sum().item()
    assert sum(span.weight for span in spans) == pytest.approx(100 * (1 - special), rel=1e-4)
    assert [span.weight for span in spans] == pytest.approx(
        (100 * features["token_attention"][0, 1:-1]).tolist(), rel=1e-4
    )


@pytest.mark.parametrize("prompt", ["bo bun: ", "it's what's won't "])
@pytest.mark.parametrize("include", [False, True])
def test_a_default_prompt_is_read_and_not_shown(weighing: SentenceTransformer, include: bool, prompt: str) -> None:
    alone = token_weights(weighing, TEXT)
    weighing.prompts, weighing.default_prompt_name = {"query": prompt}, "query"
    weighing[1].include_prompt = include
    read, spans = token_weights(weighing, TEXT)
    given = weighing.encode([TEXT], output_value=None)[0]["token_attention"]
    assert read.tokens == alone[0].tokens
    assert [span.weight for span in spans] == pytest.approx((100 * given[-1 - len(spans) : -1]).tolist(), rel=1e-4)
    assert [(span.start, span.stop) for span in spans] == read.spans == alone[0].spans
    assert [span.weight for span in spans] != pytest.approx([span.weight for span in alone[1]], rel=1e-3)


def test_long_texts_are_cut_as_the_model_cuts_them(weighing: SentenceTransformer) -> None:
    weighing.max_seq_length = 6
    read, spans = token_weights(weighing, "ca ba di " * 20)
    assert (len(spans), read.cut) == (4, 56)
    [note] = read.notes("m")
    assert note.startswith("m read 4 of 60 tokens")


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_text_of_nothing_has_no_weights(weighing: SentenceTransformer, text: str) -> None:
    with pytest.raises(DataError, match="no token"):
        token_weights(weighing, text)


def test_other_poolings_weigh_nothing(model: SentenceTransformer) -> None:
    with pytest.raises(ModelError, match=r"TokenAttention, .*Transformer, Pooling"):
        token_weights(model, TEXT)
