from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from interpolation_support import load, moved, same, state
from sentence_transformers import SentenceTransformer

from simlte_st.data.document import Document
from simlte_st.data.views import DocSplit
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.comparison import compare_halves
from simlte_st.evaluation.structure import summarise
from simlte_st.training.dropout import set_dropout
from simlte_st.training.interpolation import (
    InterpolationChoice,
    choose_interpolation,
    interpolate,
    smallest_within_noise,
)


@pytest.fixture
def base(encoder_path: Path) -> SentenceTransformer:
    return load(encoder_path)


@pytest.fixture
def adapted(encoder_path: Path) -> SentenceTransformer:
    return moved(encoder_path)


@pytest.fixture
def held_out(documents: list[str]) -> list[Document]:
    return [Document(str(number), text) for number, text in enumerate(documents[:24])]


def test_the_rule_prefers_the_base_within_noise() -> None:
    noise = np.random.default_rng(0).uniform(0.0, 0.5, 200)
    equal = {weight: summarise(noise) for weight in (1.0, 0.5, 0.0)}
    assert smallest_within_noise(equal) == 0.0
    # One document is better at 1: no more than chance.
    better = noise.copy()
    better[0] = 1.0
    assert smallest_within_noise({**equal, 1.0: summarise(better)}) == 0.0
    # Every third is: that is clear.
    better[::3] = 1.0
    assert smallest_within_noise({**equal, 1.0: summarise(better)}) == 1.0
    assert smallest_within_noise({**equal, 0.5: summarise(better), 1.0: summarise(better)}) == 0.5
    # The middle is best, the ends are worse.
    assert smallest_within_noise({**equal, 0.5: summarise(better)}) == 0.5
    # Unpaired, the intervals of these two overlap; but every document is a little worse at 0.
    close = {0.0: summarise(noise), 1.0: summarise(noise + 0.01)}
    spread = summarise(np.where(np.arange(200) % 2 == 0, 1.0, 0.0))
    assert smallest_within_noise(close) == 1.0
    assert smallest_within_noise({0.0: spread, 1.0: spread}) == 0.0


def test_the_curve_is_that_of_the_interpolated_models(
    base: SentenceTransformer, adapted: SentenceTransformer, held_out: list[Document]
) -> None:
    start, end = state(base), state(adapted)
    choice = choose_interpolation(base, adapted, held_out, weights=(1, 0.5, 0, 0.5), seed=3)
    assert list(choice.scores) == [0.0, 0.5, 1.0]
    models = {str(weight): interpolate(base, adapted, weight) for weight in choice.scores}
    expected = compare_halves(models, held_out, seed=3)
    for weight, score in choice.scores.items():
        assert score == expected[str(weight)].structure
        assert (score.scores == expected[str(weight)].structure.scores).all()
    assert choice.weight == smallest_within_noise(choice.scores)
    assert same(state(choice.model), state(models[str(choice.weight)]))
    assert choice.model is not adapted
    assert same(state(base), start)
    assert same(state(adapted), end)
    json.dumps(choice.to_dict())
    curve = [point["agreement"] for point in choice.to_dict()["curve"]]
    assert curve == [score.agreement for score in choice.scores.values()]
    assert f"{choice.weight:g} was chosen" in choice.summary()
    assert "24 documents" in choice.summary()
    for weight, said in ((0.0, True), (0.5, False)):
        assert ("the base's again" in InterpolationChoice(weight, choice.scores, base).summary()) is said


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
