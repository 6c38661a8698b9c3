"""Whole documents as sequences of one length, masked for a language model to learn from: nothing is padded.

As in transformers' ``run_mlm``: ``datasets.map`` tokenizes a batch of documents, joins them and cuts what comes out.
The documents of a batch follow each other, with [SEP] between two, and are cut wherever a sequence is full; each
sequence is put between [CLS] and [SEP]. No token is lost but those that do not fill the last sequence of a batch.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset, Features, List, Value, concatenate_datasets
from tokenizers import Tokenizer, models, trainers
from transformers import BertTokenizer, DataCollatorForLanguageModeling, PreTrainedTokenizerBase

from simlte_st.data.document import Document
from simlte_st.data.epochs import EpochClock
from simlte_st.errors import ConfigurationError, EmptyCorpusError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BATCH = 1000
"""Documents that are tokenized, packed and written at once: as many as ``datasets.map`` gives ``run_mlm``."""


def pack(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, length: int) -> list[list[int]]:
    """Join texts and cut them into sequences of ``length`` tokens, [CLS] and [SEP] included.

    Raises:
        ConfigurationError: ``length`` leaves no room for text.
    """
    if length < 3:
        raise ConfigurationError(f"A sequence of {length} tokens has no room between [CLS] and [SEP]: use 3 or more.")
    first, last = int(tokenizer.cls_token_id), int(tokenizer.sep_token_id)
    documents = filter(None, tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"])
    stream = list(chain.from_iterable([*ids, last] for ids in documents))[:-1]
    ends = range(length - 2, len(stream) + 1, length - 2)
    return [[first, *stream[end - length + 2 : end], last] for end in ends]


def write_packed(
    documents: Iterable[Document], tokenizer: PreTrainedTokenizerBase, length: int, directory: Path
) -> None:
    """Pack documents into sequences, in an Arrow file for each batch; those that are there are not made again.

    Args:
        documents: Read once, in order.
        tokenizer: Makes the tokens.
        length: Tokens of a sequence.
        directory: Folder of the files; of no other documents, tokenizer or length.

    Raises:
        ConfigurationError: ``length`` leaves no room for text.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for number, texts in enumerate(_batches(document.text for document in documents)):
        Dataset.from_dict({"text": texts}).map(
            lambda rows: {"input_ids": pack(rows["text"], tokenizer, length)},
            batched=True,
            batch_size=BATCH,
            remove_columns=["text"],
            features=Features({"input_ids": List(Value("int32"))}),
            cache_file_name=str(directory / f"{number:06d}.arrow"),
            load_from_cache_file=True,
            new_fingerprint=f"{directory.parent.name}-{directory.name}-{number}",
        )


def read_packed(directory: Path) -> Dataset:
    """Open what :func:`write_packed` wrote, memory-mapped.

    Returns:
        Rows of ``input_ids``: ``(length,)``, int64.

    Raises:
        EmptyCorpusError: The documents do not fill one sequence.
    """
    parts = [part for path in sorted(directory.glob("*.arrow")) if len(part := Dataset.from_file(str(path)))]
    if not parts:
        raise EmptyCorpusError("The documents do not fill one sequence: give more of them, or a smaller length.")
    return concatenate_datasets(parts).with_format("torch")


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while batch := list(islice(stream, BATCH)):
        yield batch


class Masking:
    """Collator of packed sequences: masks as the stock ``DataCollatorForLanguageModeling`` does, 80 / 10 / 10.

    What it draws depends on the seed, the epoch and the sequences in the batch only, so a run that stops and goes on
    sees what an uninterrupted one sees, with any number of workers; PyTorch's own generator is not touched.

    Args:
        tokenizer: The tokenizer; its special tokens are never masked.
        seed: Seed.
        clock: Tells the epoch; None draws the same at each pass.
        probability: Share of tokens to predict.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        seed: int,
        clock: EpochClock | None = None,
        probability: float = 0.15,
    ) -> None:
        self._stock = DataCollatorForLanguageModeling(tokenizer, mlm_probability=probability)
        self._special = torch.tensor(tokenizer.all_special_ids)
        self._seed = seed
        self._clock = clock

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Make a batch: ``input_ids`` and ``labels`` (-100 where nothing is to predict), ``(batch, length)``, int64."""
        epoch = 0 if self._clock is None else self._clock.epoch
        ids = torch.stack([row["input_ids"] for row in rows])
        state = np.random.SeedSequence([self._seed, epoch, zlib.crc32(ids.numpy().tobytes())])
        self._stock.generator = torch.Generator().manual_seed(int(state.generate_state(1, np.uint64)[0]))
        masked, labels = self._stock.torch_mask_tokens(ids, special_tokens_mask=torch.isin(ids, self._special))
        return {"input_ids": masked, "labels": labels}


def word_piece_tokenizer(vocabulary: dict[str, int], max_length: int) -> BertTokenizer:
    """Make BERT's lower-casing tokenizer of a vocabulary."""
    return BertTokenizer(vocab=vocabulary, do_lower_case=True, model_max_length=max_length)


def learn_word_pieces(texts: Callable[[], Iterable[str]], size: int, progress: bool = False) -> dict[str, int]:
    """Learn a vocabulary of word pieces, of lower-cased text, with ``tokenizers``.

    Args:
        texts: Gives the texts; called twice.
        size: Entries, BERT's five special tokens included; a small corpus may have fewer.
        progress: Show progress bars.

    Returns:
        Ids by piece; the special tokens come first. The same texts give the same vocabulary.
    """
    words, pieces = Tokenizer(models.WordLevel()), Tokenizer(models.WordPiece(unk_token="[UNK]"))
    cuts = word_piece_tokenizer({token: number for number, token in enumerate(SPECIAL)}, 512).backend_tokenizer
    for tokenizer in (words, pieces):
        tokenizer.normalizer, tokenizer.pre_tokenizer = cuts.normalizer, cuts.pre_tokenizer
    words.train_from_iterator(texts(), trainers.WordLevelTrainer(vocab_size=2**31 - 1, show_progress=progress))
    # Left to itself the trainer numbers characters as its hash table has them, and numbers decide between equals.
    first, inside = Counter[str](), Counter[str]()
    for word in words.get_vocab():
        first[word[0]] += 1
        inside.update(set(word[1:]))
    frequent = sorted((first + inside).items(), key=lambda item: (-item[1], item[0]))
    alphabet = sorted(character for character, _ in frequent[: min(1000, max(size // 16, 64))])
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*SPECIAL, *(f"##{character}" for character in alphabet if inside[character])],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=progress,
    )
    pieces.train_from_iterator(texts(), trainer)
    return dict(sorted(pieces.get_vocab().items(), key=lambda item: item[1]))
