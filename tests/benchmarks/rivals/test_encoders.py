from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_document, make_tokenizer
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertModel,
    BigBirdConfig,
    BigBirdModel,
    LongformerConfig,
    LongformerModel,
    PreTrainedModel,
)

from benchmarks.rivals import ENCODERS, HUB_MODELS, HubModel, ModelEncoder, load_encoder, load_hub_model
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.evaluation import ClassificationProbeEvaluator
from simlte_st.longformer import SimlteLongformerModel

TEXTS = ["ba bei bo bo bun", "bei bo", "ka kei ko"]


def test_every_encoder_has_a_title_of_its_own() -> None:
    assert set(HUB_MODELS) < set(ENCODERS)
    assert len(set(ENCODERS.values())) == len(ENCODERS)
    with pytest.raises(ConfigurationError, match=r"'glove'.*chunk-mean"):
        load_encoder("glove")


@pytest.mark.parametrize(("name", "pooling"), [("base-cls", "cls"), ("base-mean", "mean")])
def test_the_base_is_pooled_as_its_name_says(name: str, pooling: str, bert_path: Path) -> None:
    encoder = load_encoder(name, base=bert_path, max_seq_length=5)
    batch = AutoTokenizer.from_pretrained(bert_path)(
        TEXTS, padding=True, truncation=True, max_length=5, return_tensors="pt"
    )
    states = AutoModel.from_pretrained(bert_path).eval()(**batch).last_hidden_state.detach()
    mask = batch["attention_mask"][..., None]
    expected = states[:, 0] if pooling == "cls" else (states * mask).sum(dim=1) / mask.sum(dim=1)
    found = encoder.encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


def test_chunk_mean_reads_a_document_to_its_end(encoder_path: Path) -> None:
    base = load_encoder("base-mean", base=encoder_path)
    encoder = load_encoder("chunk-mean", base=encoder_path, chunk_mean_length=1000, max_seq_length=8)
    np.testing.assert_allclose(encoder.encode(TEXTS), base.encode(TEXTS), atol=1e-5)
    beginning = " ".join(["ba bei bo bun"] * 100)
    other = beginning + " ka kei ko kun" * 50
    assert np.abs(np.subtract(*base.encode([beginning, other]))).max() < 1e-6
    assert np.abs(np.subtract(*encoder.encode([beginning, other]))).max() > 1e-3


def test_each_task_has_its_prompt_and_evaluators_get_that_of_classification(model: SentenceTransformer) -> None:
    encoder = ModelEncoder(model, {"classification": "ba bei: ", "query": "ka: "})
    plain = {prompt: model.encode([f"{prompt}bo bun"], prompt="") for prompt in ("ba bei: ", "ka: ", "")}
    np.testing.assert_allclose(encoder.encode(["bo bun"]), plain["ba bei: "], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(["bo bun"], "query"), plain["ka: "], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(["bo bun"], "document"), plain[""], atol=1e-6)
    texts = (["bo", "bun"], [0, 1])
    evaluator = ClassificationProbeEvaluator(*texts, *texts, shots=1, draws=1, write_csv=False)
    np.testing.assert_allclose(evaluator.embed_inputs(model, ["bo bun"]), plain["ba bei: "], atol=1e-6)


def test_a_base_that_is_nowhere_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not be loaded"):
        load_encoder("base-mean", base=tmp_path / "nothing")


@pytest.mark.parametrize("name", sorted(HUB_MODELS))
def test_offline_every_model_is_refused_at_once_with_what_to_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    began = time.perf_counter()
    with pytest.raises(ModelError, match=rf"OfflineMode.*hf download {HUB_MODELS[name].repository}\."):
        load_encoder(name, trust_remote_code=True)
    assert time.perf_counter() - began < 5


def test_without_a_network_it_is_refused_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(
        huggingface_hub, "HfApi", lambda made=huggingface_hub.HfApi: made(endpoint="http://127.0.0.1:9")
    )
    began = time.perf_counter()
    with pytest.raises(ModelError, match="cannot be reached"):
        load_encoder("facebook-contriever")
    assert time.perf_counter() - began < 10


def test_code_of_a_repository_is_never_run_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*arguments: object, **more: object) -> None:
        raise AssertionError("not even the Hub is asked")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", asked)
    remote = [name for name, model in HUB_MODELS.items() if model.remote_code]
    assert set(remote) == {"gte", "jina", "nomic"}
    for name in remote:
        with pytest.raises(ModelError, match="trust_remote_code=True"):
            load_encoder(name)


