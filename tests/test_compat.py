from __future__ import annotations

from pathlib import Path

from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertModel

from simlte_st.compat import checkpoint_name, forget_model_card_text
from simlte_st.losses.mlm_head import encoder_of


def test_the_checkpoint_of_an_encoder_is_known(encoder_path: Path, bert_path: Path) -> None:
    for path in (encoder_path, bert_path):
        assert checkpoint_name(encoder_of(SentenceTransformer(str(path), device="cpu"))) == str(path)


def test_a_model_made_from_nothing_has_none() -> None:
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    assert checkpoint_name(BertModel(config)) == ""


def test_the_text_of_a_loaded_card_is_forgotten(encoder_path: Path, tmp_path: Path) -> None:
    SentenceTransformer(str(encoder_path), device="cpu").save_pretrained(str(tmp_path / "first"))
    with (tmp_path / "first" / "README.md").open("a") as file:
        file.write("\nOf the first model only.\n")
    model = SentenceTransformer(str(tmp_path / "first"), device="cpu")
    for name in ("kept", "new"):
        model.save_pretrained(str(tmp_path / name))
        forget_model_card_text(model)
    assert "Of the first model only." in (tmp_path / "kept" / "README.md").read_text()
    assert "Of the first model only." not in (tmp_path / "new" / "README.md").read_text()
