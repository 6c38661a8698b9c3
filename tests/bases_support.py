"""A tiny model of every kind that users pass to this package, and the result of each command on it."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
import transformers
from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from sentence_transformers.sparse_encoder.modules import SpladePooling
from support import WORDS, make_document, make_static_model, make_tokenizer
from tokenizers import processors
from transformers import PreTrainedModel, PreTrainedTokenizerFast

import simlte_st
from simlte_st.cli.main import main
from simlte_st.search import Index

TOLERANCE = 1e-5
TEXTS = [make_document(number, sentences=1 + number % 5, words=3 + number % 4) for number in range(24)]
QUERY = "ba bei bo"
COMMANDS = {
    "encode": "encode {model} {docs} --output {out}/vectors.parquet --quiet",
    "index": "index {model} {docs} --output {out}/index --quiet",
    "search": f"search {{out}}/index '{QUERY}' --mode dense --format jsonl --top-k 24",
    "train": "train {docs} --base {model} --output {out}/trained --max-steps 2 --batch-size 8 --held-out 0 "
    "--warmup 0 --learning-rate 1e-3 --no-bf16 --quiet",
    "compare": "compare {docs} {model} --json --quiet",
    "export": "export {model} --output {out}/exported",
}
"""Commands to try with each base, in order."""

GROUPS = (("encode", "index", "search"), ("train",), ("compare",), ("export",))
"""The commands of each column of the table."""

E5 = {"query": "query: ", "passage": "passage: "}
_PROMPT_WORDS = [
    "document", "find", "instruct", "none", "passage", "query", "result", "search", "search_document", "search_query",
    "task", "text", "title",
]  # fmt: skip
_SIZES: dict[str, Any] = {
    "vocab_size": len(make_tokenizer([*WORDS, *_PROMPT_WORDS])), "hidden_size": 32, "num_hidden_layers": 1,
    "num_attention_heads": 4, "intermediate_size": 32,
}  # fmt: skip


@dataclass(frozen=True)
class Base:
    """A kind of model.

    Attributes:
        examples: Popular models of this kind.
        make: Writes a tiny model into an empty folder and returns its path. If the stock class cannot load it, the
            folder ``reference`` holds an equal model for comparison.
        needs: Class of transformers that older versions may lack.
    """

    examples: str
    make: Callable[[Path], Path]
    needs: str = ""

    @property
    def missing(self) -> str:
        """Message about a class missing from the installed transformers, or an empty string."""
        has = not self.needs or hasattr(transformers, self.needs)
        return "" if has else f"transformers {transformers.__version__} has no {self.needs}"


BASES: dict[str, Base] = {}
"""Every kind by its name in the table."""


def base(name: str, examples: str, needs: str = "") -> Callable[[Callable[[Path], Path]], None]:
    def add(make: Callable[[Path], Path]) -> None:
        BASES[name] = Base(examples, make, needs)

    return add


def tokenizer(template: str = "[CLS] $A [SEP]", side: str = "right") -> PreTrainedTokenizerFast:
    fast = make_tokenizer([*WORDS, *_PROMPT_WORDS])
    backend = fast.backend_tokenizer
    special = [(token, backend.token_to_id(token)) for token in ("[CLS]", "[SEP]") if token in template]
    backend.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)
    fast.padding_side = side
    return fast


def draw_weights(encoder: torch.nn.Module) -> Any:
    """Draw weights large enough that every token and position affects the vector; return the encoder."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() > 1:
                weight.normal_(std=0.3, generator=generator)
    return encoder


def write_modules(
    folder: Path, encoder: PreTrainedModel, pooling: str = "mean", tokens: PreTrainedTokenizerFast | None = None
) -> list[torch.nn.Module]:
    draw_weights(encoder).save_pretrained(folder)
    (tokens or tokenizer()).save_pretrained(folder)
    return [Transformer(str(folder)), Pooling(32, pooling)]


def save_model(folder: Path, modules: list[torch.nn.Module], **options: Any) -> Path:
    SentenceTransformer(modules=modules, device="cpu", **options).save_pretrained(str(folder / "model"))
    return folder / "model"


def bert(**sizes: Any) -> Any:
    return transformers.BertModel(transformers.BertConfig(**_SIZES, max_position_embeddings=64, **sizes))


@base("BERT", "all-MiniLM, bge, gte-base, snowflake-arctic-embed")
def _(folder: Path) -> Path:
    return save_model(folder, [*write_modules(folder / "raw", bert(), "cls"), Normalize()])


@base("E5 (prompts)", "e5-base-v2, e5-large")
def _(folder: Path) -> Path:
    return save_model(folder, [*write_modules(folder / "raw", bert()), Normalize()], prompts=E5)


