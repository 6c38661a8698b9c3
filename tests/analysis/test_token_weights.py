from __future__ import annotations

from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.analysis import token_weights
from simlte_st.errors import ModelError
from simlte_st.modules import BaseForm, TokenAttention

TEXT = "Ca ba won't di"


@pytest.fixture
def weighing(bert_path: Path) -> SentenceTransformer:
    """In training, where dropout would make the weights others each time."""
    return SentenceTransformer(modules=[BaseForm(str(bert_path)), TokenAttention(32)], device="cpu").train()


def test_the_weights_are_those_of_the_embedding(weighing: SentenceTransformer) -> None:
    shown, spans = token_weights(weighing, TEXT)
    assert shown == "Ca ba will not di"
    assert [shown[span.start : span.stop] for span in spans][:2] == ["Ca", "ba"]
    assert weighing.training
    weighing.eval()
    features = weighing(weighing.preprocess([TEXT]))
    special = features["token_attention"][0, [0, -1]].sum().item()
    assert sum(span.weight for span in spans) == pytest.approx(100 * (1 - special), rel=1e-4)
    assert [span.weight for span in spans] == pytest.approx(
        (100 * features["token_attention"][0, 1:-1]).tolist(), rel=1e-4
    )


def test_long_texts_are_cut_as_the_model_cuts_them(weighing: SentenceTransformer) -> None:
    weighing.max_seq_length = 6
    assert len(token_weights(weighing, "ca ba di " * 20)[1]) == 4


def test_other_poolings_weigh_nothing(model: SentenceTransformer) -> None:
    with pytest.raises(ModelError, match="no TokenAttention, but Transformer, Pooling"):
        token_weights(model, TEXT)
