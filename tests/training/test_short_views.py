from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from transformers import TrainerCallback

import simlte_st
from simlte_st.compat import encoder_of, is_fused
from simlte_st.models.conversion import convert_base
from simlte_st.training import fit
from simlte_st.training.short_views import MOST_TOKENS, faster_attention


@pytest.mark.parametrize(
    ("dtype", "length", "fused"),
    [
        (torch.bfloat16, 64, False),
        (torch.bfloat16, MOST_TOKENS, False),
        (torch.bfloat16, MOST_TOKENS + 1, True),
        (torch.bfloat16, None, True),
        (torch.float32, 64, True),
    ],
)
def test_only_short_views_in_bfloat16_are_attended_to_in_parts(
    model: SentenceTransformer, dtype: torch.dtype, length: int | None, fused: bool
) -> None:
    encoder = encoder_of(model)
    model.max_seq_length = length
    assert is_fused(encoder)
    with faster_attention(model, dtype):
        assert is_fused(encoder) is fused
    assert is_fused(encoder)


def test_on_a_gpu_it_is_fused(model: SentenceTransformer) -> None:
    with faster_attention(model.to("meta"), torch.bfloat16):
        assert is_fused(encoder_of(model))


@pytest.mark.parametrize("backbone", ["longformer", "chunk-mean"])
def test_backbones_of_the_package_stay_as_they_are(encoder_path: Path, tmp_path: Path, backbone: str) -> None:
    convert_base(encoder_path, tmp_path / "model", backbone=backbone, max_length=300)
    model = simlte_st.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    model.max_seq_length = 64
    before = encoder_of(model).config._attn_implementation
    with faster_attention(model, torch.bfloat16):
        assert encoder_of(model).config._attn_implementation == before


def test_a_model_without_attention(model: SentenceTransformer) -> None:
    static = SentenceTransformer(modules=[StaticEmbedding(model.tokenizer, embedding_dim=8)], device="cpu")
    with faster_attention(static, torch.bfloat16):
        assert static.encode("ba da").shape == (8,)


def test_gradients_are_those_of_fused_attention(model: SentenceTransformer) -> None:
    features = model.preprocess(["ba da " * 20, "ga", "ma na ba " * 9])
    model.eval()

    def gradients() -> torch.Tensor:
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(dict(features))["sentence_embedding"].float().square().sum().backward()
        return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])

    expected = gradients()
    with faster_attention(model, torch.bfloat16):
        found = gradients()
    assert not torch.equal(found, expected)
    assert torch.linalg.vector_norm(found - expected) < 0.02 * torch.linalg.vector_norm(expected)


def test_a_run_takes_it_and_its_model_does_not_keep_it(
    documents: list[str], encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    class Look(TrainerCallback):
        def on_step_begin(self, *arguments: object, model: SentenceTransformer, **options: object) -> None:
            seen.append(is_fused(encoder_of(model)))

    make = fit.trainer_callbacks
    monkeypatch.setattr(fit, "trainer_callbacks", lambda *arguments: [*make(*arguments), Look()])
    for bf16, name in ((True, "bfloat16"), (False, "float32")):
        simlte_st.train(documents, tmp_path / name, base=str(encoder_path), max_steps=2, bf16=bf16, progress=False)
        assert is_fused(encoder_of(SentenceTransformer(str(tmp_path / name), device="cpu")))
    assert seen == [False, False, True, True]
