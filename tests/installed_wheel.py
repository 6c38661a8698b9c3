"""Try the installed package without extras, as a new user would; ``make dist`` runs this on the built wheel.

It creates, trains and uses a tiny model, and checks that features without their extra name it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SIMLTE = Path(sys.executable).with_name("simlte")
WORDS = [
    "the", "a", "river", "stone", "market", "house", "light", "garden", "winter", "letter", "road", "music", "ship",
    "field", "answer", "glass",
]  # fmt: skip


def tiny_model(folder: Path) -> None:
    """Save a one-layer BERT with a small vocabulary."""
    vocabulary = {
        word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS])
    }
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=64, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    ).save_pretrained(folder)  # fmt: skip
    BertModel(
        BertConfig(
            vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=64,
        )
    ).save_pretrained(folder)  # fmt: skip


def run(*command: str, fails_with: str = "") -> None:
    """Run a command that must succeed, or fail with ``fails_with`` in its output."""
    process = subprocess.run([str(SIMLTE), *command], capture_output=True, text=True, check=False)
    output = process.stdout + process.stderr
    if fails_with:
        assert process.returncode == 1, output
        assert fails_with in output, output
    else:
        assert process.returncode == 0, output
    print("simlte", " ".join(command[:2]), "ok", flush=True)


def main() -> None:
    """Run all commands in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny_model(folder / "base")
        source = folder / "texts.jsonl"
        sentences = [" ".join(WORDS[(number + word) % len(WORDS)] for word in range(5)) + "." for number in range(40)]
        rows = [json.dumps({"text": " ".join(sentences[row : row + 8])}) for row in range(32)]
        source.write_text("\n".join(rows), encoding="utf-8")
        trained, vectors = str(folder / "trained"), str(folder / "vectors.parquet")
        run("--help")
        run("train", str(source), "--base", str(folder / "base"), "--output", trained, "--max-steps", "1", "--quiet")
        run("encode", trained, str(source), "--output", vectors, "--quiet")
        assert Path(vectors).stat().st_size > 0
        page = folder / "page.html"
        page.write_text("<p>One sentence. Another one.</p>", encoding="utf-8")
        run("encode", trained, str(page), "--output", str(folder / "more.parquet"), fails_with="simlte-st[documents]")
        run("index", trained, str(source), "--output", str(folder / "index"), fails_with="simlte-st[index]")


if __name__ == "__main__":
    main()