@pytest.fixture
def given(bert_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What a model from the Hub is loaded with; the tiny one is loaded in its place."""
    found: dict[str, object] = {}
    real = SentenceTransformer

    def load(repository: str, **options: object) -> SentenceTransformer:
        found.update(options, repository=repository)
        return real(str(bert_path), device="cpu")

    monkeypatch.setattr("benchmarks.rivals.encoders.SentenceTransformer", load)
    return found


@pytest.mark.parametrize(("remote", "trusts"), [(True, True), (False, False)])
def test_trust_goes_no_further_than_the_entry(
    remote: bool, trusts: bool, given: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *a, **k: None)
    load_hub_model(HubModel("X", "someone/x", remote_code=remote), trust_remote_code=True)
    assert given["trust_remote_code"] is trusts


def test_what_is_in_the_cache_is_taken_from_there(given: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda repository, **options: "/somewhere")
    load_hub_model(HubModel("X", "someone/x"))
    assert given["repository"] == "/somewhere"


def test_only_instructor_is_contaminated_and_only_on_20news() -> None:
    assert {name: model.contaminated for name, model in HUB_MODELS.items() if model.contaminated} == {
        "instructor": ("20news",)
    }
    assert HUB_MODELS["instructor"].include_prompt is False


@pytest.fixture(scope="module")
def pooled_path(bert_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with a pooler, as SimCSE's repositories hold one, and no word of how to pool."""
    path = tmp_path_factory.mktemp("hub") / "bert"
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = BertModel.from_pretrained(bert_path)
        model.pooler.dense.weight.data.normal_(0, 0.3)
    model.save_pretrained(path)
    AutoTokenizer.from_pretrained(bert_path).save_pretrained(path)
    return path


@pytest.mark.parametrize("pooling", ["cls", "mean", "pooler"])
def test_models_are_pooled_as_their_entry_says(pooling: str, pooled_path: Path) -> None:
    entry = HubModel("X", str(pooled_path), pooling=pooling)  # type: ignore[arg-type]
    encoder = load_hub_model(entry)
    batch = AutoTokenizer.from_pretrained(pooled_path)(TEXTS, padding=True, return_tensors="pt")
    out = BertModel.from_pretrained(pooled_path).eval()(**batch)
    mask = batch["attention_mask"][..., None]
    expected = {
        "cls": out.last_hidden_state[:, 0],
        "mean": (out.last_hidden_state * mask).sum(dim=1) / mask.sum(dim=1),
        "pooler": out.pooler_output,
    }[pooling]
    np.testing.assert_allclose(encoder.encode(TEXTS), expected.detach().numpy(), atol=1e-5)
    assert [type(module) for module in encoder.model] == [Transformer, Pooling] + [Dense] * (pooling == "pooler")


def test_no_model_reads_more_than_it_can_than_it_should_or_than_is_asked_for(pooled_path: Path) -> None:
    entry = HubModel("X", str(pooled_path), "mean", max_tokens=50)
    assert load_hub_model(entry).model.max_seq_length == 50
    assert load_hub_model(entry, max_seq_length=20).model.max_seq_length == 20
    assert load_hub_model(dataclasses.replace(entry, max_tokens=512)).model.max_seq_length == 64


def test_a_prompt_may_be_left_out_of_the_mean(pooled_path: Path) -> None:
    entry = HubModel("X", str(pooled_path), prompts={"classification": "ba ba ba "}, include_prompt=False)
    left_out = load_hub_model(entry)
    pooled = load_hub_model(dataclasses.replace(entry, include_prompt=True))
    states = left_out.model.encode(["bo bun"], output_value="token_embeddings", prompt="ba ba ba ")[0].numpy()
    assert len(states) == 7
    np.testing.assert_allclose(pooled.encode(["bo bun"])[0], states.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(left_out.encode(["bo bun"])[0], states[4:].mean(axis=0), atol=1e-5)


SHAPE: dict[str, Any] = {
    "vocab_size": len(make_tokenizer()), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 32, "pad_token_id": 0, "initializer_range": 0.3,
}  # fmt: skip


def save(model: PreTrainedModel, path: Path) -> Path:
    model.save_pretrained(path)
    make_tokenizer().save_pretrained(path)
    return path


def test_a_longformer_is_read_with_cls_attending_globally(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = LongformerConfig(**SHAPE, max_position_embeddings=65, attention_window=8)
    stock = LongformerModel(config).eval()
    encoder = load_hub_model(HubModel("X", str(save(stock, tmp_path / "l")), "cls", 4096))
    assert isinstance(encoder.model.transformers_model, SimlteLongformerModel)
    assert encoder.model.max_seq_length == 64
    text = make_document(1, sentences=6)
    batch = encoder.model.tokenizer([text], return_tensors="pt")
    everywhere = torch.zeros_like(batch["input_ids"])
    everywhere[:, 0] = 1
    with torch.no_grad():
        expected = stock(batch["input_ids"], batch["attention_mask"], global_attention_mask=everywhere)
    found = encoder.encode([text])
    np.testing.assert_allclose(found, expected.last_hidden_state[:, 0].numpy(), atol=1e-4)


def test_a_big_bird_does_not_remember_what_it_read_and_leaves_numpys_generator_alone(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = BigBirdConfig(**SHAPE, max_position_embeddings=64, block_size=4, num_random_blocks=1)
    path = str(save(BigBirdModel(config), tmp_path / "b"))
    encoder = load_hub_model(HubModel("X", path, "mean", 4096))
    long, short = make_document(1, sentences=6), "ba bei bo"
    np.random.seed(77)
    state = np.random.get_state()[1].tolist()
    torch_state = torch.random.get_rng_state()
    first = encoder.encode([long])
    assert encoder.model.transformers_model.attention_type == "block_sparse"
    brief = encoder.encode([short])
    assert encoder.model.transformers_model.attention_type == "original_full"
    np.testing.assert_array_equal(encoder.encode([long]), first)
    np.testing.assert_array_equal(encoder.encode([short]), brief)
    assert np.random.get_state()[1].tolist() == state
    assert torch.equal(torch.random.get_rng_state(), torch_state)

    stock = SentenceTransformer(path, device="cpu")
    np.testing.assert_allclose(stock.encode([long]), first, atol=1e-5)
    stock.encode([short])
    assert np.abs(stock.encode([long]) - first).max() > 1e-3, "the stock model is of another mind now"


def test_a_repository_without_what_the_entry_wants_is_said(pooled_path: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="not be loaded"):
        load_hub_model(HubModel("X", str(tmp_path / "empty")))