@base("ModernBERT", "gte-modernbert, granite-embedding-english-r2", "ModernBertModel")
def _(folder: Path) -> Path:
    special = {"pad_token_id": 0, "cls_token_id": 2, "bos_token_id": 2, "sep_token_id": 3, "eos_token_id": 3}
    layers = {"num_hidden_layers": 2, "global_attn_every_n_layers": 2, "local_attention": 8}
    config = transformers.ModernBertConfig(**{**_SIZES, **layers}, max_position_embeddings=256, **special)
    return save_model(folder, write_modules(folder / "raw", transformers.ModernBertModel(config), "cls"))


@base("XLM-R (prompts)", "multilingual-e5, bge-m3, paraphrase-multilingual-mpnet")
def _(folder: Path) -> Path:
    config = transformers.XLMRobertaConfig(**_SIZES, max_position_embeddings=65, pad_token_id=0, type_vocab_size=1)
    modules = write_modules(folder / "raw", transformers.XLMRobertaModel(config))
    return save_model(folder, [*modules, Normalize()], prompts=E5)


@base("DeBERTa", "deberta-v3, and encoders made of it")
def _(folder: Path) -> Path:
    attention = {"relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]}
    config = transformers.DebertaV2Config(
        **_SIZES, **attention, share_att_key=True, norm_rel_ebd="layer_norm", max_position_embeddings=64, pad_token_id=0
    )
    return save_model(folder, write_modules(folder / "raw", transformers.DebertaV2Model(config)))


@base("T5 encoder", "sentence-t5, gtr-t5")
def _(folder: Path) -> Path:
    config = transformers.T5Config(
        vocab_size=_SIZES["vocab_size"], d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=4, pad_token_id=0
    )
    modules = write_modules(folder / "raw", transformers.T5EncoderModel(config), tokens=tokenizer("$A [SEP]"))
    linear = Dense(32, 32, bias=False, activation_function=torch.nn.Identity())
    return save_model(folder, [*modules, linear, Normalize()])


@base("Qwen3 (last token, prompts)", "Qwen3-Embedding", "Qwen3Model")
def _(folder: Path) -> Path:
    config = transformers.Qwen3Config(**_SIZES, num_key_value_heads=2, head_dim=8, max_position_embeddings=256)
    tokens, prompts = tokenizer("$A [SEP]", "left"), {"query": "instruct: find\nquery: ", "document": ""}
    modules = write_modules(folder / "raw", transformers.Qwen3Model(config), "lasttoken", tokens)
    return save_model(folder, [*modules, Normalize()], prompts=prompts)


@base("EmbeddingGemma (prompts, two Dense)", "embeddinggemma-300m", "Gemma3TextModel")
def _(folder: Path) -> Path:
    kinds = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 16, "num_hidden_layers": 2}
    config = transformers.Gemma3TextConfig(
        **{**_SIZES, **kinds}, num_key_value_heads=1, head_dim=8, max_position_embeddings=128, pad_token_id=0,
        use_bidirectional_attention=True,
    )  # fmt: skip
    linear = {"bias": False, "activation_function": torch.nn.Identity()}
    after = [Dense(32, 64, **linear), Dense(64, 32, **linear), Normalize()]
    prompts = {"query": "task: search result | query: ", "document": "title: none | text: "}
    modules = write_modules(folder / "raw", transformers.Gemma3TextModel(config))
    return save_model(folder, [*modules, *after], prompts=prompts)


@base("Longformer", "longformer-base-4096")
def _(folder: Path) -> Path:
    config = transformers.LongformerConfig(
        **_SIZES, attention_window=[16], max_position_embeddings=97, pad_token_id=0, type_vocab_size=1
    )
    return save_model(folder, write_modules(folder / "raw", transformers.LongformerModel(config)))


@base("Static", "static-retrieval-mrl-en-v1, potion")
def _(folder: Path) -> Path:
    model = make_static_model()
    model[0].tokenizer.no_truncation()  # this package always reads whole texts
    model.save_pretrained(str(folder / "model"))
    return folder / "model"


@base("Custom code", "gte-base-en-v1.5, others that want trust_remote_code")
def _(folder: Path) -> Path:
    path = save_model(folder, write_modules(folder / "raw", bert()))
    config = json.loads((path / "config.json").read_text())
    auto = {"AutoConfig": "configuration.NewConfig", "AutoModel": "modeling.NewModel"}
    (path / "config.json").write_text(json.dumps({**config, "model_type": "new", "auto_map": auto}))
    return path


