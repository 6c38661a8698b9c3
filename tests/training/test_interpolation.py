from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.modules import BoW, Dense, Pooling
from torch import Tensor, nn
from transformers import AutoTokenizer

from simlte_st.base_models import load_base, set_dropout
from simlte_st.data.document import Document
from simlte_st.data.views import DocSplit
from simlte_st.errors import ConfigurationError, DataError, ModelError
from simlte_st.evaluation.comparison import compare_split_half
from simlte_st.evaluation.split_half import result_from_ranks
from simlte_st.longformer import convert_to_longformer
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.training.interpolation import (
    InterpolationChoice,
    check_interpolable,
    choose_interpolation,
    interpolate,
    smallest_within_noise,
)
from simlte_st.training.lora import add_lora, merge_lora

TEXTS = ["Ba bei bo, cun dis.", "Let lal gor hun tis wet wal. Ba, bei."]


def load(path: Path) -> SentenceTransformer:
    return SentenceTransformer(str(path), device="cpu")


def moved(path: Path, amount: float = 0.05, seed: int = 0) -> SentenceTransformer:
    """The model of a folder with every weight moved at random: what training would make of it, and worse."""
    model = load(path)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=amount)
    return model


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    assert first
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.fixture
def base(encoder_path: Path) -> SentenceTransformer:
    return load(encoder_path)


@pytest.fixture
def adapted(encoder_path: Path) -> SentenceTransformer:
    return moved(encoder_path)


@pytest.fixture
def held_out(documents: list[str]) -> list[Document]:
    return [Document(str(number), text) for number, text in enumerate(documents[:24])]


# One weight.


def test_the_ends_are_the_models_and_between_lies_the_line(
    base: SentenceTransformer, adapted: SentenceTransformer
) -> None:
    start, end = state(base), state(adapted)
    assert same(state(interpolate(base, adapted, 0)), start)
    assert same(state(interpolate(base, adapted, 1)), end)
    for weight in (0.1, 0.5, 0.75):
        model = interpolate(base, adapted, weight)
        for name, value in state(model).items():
            expected = (1 - weight) * start[name].double() + weight * end[name].double()
            torch.testing.assert_close(value.double(), expected, rtol=0, atol=1e-6)
        assert not model.training
    assert same(state(base), start)
    assert same(state(adapted), end)
    assert (interpolate(base, adapted, 0).encode(TEXTS) == base.encode(TEXTS)).all()
    assert (interpolate(base, adapted, 1).encode(TEXTS) == adapted.encode(TEXTS)).all()


def test_in_place_it_is_the_same(base: SentenceTransformer, adapted: SentenceTransformer) -> None:
    start = state(base)
    expected = state(interpolate(base, adapted, 0.4))
    adapted.train()
    card = adapted.model_card_data
    assert interpolate(base, adapted, 0.4, in_place=True) is adapted
    assert same(state(adapted), expected)
    assert adapted.model_card_data is card
    assert not adapted.training
    assert same(state(base), start)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_it_is_sentence_transformers_own_merge(
    base: SentenceTransformer, adapted: SentenceTransformer, weight: float
) -> None:
    if not hasattr(SentenceTransformer, "merge"):
        pytest.skip("sentence-transformers before 6.2 has no merge()")
    pytest.importorskip("mergekit", reason="SentenceTransformer.merge() needs mergekit")
    merged = SentenceTransformer.merge(
        [base, adapted], method="linear", parameters={"weight": [1 - weight, weight]}, device="cpu"
    )
    ours, theirs = state(interpolate(base, adapted, weight)), state(merged)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=1e-6)
    # Why we do not use it: after training with other dropout it takes the two for different models.
    set_dropout(adapted, 0.3)
    with pytest.raises(ValueError, match="different configuration"):
        SentenceTransformer.merge([base, adapted], method="linear", parameters={"weight": [1 - weight, weight]})
    assert same(state(interpolate(base, adapted, weight)), ours)


