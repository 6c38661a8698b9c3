"""Compare a chunk mean with its encoder: equal on short texts, the mean by hand on longer ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sentence_transformers
import torch
from chunk_mean_support import FAMILIES, by_hand, make_model
from longformer_support import assert_same_gradients
from safetensors.torch import load_file, save_file
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.losses import AdaptiveLayerLoss, MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, StaticEmbedding
from support import flatten, load_encoder, make_document, make_tokenizer
from tokenizers import processors
from torch import Tensor
from torch.nn import functional
from transformers import BertForMaskedLM

from simlte_st import SentenceTransformer
from simlte_st.compat import readable_length, readable_tokens, view_budget
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.losses.base import IGNORE
from simlte_st.losses.masked_language_model import make_mlm_head
from simlte_st.modules import ChunkMean, to_chunk_mean
from simlte_st.modules.chunk_mean import can_read_in_chunks, cut_chunks
from simlte_st.training.prepare_model import set_dropout

SHORT = ["ba bei bo", "", "cun. dis, et", "ba " * 22]
LONG = [make_document(number, sentences=sentences) for number, sentences in enumerate((3, 12, 30))]
TEXTS = [make_document(number, sentences=sentences) for number, sentences in enumerate((5, 1, 14))] + ["ba bei"]


@pytest.mark.parametrize("prefix", [1, 3])
def test_cut_chunks_matches_slices(prefix: int) -> None:
    lengths = torch.tensor([30, 1, 12, 0, 2, 13, 55, 14, 97])
    starts = lengths.cumsum(0) - lengths
    chunks = cut_chunks(starts, lengths, 12, prefix)
    sizes = [len(chunk.places) for chunk in chunks]
    assert sizes == sorted(sizes, reverse=True)
    for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        room = 12 - prefix - 1
        if length <= 12:
            expected = [list(range(length))] if length else []
        else:
            body = list(range(prefix, length - 1))
            pieces = [body[start : start + room] for start in range(0, len(body), room)]
            expected = [[*range(prefix), *piece, length - 1] for piece in pieces]
        assert sorted((chunk.places - start).tolist() for chunk in chunks if chunk.document == row) == sorted(expected)
    owned = torch.cat([chunk.places[chunk.begin : chunk.end] for chunk in chunks])
    assert sorted(owned.tolist()) == list(range(int(lengths.sum()))), "each token has one state"


def assert_close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    assert (found - expected).abs().max() < tolerance


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
def test_poolings_match_a_mean_by_hand(tmp_path: Path, pooling: str, normalize: bool) -> None:
    model = make_model(tmp_path, pooling=pooling, normalize=normalize)
    converted = to_chunk_mean(model)
    short = model.encode(SHORT, convert_to_tensor=True)
    assert_close(converted.encode(SHORT, convert_to_tensor=True), short, 1e-6 * float(short.abs().max().clamp(min=1)))
    long = torch.stack([by_hand(model, text) for text in LONG]).detach()
    assert_close(converted.encode(LONG, convert_to_tensor=True), long, 1e-5 * float(long.abs().max().clamp(min=1)))
    assert (model.encode(LONG, convert_to_tensor=True) - long).abs().max() > 0.05, "they must be long"


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_adaptive_layers_match_a_shorter_encoder(tmp_path: Path, pooling: str) -> None:
    model = make_model(tmp_path, pooling=pooling)
    converted = to_chunk_mean(model)
    losses = [AdaptiveLayerLoss(each, MultipleNegativesRankingLoss(each), -1) for each in (model, converted)]
    expected, found = (loss([loss.model.preprocess(SHORT), loss.model.preprocess(SHORT)], None) for loss in losses)
    assert_close(found, expected, 1e-5)
    converted[0].auto_model.config.output_hidden_states = True
    features = converted(converted.preprocess(LONG))
    # As AdaptiveLayerLoss replaces forward.
    converted[0].forward = lambda features: {**features, "token_embeddings": features["all_layer_embeddings"][1]}
    layer = functional.normalize(converted[0](features)["sentence_embedding"], dim=1)
    del model[0].auto_model.encoder.layer[1:]
    assert_close(layer, torch.stack([by_hand(model, text) for text in LONG]), 1e-5)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_families_round_trip(tmp_path: Path, family: str) -> None:
    model = make_model(tmp_path / "base", family, length=62)
    state = torch.get_rng_state()
    converted = to_chunk_mean(model, max_length=300)
    assert torch.equal(torch.get_rng_state(), state)
    converted.save_pretrained(str(tmp_path / "made"))
    stock = sentence_transformers.SentenceTransformer(str(tmp_path / "made"), device="cpu")
    for made in (converted, stock, SentenceTransformer(tmp_path / "made", device="cpu")):
        assert [type(module) for module in made] == [ChunkMean, Normalize]
        assert (made.max_seq_length, readable_tokens(made), view_budget(made)) == (300, None, 298)
        assert_close(made.encode(SHORT, convert_to_tensor=True), model.encode(SHORT, convert_to_tensor=True), 1e-6)
        expected = torch.stack([by_hand(model, text, 62, max_length=300) for text in [*LONG, "bo " * 500]])
        assert_close(made.encode([*LONG, "bo " * 500], convert_to_tensor=True), expected, 1e-5)


def test_documented_conversion_of_version_0_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its encoder was inside a transformers architecture, and its Pooling used [CLS]."""
    model = make_model(tmp_path / "base")
    to_chunk_mean(model, 300).save_pretrained(str(tmp_path / "new"))
    modules: list[torch.nn.Module] = [model[0], Pooling(32, "cls"), Normalize()]
    old = sentence_transformers.SentenceTransformer(modules=modules, device="cpu")
    old.max_seq_length, old.prompts = 300, {"document": "ba bo "}
    old.save_pretrained(str(tmp_path / "old"))
    settings = {"chunk_length": 24, "pooling_mode": "mean", "include_prompt": True, "normalize_chunks": True}
    encoder = json.loads((tmp_path / "old" / "config.json").read_text())
    config = {"model_type": "simlte_chunk_mean", **settings, "max_position_embeddings": 300, "encoder_config": encoder}
    (tmp_path / "old" / "config.json").write_text(json.dumps(config))
    weights = {f"encoder.{name}": weight for name, weight in load_file(tmp_path / "old" / "model.safetensors").items()}
    save_file(weights, tmp_path / "old" / "model.safetensors", {"format": "pt"})
    page = Path(__file__).parents[2] / "docs" / "concepts" / "chunk_mean.md"
    monkeypatch.chdir(tmp_path)
    exec(page.read_text().split("```python")[1].split("```")[0], {})
    expected = SentenceTransformer(tmp_path / "new", device="cpu").encode([*SHORT, *LONG], convert_to_tensor=True)
    made = SentenceTransformer(tmp_path / "old", device="cpu")
    assert (made.max_seq_length, made.prompts["document"]) == (300, "ba bo ")
    assert_close(made.encode([*SHORT, *LONG], prompt="", convert_to_tensor=True), expected, 1e-6)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("include_prompt", [True, False])