@base("Sparse encoder", "splade")
def _(folder: Path) -> Path:
    config = transformers.BertConfig(**_SIZES, max_position_embeddings=64)
    write_modules(folder / "raw", transformers.BertForMaskedLM(config))
    encoder = Transformer(str(folder / "raw"), transformer_task="fill-mask")
    SparseEncoder(modules=[encoder, SpladePooling()], device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"


@base("Cross-encoder", "ms-marco-MiniLM, bge-reranker")
def _(folder: Path) -> Path:
    config = transformers.BertConfig(**_SIZES, max_position_embeddings=64, num_labels=1)
    write_modules(folder / "raw", transformers.BertForSequenceClassification(config))
    CrossEncoder(str(folder / "raw"), device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"


@base("Multi-vector encoder", "ColBERT, GTE-ModernColBERT")
def _(folder: Path) -> Path:
    write_modules(folder / "raw", bert())
    MultiVectorEncoder(str(folder / "raw"), device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"


def try_base(kind: Base, folder: Path) -> dict[str, str]:
    """Build a model, run every command with it, and compare its vectors with the stock class.

    Returns:
        The error message of each command; empty if it works.
    """
    torch.manual_seed(0)
    path, out, docs = kind.make(folder), folder / "out", folder / "docs.jsonl"
    out.mkdir()
    docs.write_text("".join(json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(TEXTS)))
    errors, printed = {}, {}
    for name, command in COMMANDS.items():
        outputs = set(out.iterdir())
        status, printed[name], error = run(command.format(model=path, docs=docs, out=out))
        message = " ".join(error.rpartition("simlte: ")[2].split()).replace(str(path), "MODEL")
        errors[name] = message if status else ""
        assert status == 0 or (status == 1 and set(out.iterdir()) == outputs and "not happen" not in message), message
    if errors["index"]:
        errors["search"] = errors["index"]  # no index to search
    if not errors["encode"]:
        reference = folder / "reference"
        stock = SentenceTransformer(str(reference if reference.exists() else path), device="cpu")
        compare_with_stock(stock, out, {name: text for name, text in printed.items() if not errors[name]})
    return errors


def group_status(errors: dict[str, str]) -> list[str]:
    """Return "yes" or "no" for each group of commands."""
    return ["no" if any(errors[command] for command in group) else "yes" for group in GROUPS]


def run(command: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(shlex.split(command))
    return status, out.getvalue(), err.getvalue()


def compare_with_stock(stock: SentenceTransformer, out: Path, printed: dict[str, str]) -> None:
    """Compare the commands' files and output with the stock class."""
    prompt = stock.prompts.get("document") or stock.prompts.get("passage") or ""
    expected = stock.encode_document(TEXTS, prompt=prompt)
    query = unit(stock.encode_query(QUERY))
    assert spread(expected) > 0.01, "nearly equal vectors would pass any comparison"
    if prompt:
        assert abs(stock.encode_document(TEXTS, prompt="") - expected).max() > 0.01
        assert abs(unit(stock.encode_document(QUERY, prompt=prompt)) - query).max() > 0.01
    vectors = np.array(pq.read_table(out / "vectors.parquet")["vector"].to_pylist())
    np.testing.assert_allclose(vectors, expected, atol=TOLERANCE, rtol=0)
    rows = Index.open(out / "index").table(["vector"])
    order = [int(name) for name in rows["id"].to_pylist()]
    np.testing.assert_allclose(np.array(rows["vector"].to_pylist()), unit(expected)[order], atol=TOLERANCE, rtol=0)
    hits = {int(hit["id"]): hit["cosine"] for hit in map(json.loads, printed["search"].splitlines())}
    assert sorted(hits) == sorted(order)
    np.testing.assert_allclose([*hits.values()], unit(expected)[[*hits]] @ query, atol=TOLERANCE, rtol=0)
    if "train" in printed:
        model = simlte_st.SentenceTransformer(str(out / "trained"), device="cpu")
        trained = model.encode_document(TEXTS, prompt=prompt)
        assert np.isfinite(trained).all()
        learned = unit(trained[:, : expected.shape[1]])
        assert abs(learned - unit(expected)).max() > 1e-4, "nothing was learned"
    if "compare" in printed:
        candidates = [candidate["name"] for candidate in json.loads(printed["compare"])["candidates"]]
        assert any(str(out.parent) in name for name in candidates), candidates
    if "export" in printed:
        load = simlte_st.load_onnx if (out / "exported" / "export.json").exists() else SentenceTransformer
        vectors = load(str(out / "exported")).encode(TEXTS, prompt=prompt)
        np.testing.assert_allclose(vectors, expected, atol=TOLERANCE, rtol=0)


def unit(vectors: Any) -> np.ndarray:
    return np.asarray(vectors) / np.linalg.norm(vectors, axis=-1, keepdims=True)


def spread(vectors: np.ndarray) -> float:
    """Return the spread of the cosines between pairs of vectors."""
    cosines = unit(vectors) @ unit(vectors).T
    return float(cosines[~np.eye(len(cosines), dtype=bool)].std())
