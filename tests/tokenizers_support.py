"""Small tokenizers of each kind, trained on made-up words."""

from __future__ import annotations

from collections.abc import Callable

from support import WORDS, as_fast, make_document
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

TEXTS = [
    *map(make_document, range(30)),
    *["It's (a) U.S.-led “test”; e.g. 1,234.5% of naïve cafés."] * 3,
    " ".join(f"{start}{end}" for start in WORDS[::3] for end in WORDS[::5]),  # also letters inside words
    "b" * 30,
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def _finish(tokenizer: Tokenizer, template: str = "[CLS] $A [SEP]") -> PreTrainedTokenizerFast:
    special = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]") if token in template]
    if special:
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)
    return as_fast(tokenizer)


def word_piece() -> PreTrainedTokenizerFast:
    """Train a tokenizer like BERT's."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return _finish(tokenizer)


def _byte_level(pre_tokenizer: pre_tokenizers.PreTokenizer) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    options = {"special_tokens": SPECIAL, "initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=700, show_progress=False, **options))
    return _finish(tokenizer)


def byte_level() -> PreTrainedTokenizerFast:
    """Train a tokenizer like those of RoBERTa and Longformer."""
    return _byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def byte_level_split() -> PreTrainedTokenizerFast:
    """Train a byte-level tokenizer with the pattern of newer models (Llama 3, Qwen)."""
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"
    )
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    encode = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _byte_level(pre_tokenizers.Sequence([split, encode]))


def unigram() -> PreTrainedTokenizerFast:
    """Train a tokenizer like XLM-R's."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return _finish(tokenizer)


def sentence_piece_bpe() -> PreTrainedTokenizerFast:
    """Train a tokenizer like Llama 2's: the normalizer turns spaces into letters, and there is no pre-tokenizer."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    letters = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=[*SPECIAL, *letters], show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.pre_tokenizer = None  # type: ignore[assignment]
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return _finish(tokenizer, "[CLS] $A")


def word_level() -> PreTrainedTokenizerFast:
    """Make a tokenizer of whole words split at white space, without lower-casing."""
    vocabulary = {token: index for index, token in enumerate([*SPECIAL, *WORDS, "a", "b", "x"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return _finish(tokenizer, "$A [SEP]")


TOKENIZERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    function.__name__: function
    for function in (word_piece, word_level, byte_level, byte_level_split, unigram, sentence_piece_bpe)
}
"""Tokenizers of every kind whose tokens do not cross spaces, by name."""