def test_prompt_precedes_every_chunk(tmp_path: Path, include_prompt: bool, pooling: str) -> None:
    model = make_model(tmp_path / "base", pooling=pooling, include_prompt=include_prompt)
    model.prompts = {"query": "bo bei ", "document": "et "}
    to_chunk_mean(model).save_pretrained(str(tmp_path / "made"))
    for converted in (to_chunk_mean(model), SentenceTransformer(tmp_path / "made", device="cpu")):
        short = converted.encode(SHORT[:3], prompt_name="query", convert_to_tensor=True)
        assert_close(short, model.encode(SHORT[:3], prompt_name="query", convert_to_tensor=True), 1e-6)
        long = converted.encode(LONG, prompt_name="query", convert_to_tensor=True)
        assert_close(long, torch.stack([by_hand(model, text, prompt="bo bei ") for text in LONG]), 1e-5)
        with pytest.raises(ConfigurationError, match=r"22 tokens .* 24-token chunks"):
            converted.encode(LONG, prompt="ba " * 22)
    converted.set_pooling_include_prompt(not include_prompt)
    model.set_pooling_include_prompt(not include_prompt)
    changed = converted.encode(LONG[1], prompt_name="query", convert_to_tensor=True)
    assert_close(changed, by_hand(model, LONG[1], prompt="bo bei "), 1e-5)