def test_tied_weights_stay_tied(encoder_path: Path) -> None:
    models = []
    for model in (load(encoder_path), moved(encoder_path)):
        words = model.transformers_model.get_input_embeddings()
        model.append(Dense(32, len(words.weight), bias=False, activation_function=nn.Identity()))
        model[2].linear.weight = words.weight
        models.append(model)
    between = interpolate(*models, 0.5)
    words = between.transformers_model.get_input_embeddings().weight
    assert between[2].linear.weight is words
    expected = sum(model[2].linear.weight.detach() for model in models) / 2
    torch.testing.assert_close(words.detach(), expected, rtol=0, atol=1e-6)
    untied = load(encoder_path)
    untied.append(Dense(32, len(words), bias=False, activation_function=nn.Identity()))
    with pytest.raises(ModelError, match="is tied to"):
        interpolate(untied, models[1], 0.5)


def test_half_precision_is_rounded_once(encoder_path: Path, base: SentenceTransformer) -> None:
    start, end = state(base), state(moved(encoder_path))
    between = interpolate(base, moved(encoder_path).to(torch.bfloat16), 0.3)
    for name, value in state(between).items():
        assert value.dtype == torch.bfloat16
        exact = torch.lerp(start[name], end[name].to(torch.bfloat16).float(), 0.3)
        assert torch.equal(value, exact.to(torch.bfloat16))


def test_what_is_saved_is_a_plain_model_without_the_others_card(
    base: SentenceTransformer, adapted: SentenceTransformer, tmp_path: Path
) -> None:
    adapted.max_seq_length = 40
    adapted.prompts = {"query": "ba "}
    adapted.save_pretrained(str(tmp_path / "adapted"))
    with (tmp_path / "adapted" / "README.md").open("a") as file:
        file.write("\nOf the adapted model only.\n")
    between = interpolate(base, load(tmp_path / "adapted"), 0.5)
    between.save_pretrained(str(tmp_path / "between"))
    assert "Of the adapted model only." not in (tmp_path / "between" / "README.md").read_text()
    loaded = load(tmp_path / "between")
    assert (loaded.encode(TEXTS) == between.encode(TEXTS)).all()
    assert (loaded.max_seq_length, loaded.prompts["query"]) == (40, "ba ")


def test_a_model_out_of_the_trainer_is_copied_whole_but_for_its_card(
    encoder_path: Path, base: SentenceTransformer, documents: list[str], tmp_path: Path
) -> None:
    model = load(encoder_path)
    trainer = SentenceTransformerTrainer(
        model=model,
        # bf16: the Trainer wraps the model's forward, which a copy must not share.
        args=SentenceTransformerTrainingArguments(
            str(tmp_path), max_steps=3, learning_rate=1e-2, bf16=True, use_cpu=True, report_to="none",
            disable_tqdm=True, save_strategy="no",
        ),
        train_dataset=Dataset.from_dict({"a": documents[:16], "b": documents[16:32]}),
        loss=MultipleNegativesRankingMLMLoss(model, mlm_weight=0.1),
    )  # fmt: skip
    trainer.train()
    trained = model.encode(TEXTS)
    copied = interpolate(base, model, 0)
    assert "generated_from_trainer" in model.model_card_data.tags
    assert "generated_from_trainer" not in copied.model_card_data.tags
    assert all(weight.grad is None for weight in copied.parameters())
    assert same(state(copied), state(base))
    torch.testing.assert_close(copied.encode(TEXTS), base.encode(TEXTS), rtol=0, atol=0.02)
    assert abs(trained - base.encode(TEXTS)).max() > 0.1
    assert (model.encode(TEXTS) == trained).all()
    assert (interpolate(base, model, 1).encode(TEXTS) == trained).all()


