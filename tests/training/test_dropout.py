from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel

from simlte_st.training.load_model import set_attention_dropout, set_dropout

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
DROPOUT = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}
KINDS: dict[str, dict[str, Any]] = {
    "bert": {**SIZES, **DROPOUT},
    "roberta": {**SIZES, **DROPOUT, "max_position_embeddings": 66},
    "longformer": {**SIZES, **DROPOUT, "max_position_embeddings": 66, "attention_window": 8},
    "mpnet": {**SIZES, **DROPOUT, "max_position_embeddings": 66},
    "electra": {**SIZES, **DROPOUT},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "dropout": 0.2, "attention_dropout": 0.2},
    "modernbert": {**SIZES, "embedding_dropout": 0.2, "mlp_dropout": 0.2, "attention_dropout": 0.2},
}
"""Dropout of 0.2 everywhere, in the hidden states and in attention."""


@pytest.mark.parametrize("only_attention", [False, True], ids=["all", "attention"])
@pytest.mark.parametrize(
    ("kind", "attention"),
    [(kind, "eager") for kind in KINDS] + [(kind, "sdpa") for kind in KINDS if kind not in ("longformer", "mpnet")],
)
def test_set_dropout(kind: str, attention: str, only_attention: bool) -> None:
    settings = {"max_position_embeddings": 64, **KINDS[kind], "vocab_size": 60, "pad_token_id": 0}
    if only_attention:  # which a model may keep as a number, not as a module
        others = {"hidden_dropout_prob", "dropout", "embedding_dropout", "mlp_dropout"}
        settings |= dict.fromkeys(others & settings.keys(), 0.0)
    model = AutoModel.from_config(AutoConfig.for_model(kind, **settings), attn_implementation=attention).train()
    ids = torch.randint(5, 60, (2, 16))

    def run() -> torch.Tensor:
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.detach()

    assert not torch.equal(run(), run())
    set_dropout(model, 0.0)
    assert model.training
    first = run()
    assert torch.equal(first, run())
    torch.testing.assert_close(first, model.eval()(input_ids=ids, attention_mask=torch.ones_like(ids))[0])
    set_dropout(model.train(), 0.3)
    assert not torch.equal(run(), run())


# ModernBERT has one number for attention weights and for a dropout of hidden states, which stays.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("longformer", "modernbert")])
def test_set_attention_dropout_leaves_the_others(kind: str) -> None:
    settings = {"max_position_embeddings": 64, **KINDS[kind], "vocab_size": 60, "pad_token_id": 0}
    others = {"hidden_dropout_prob", "dropout", "embedding_dropout", "mlp_dropout"} & settings.keys()
    ids = torch.randint(5, 60, (2, 16))
    for hidden_dropout, steady in ((0.0, True), (0.2, False)):
        config = AutoConfig.for_model(kind, **{**settings, **dict.fromkeys(others, hidden_dropout)})
        model = AutoModel.from_config(config, attn_implementation="eager").train()
        set_attention_dropout(model, 0.0)
        assert torch.equal(model(input_ids=ids)[0], model(input_ids=ids)[0]) is steady