def test_settings_are_copied_and_the_model_is_unchanged(tmp_path: Path) -> None:
    model = make_model(tmp_path)
    model.prompts, model.default_prompt_name = {"query": "bo "}, "query"
    model.similarity_fn_name, model.truncate_dim = "dot", 8
    model.to(torch.bfloat16).train()
    converted = to_chunk_mean(model, max_length=100)
    assert converted.prompts["query"] == "bo "
    assert (converted.default_prompt_name, converted.similarity_fn_name, converted.truncate_dim) == ("query", "dot", 8)
    assert all(module.training for module in converted.modules())
    assert {weight.dtype for weight in converted.parameters()} == {torch.bfloat16}
    assert (model.max_seq_length, type(model[0])) == (24, Transformer)
    own = {weight.data_ptr() for weight in model.parameters()}
    assert not own & {weight.data_ptr() for weight in converted.parameters()}


def test_lengths(tmp_path: Path) -> None:
    model = make_model(tmp_path)
    assert to_chunk_mean(model)[0].chunk_length == 24
    model.max_seq_length = 4096  # more than the number of positions
    assert to_chunk_mean(model)[0].chunk_length == 64
    converted = to_chunk_mean(model, chunk_length=16)
    converted.max_seq_length = 40
    assert readable_length(converted) == 40
    expected = by_hand(model, LONG[1], 16, max_length=40)
    assert_close(converted.encode(LONG[1], convert_to_tensor=True), expected, 1e-5)
    longer = to_chunk_mean(converted, 60).encode(LONG[1], convert_to_tensor=True)
    assert_close(longer, by_hand(model, LONG[1], 16, max_length=60), 1e-5)
    assert to_chunk_mean(converted, 60, 24)[0].chunk_length == 24
    for wrong, message in ((65, "64 tokens"), (2, "at least 3")):
        with pytest.raises(ConfigurationError, match=message):
            to_chunk_mean(model, chunk_length=wrong)


def test_other_models_are_refused(tmp_path: Path) -> None:
    model = make_model(tmp_path / "base")
    transformer, pooling = model[0], model[1]

    def refused(*modules: torch.nn.Module) -> None:
        made = sentence_transformers.SentenceTransformer(modules=list(modules), device="cpu")
        assert not can_read_in_chunks(made)
        with pytest.raises(ModelError, match="cannot read in chunks"):
            to_chunk_mean(made)

    refused(StaticEmbedding(make_tokenizer(), embedding_dim=4))
    refused(transformer, pooling, Dense(32, 8))
    refused(transformer, Pooling(32, ("cls", "mean")))
    for single in ("$A", "[CLS] $A", "[CLS] [CLS] $A [SEP]"):
        transformer.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        refused(transformer, pooling)


def extract_features(model: sentence_transformers.SentenceTransformer, left: bool = False) -> dict[str, Any]:
    model.tokenizer.padding_side = "left" if left else "right"
    return dict(model.tokenizer(TEXTS, return_tensors="pt", padding=True))


def collect_gradients(module: torch.nn.Module) -> dict[str, Tensor]:
    return {name: weight.grad.clone() for name, weight in module.named_parameters() if weight.grad is not None}


def test_gradients_match_a_mean_by_hand(tmp_path: Path) -> None:
    def weigh(vectors: Tensor) -> Tensor:
        return (vectors * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))).sum()

    model = make_model(tmp_path)
    converted = to_chunk_mean(model)
    vectors = torch.stack([by_hand(model, text) for text in TEXTS])
    weigh(vectors).backward()
    weigh(converted(extract_features(converted))["sentence_embedding"]).backward()
    ours, theirs = (collect_gradients(each[0]) for each in (converted, model))
    assert_same_gradients(ours, theirs)
    assert any("word_embeddings" in name for name in ours)