def test_a_merged_adapter_is_between_base_and_itself(base: SentenceTransformer, encoder_path: Path) -> None:
    pytest.importorskip("peft")
    adapted = load(encoder_path)
    add_lora(adapted, 2, target_modules=["query"])
    with torch.no_grad():
        for weight in adapted.parameters():
            if weight.requires_grad:
                weight.fill_(0.1)
    with pytest.raises(ModelError, match="merge_lora"):
        interpolate(base, adapted, 0.5)
    merge_lora(adapted)
    between = state(interpolate(base, adapted, 0.5))
    start, end = state(base), state(adapted)
    changed = {name for name, value in between.items() if not torch.equal(value, start[name])}
    assert changed == {f"0.model.encoder.layer.{layer}.attention.self.query.weight" for layer in range(2)}
    for name in changed:
        torch.testing.assert_close(between[name], (start[name] + end[name]) / 2, rtol=0, atol=1e-6)


def test_our_longformer_is_interpolated(bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    convert_to_longformer(bert_path, max_length=120, attention_window=16).save_pretrained(tmp_path / "long")
    tokenizer = AutoTokenizer.from_pretrained(bert_path)
    tokenizer.model_max_length = 120
    tokenizer.save_pretrained(tmp_path / "long")
    base = load_base(tmp_path / "long").model
    base.save_pretrained(str(tmp_path / "encoder"))
    adapted = moved(tmp_path / "encoder")
    half = interpolate(base, adapted, 0.5).encode(documents[:3])
    assert abs(half - base.encode(documents[:3])).max() > 1e-3
    assert abs(half - adapted.encode(documents[:3])).max() > 1e-3


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_weight_outside_is_refused(base: SentenceTransformer, adapted: SentenceTransformer, weight: float) -> None:
    with pytest.raises(ConfigurationError, match="from 0, the base, to 1"):
        interpolate(base, adapted, weight)
    with pytest.raises(ConfigurationError, match="from 0, the base, to 1"):
        choose_interpolation(base, adapted, [], weights=(0.5, weight))


# What is one model with other weights, and what is not.


def with_config(path: Path, to: Path, **fields: object) -> SentenceTransformer:
    """The same weights under another configuration."""
    load(path).save_pretrained(str(to))
    config = json.loads((to / "config.json").read_text())
    (to / "config.json").write_text(json.dumps({**config, **fields}))
    return load(to)


def test_other_models_are_refused(base: SentenceTransformer, encoder_path: Path, tmp_path: Path) -> None:
    other = load(encoder_path)
    other[1] = Pooling(32, "cls")
    with pytest.raises(ModelError, match=r"configuration of module 1 .*pooling included"):
        check_interpolable(base, other)
    other = load(encoder_path)
    other.append(Dense(32, 32))
    with pytest.raises(ModelError, match="module 2"):
        check_interpolable(base, other)
    with pytest.raises(ModelError, match="num_attention_heads is 4 and 2"):  # all shapes are equal
        check_interpolable(base, with_config(encoder_path, tmp_path / "heads", num_attention_heads=2))
    with pytest.raises(ModelError, match="layer_norm_eps"):
        check_interpolable(base, with_config(encoder_path, tmp_path / "eps", layer_norm_eps=1e-5))
    with pytest.raises(ModelError, match="module 0"):
        check_interpolable(base, SentenceTransformer(modules=[BoW(["a"])], device="cpu"))
    swapped = load(encoder_path)
    files = tmp_path / "swapped"
    swapped.save_pretrained(str(files))
    words = json.loads((files / "tokenizer.json").read_text())
    vocabulary = words["model"]["vocab"]
    vocabulary["ba"], vocabulary["bo"] = vocabulary["bo"], vocabulary["ba"]
    (files / "tokenizer.json").write_text(json.dumps(words))
    with pytest.raises(ModelError, match="vocabulary"):
        check_interpolable(base, load(files))


def test_buffers_of_integers_are_equal_or_refused(base: SentenceTransformer, adapted: SentenceTransformer) -> None:
    for model in (base, adapted):
        model[1].register_buffer("table", torch.tensor([1, 2]))
    assert torch.equal(interpolate(base, adapted, 0.5)[1].table, torch.tensor([1, 2]))
    adapted[1].table[0] = 5
    with pytest.raises(ModelError, match=r"value of 1.table is \[1, 2\] and \[5, 2\]"):
        interpolate(base, adapted, 0.5)


def test_what_training_changes_is_no_difference(
    base: SentenceTransformer, adapted: SentenceTransformer, encoder_path: Path, tmp_path: Path
) -> None:
    adapted.max_seq_length = 20
    adapted.train()
    set_dropout(adapted, 0.4)
    adapted.requires_grad_(False)
    check_interpolable(base, adapted)
    check_interpolable(base, with_config(encoder_path, tmp_path / "dropout", hidden_dropout_prob=0.4))
    adapted.transformers_model.config.use_cache = False
    check_interpolable(base, adapted.to(torch.bfloat16))
    check_interpolable(load(encoder_path), SentenceTransformer(
        str(encoder_path), device="cpu", model_kwargs={"attn_implementation": "eager"}
    ))  # fmt: skip


# The choice.


def ranks(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_the_rule_prefers_the_base_within_noise() -> None:
    noise = np.random.default_rng(0).integers(1, 6, 200)
    equal = {weight: result_from_ranks(noise) for weight in (1.0, 0.5, 0.0)}
    assert smallest_within_noise(equal) == 0.0
    # One document is found better at 1: no more than chance.
    better = noise.copy()
    better[np.argmax(noise)] = 1
    assert smallest_within_noise({**equal, 1.0: result_from_ranks(better)}) == 0.0
    # Every third is: that is clear.
    better[::3] = 1
    assert smallest_within_noise({**equal, 1.0: result_from_ranks(better)}) == 1.0
    assert smallest_within_noise({**equal, 0.5: result_from_ranks(better), 1.0: result_from_ranks(better)}) == 0.5
    # The middle is best, the ends are worse.
    assert smallest_within_noise({**equal, 0.5: result_from_ranks(better)}) == 0.5
    # Unpaired, the intervals of these two overlap; but every document is found a little worse at 0.
    close = {0.0: result_from_ranks(noise + 1), 1.0: result_from_ranks(noise)}
    spread = result_from_ranks(np.where(np.arange(200) % 2 == 0, 1, 50))
    assert smallest_within_noise(close) == 1.0
    assert smallest_within_noise({0.0: spread, 1.0: spread}) == 0.0


def test_the_curve_is_that_of_the_interpolated_models(
    base: SentenceTransformer, adapted: SentenceTransformer, held_out: list[Document]
) -> None:
    start, end = state(base), state(adapted)
    choice = choose_interpolation(base, adapted, held_out, weights=(1, 0.5, 0, 0.5), seed=3)
    assert list(choice.scores) == [0.0, 0.5, 1.0]
    models = {str(weight): interpolate(base, adapted, weight) for weight in choice.scores}
    expected = compare_split_half(models, held_out, seed=3)
    for weight, score in choice.scores.items():
        assert score == expected[str(weight)]
        assert (score.ranks == expected[str(weight)].ranks).all()
    assert choice.weight == smallest_within_noise(choice.scores)
    assert same(state(choice.model), state(models[str(choice.weight)]))
    assert choice.model is not adapted
    assert same(state(base), start)
    assert same(state(adapted), end)
    json.dumps(choice.to_dict())
    assert [point["mrr"] for point in choice.to_dict()["curve"]] == [score.mrr for score in choice.scores.values()]
    assert f"{choice.weight:g} was chosen" in choice.summary()
    assert "24 documents" in choice.summary()
    for weight, said in ((0.0, True), (0.5, False)):
        assert ("the base again" in InterpolationChoice(weight, choice.scores, base).summary()) is said


def test_a_model_that_forgot_everything_goes_back_to_the_base(
    base: SentenceTransformer, encoder_path: Path, held_out: list[Document]
) -> None:
    ruined = moved(encoder_path, 3.0)
    assert choose_interpolation(base, ruined, held_out).weight < 1
    # And the other way round: a base that is noise is left for the model that is not.
    assert choose_interpolation(ruined, base, held_out).weight > 0


def test_in_place_the_adapted_model_gets_the_weights(
    base: SentenceTransformer, adapted: SentenceTransformer, held_out: list[Document], encoder_path: Path
) -> None:
    start = state(base)
    card = adapted.model_card_data
    expected = choose_interpolation(base, adapted, held_out)
    choice = choose_interpolation(base, adapted, held_out, in_place=True)
    assert choice.model is adapted
    assert adapted.model_card_data is card
    assert choice.scores == expected.scores
    assert same(state(adapted), state(expected.model))
    # Whatever is chosen: all weights are tried on the way.
    for weight in (0.0, 0.25, 1.0):
        model = moved(encoder_path)
        end = state(interpolate(base, model, weight))
        choose_interpolation(base, model, held_out, weights=[weight], in_place=True)
        assert same(state(model), end)
    assert same(state(base), start)


def test_a_failure_leaves_the_model_as_it_was(
    base: SentenceTransformer, adapted: SentenceTransformer, held_out: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    from simlte_st.training import interpolation

    end = state(adapted)
    calls: list[int] = []
    encode = interpolation.encode_texts

    def interrupted(*arguments: object, **options: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            assert not same(state(adapted), end)
            raise KeyboardInterrupt
        return encode(*arguments, **options)

    monkeypatch.setattr(interpolation, "encode_texts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        choose_interpolation(base, adapted, held_out, in_place=True)
    assert same(state(adapted), end)


def test_random_numbers_and_dropout_have_no_part(
    base: SentenceTransformer, encoder_path: Path, held_out: list[Document]
) -> None:
    found = []
    for seed in (1, 2):
        adapted = moved(encoder_path)
        adapted.train()  # as training leaves it
        set_dropout(adapted, 0.5)
        torch.manual_seed(seed)
        np.random.seed(seed)
        numbers = torch.get_rng_state(), np.random.get_state()[1].copy()
        choice = choose_interpolation(base, adapted, held_out, weights=(0.5, 1))
        assert torch.equal(torch.get_rng_state(), numbers[0])
        assert (np.random.get_state()[1] == numbers[1]).all()
        assert not choice.model.training
        found.append(choice.scores)
    assert found[0] == found[1]
    another = choose_interpolation(base, adapted, held_out, weights=(0.5, 1), seed=9)
    assert another.scores != found[0]


def test_the_halves_fit_the_model_that_reads_less(
    base: SentenceTransformer, adapted: SentenceTransformer, held_out: list[Document]
) -> None:
    adapted.max_seq_length = 12
    short = choose_interpolation(base, adapted, held_out, weights=[0.0]).scores[0.0]
    base.max_seq_length = 12
    assert short == choose_interpolation(base, adapted, held_out, weights=[0.0]).scores[0.0]
    other_view = choose_interpolation(base, adapted, held_out, weights=[0.0], view=DocSplit(unit="block", block=2))
    assert other_view.scores[0.0] != short


def test_there_is_a_bar_if_asked_for(
    base: SentenceTransformer,
    adapted: SentenceTransformer,
    held_out: list[Document],
    capsys: pytest.CaptureFixture[str],
) -> None:
    choose_interpolation(base, adapted, held_out, weights=(0, 1))
    assert "Interpolating" not in capsys.readouterr().err
    choose_interpolation(base, adapted, held_out, weights=(0, 1), progress=True)
    assert "2/2" in capsys.readouterr().err


def test_too_little_to_choose_from(base: SentenceTransformer, adapted: SentenceTransformer) -> None:
    with pytest.raises(ConfigurationError, match="no weights"):
        choose_interpolation(base, adapted, [], weights=())
    with pytest.raises(DataError, match="at least 2 documents"):
        choose_interpolation(base, adapted, [Document("a", "Ba bun. Cis ka.")])
