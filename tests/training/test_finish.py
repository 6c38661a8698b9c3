from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import make_document
from training_support import assert_same_bytes, weights

from simlte_st import train
from simlte_st.errors import ConfigurationError
from simlte_st.modules import TokenTable
from simlte_st.training import finish

OPTIONS: dict[str, Any] = {
    "pooling": "cls", "batch_size": 8, "max_steps": 2, "learning_rate": 3e-3,
    "held_out": 0.3, "max_length": "base", "progress": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def labelled() -> list[dict[str, str]]:
    """Enough documents for a verdict, in two folders."""
    return [{"id": str(number), "text": make_document(number), "folder": "ab"[number % 2]} for number in range(140)]


def test_base_is_kept_without_a_clear_gain(encoder_path: Path, labelled: list[dict[str, str]], tmp_path: Path) -> None:
    result = train(labelled, tmp_path / "m", base=encoder_path, **{**OPTIONS, "learning_rate": 1e-9})
    assert result.kept == "base"
    assert result.gain is not None
    assert result.gain["verdict"] == "no clear difference" or result.gain["verdict"] == "hurt"
    before = weights(encoder_path)
    for name, value in weights(tmp_path / "m").items():
        np.testing.assert_array_equal(value, before[name])
    pooling = [json.loads((tmp_path / name / "1_Pooling" / "config.json").read_text()) for name in ("m", "m.trained")]
    assert "mean" in str(pooling[0]), "the base's, not the one that was trained"
    assert "cls" in str(pooling[1])
    assert f"{tmp_path / 'm'} holds the untrained base" in result.summary() == str(result)
    base = SentenceTransformer(str(encoder_path), device="cpu").encode(["Ba bun."])
    np.testing.assert_allclose(result.load(device="cpu").encode(["Ba bun."]), base, atol=1e-6)


def test_models_are_compared_in_float32_after_bfloat16(
    encoder_path: Path, labelled: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, found, original = [row["text"] for row in labelled[:8]], [], finish.measure_gain

    def measure(*given: Any, **options: Any) -> dict[str, Any] | None:
        found.extend((given[-1]["base"].encode(texts), given[-1]["trained"].encode(texts)))
        return original(*given, **options)

    monkeypatch.setattr(finish, "measure_gain", measure)
    result = train(labelled, tmp_path / "m", base=encoder_path, bf16=True, keep="trained", **OPTIONS)
    assert result.dtype == "bfloat16"
    trained = SentenceTransformer(str(tmp_path / "m"), device="cpu").encode(texts)
    np.testing.assert_allclose(found[1], trained, atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-3, "training changed something"


def test_trained_model_is_kept_if_it_helped_or_on_request(
    encoder_path: Path, labelled: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = train(labelled, tmp_path / "asked", base=encoder_path, keep="trained", **OPTIONS)
    assert asked.kept == "trained"
    assert asked.gain is not None, "it is measured all the same"
    unmeasured = train(labelled, tmp_path / "unmeasured", base=encoder_path, **{**OPTIONS, "held_out": 0.0})
    assert (unmeasured.kept, unmeasured.gain) == ("trained", None)
    original = finish.measure_gain
    helped_always = lambda *given, **options: {**(original(*given, **options) or {}), "verdict": "helped"}  # noqa: E731
    monkeypatch.setattr(finish, "measure_gain", helped_always)
    helped = train(labelled, tmp_path / "helped", base=encoder_path, **OPTIONS)
    assert helped.kept == "trained"
    assert_same_bytes(tmp_path / "helped", tmp_path / "asked")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked", "helped", "unmeasured"]


def test_probe_affects_only_the_verdict(encoder_path: Path, labelled: list[dict[str, str]], tmp_path: Path) -> None:
    for name, column in (("without", None), ("with", "folder")):
        train(labelled, tmp_path / name, base=encoder_path, probe=column, keep="trained", **OPTIONS)
    assert_same_bytes(tmp_path / "without", tmp_path / "with")
    gain = json.loads((tmp_path / "with" / "simlte.json").read_text())["gain"]
    assert 0 < gain["probe"]["base"] < 1
    assert gain["probe"]["low"] <= gain["probe"]["mean"] <= gain["probe"]["high"]
    assert "few labels" in (tmp_path / "with" / "README.md").read_text()
    for name, folders in (("same", ["a"] * len(labelled)), ("alone", [row["id"] for row in labelled])):
        rows = [{**row, "folder": folder} for row, folder in zip(labelled, folders, strict=True)]
        with pytest.raises(ConfigurationError, match="probe='folder'"):
            train(rows, tmp_path / name, base=encoder_path, probe="folder", **OPTIONS)
    with pytest.raises(ConfigurationError, match="held_out="):
        train(labelled, tmp_path / "none", base=encoder_path, probe="folder", **{**OPTIONS, "held_out": 0.0})


def test_lsa_is_appended(encoder_path: Path, labelled: list[dict[str, str]], tmp_path: Path) -> None:
    result = train(labelled, tmp_path / "first", base=encoder_path, lsa=5, keep="trained", **OPTIONS)
    model = result.load(device="cpu")
    assert isinstance(model[-1], TokenTable)
    assert (result.lsa, model.get_embedding_dimension()) == (5, 32 + 5)
    assert "lsa=5" in (tmp_path / "first" / "README.md").read_text()
    again = train(labelled, tmp_path / "again", base=tmp_path / "first", lsa=3, keep="trained", **OPTIONS)
    assert [type(module).__name__ for module in again.load(device="cpu")].count("TokenTable") == 1
    assert again.lsa == 3
    held = train(labelled, tmp_path / "held", base=encoder_path, lsa=5, **{**OPTIONS, "held_out": 0.0})
    fewer = held.load(device="cpu")[-1].table, model[-1].table
    assert not np.array_equal(*fewer), "documents held out are not looked at"
    none = train(labelled, tmp_path / "none", base=tmp_path / "first", lsa=0, keep="trained", **OPTIONS)
    assert none.lsa is None
    assert none.load(device="cpu").get_embedding_dimension() == 32