def test_token_states_match_their_chunks(tmp_path: Path) -> None:
    model = make_model(tmp_path)
    converted = to_chunk_mean(model)
    features = extract_features(converted)
    ids, mask = features["input_ids"], features["attention_mask"]
    states = converted(dict(features))["token_embeddings"]
    assert states.shape[:2] == ids.shape
    assert states[mask == 0].abs().max() == 0
    for row, length in enumerate(mask.sum(1).tolist()):
        body = ids[row, 1 : length - 1]
        for start in range(0, max(1, len(body)), 22):
            piece = torch.cat([ids[row, :1], body[start : start + 22], ids[row, length - 1 : length]])
            alone = model({"input_ids": piece[None], "attention_mask": torch.ones_like(piece)[None]})
            expected = alone["token_embeddings"][0, 1:-1]
            assert torch.allclose(states[row, 1 + start : 1 + start + len(expected)], expected, atol=1e-5)


def test_padded_and_flattened_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(tmp_path)
    converted = to_chunk_mean(model)
    expected = torch.stack([by_hand(model, text) for text in TEXTS])
    padded = extract_features(converted)
    states = converted(dict(padded))["token_embeddings"][padded["attention_mask"] > 0]
    found = converted(flatten(padded))
    assert torch.allclose(found["token_embeddings"][0], states, atol=1e-5)
    for sizes in ((2048, 64), (1, 0), (50, 3), (200, 200)):
        monkeypatch.setattr("simlte_st.modules.chunk_mean.CPU_PASS", sizes)
        for left in (False, True):
            features = extract_features(converted, left)
            each = converted(dict(features))
            assert torch.allclose(each["sentence_embedding"], expected, atol=1e-5)
            assert torch.allclose(each["token_embeddings"][features["attention_mask"] > 0], states, atol=1e-5)
    assert torch.allclose(found["sentence_embedding"], expected, atol=1e-5)
    padded["attention_mask"][1] = 0  # a row without a token
    found = converted(dict(padded))
    assert found["token_embeddings"][1].abs().max() == found["sentence_embedding"][1].abs().max() == 0
    assert torch.allclose(found["sentence_embedding"][[0, 2, 3]], expected[[0, 2, 3]], atol=1e-5)


@pytest.fixture
def chunked(bert_path: Path) -> sentence_transformers.SentenceTransformer:
    """A chunk mean of the tiny BERT, whose checkpoint has an MLM head, in chunks of 32 tokens."""
    original = load_encoder(bert_path)
    set_dropout(original, 0.0)
    return to_chunk_mean(original, max_length=200, chunk_length=32).train()


def test_mlm_term_is_computed_over_chunks(chunked: sentence_transformers.SentenceTransformer, bert_path: Path) -> None:
    assert make_mlm_head(chunked, "pretrained").pretrained
    texts = [make_document(number, sentences=sentences) for number, sentences in enumerate((12, 2, 7))]
    columns = [chunked.preprocess(texts), chunked.preprocess(texts)]
    loss = MultipleNegativesRankingMLMLoss(chunked, mlm_probability=0.3)
    assert loss.masker is not None
    masked = [loss.masker(features, (0, number)) for number, features in enumerate(columns)]
    terms = loss(columns, None)
    found = terms["mlm"] / loss.mlm_weight

    masked_lm = BertForMaskedLM.from_pretrained(bert_path).eval()
    lengths = columns[0]["attention_mask"].sum(1).tolist()
    total, count = torch.zeros(()), 0
    for ids, labels in masked:
        for row, length in enumerate(lengths):
            body, targets = ids[row, 1 : length - 1], labels[row, 1 : length - 1]
            for start in range(0, max(1, len(body)), 30):
                whole = torch.cat([ids[row, :1], body[start : start + 30], ids[row, length - 1 : length]])
                logits = masked_lm(input_ids=whole[None]).logits[0, 1:-1]
                wanted = targets[start : start + 30]
                total = total + functional.cross_entropy(logits, wanted, ignore_index=IGNORE, reduction="sum")
                count += int((wanted != IGNORE).sum())
    assert count > 50
    assert torch.allclose(found, total / count, atol=1e-5)

    sum(terms.values()).backward()
    expected = collect_gradients(chunked)
    chunked.zero_grad()
    cached = CachedMultipleNegativesRankingMLMLoss(chunked, mlm_probability=0.3, mini_batch_num_tokens=150)
    sum(cached([chunked.preprocess(texts), chunked.preprocess(texts)], None).values()).backward()
    assert_same_gradients(collect_gradients(chunked), expected)
