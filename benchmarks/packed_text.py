"""Whole documents as sequences of one length, masked for a language model to learn from: nothing is padded.

The documents follow each other, with [SEP] between two, and are cut wherever a sequence is full; each sequence is put
between [CLS] and [SEP]. No token is lost but those that do not fill the last sequence. Where a document ends at the end
of a sequence, its [SEP] opens the next one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from simlte_st.data.token_cache import tokenize_corpus
from simlte_st.data.token_corpus import TokenCorpus
from tokenizers import Tokenizer, models, trainers
from torch.utils.data import Dataset
from transformers import BertTokenizer, DataCollatorForLanguageModeling, PreTrainedTokenizerBase

from simlte_st.data.document import Document
from simlte_st.data.epochs import EpochClock
from simlte_st.errors import ConfigurationError, EmptyCorpusError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class Uncut:
    """A segmenter that cuts nothing: where sentences end is no matter here."""

    fingerprint = "uncut"

    def __call__(self, text: str, /) -> list[str]:
        """Give the text as it is."""
        return [text]


def tokenize_whole(
    documents: Iterable[Document],
    tokenizer: PreTrainedTokenizerBase,
    directory: str | os.PathLike[str],
    *,
    progress: bool = False,
) -> TokenCorpus:
    """Tokenize whole documents, or find that done: see :func:`~simlte_st.data.token_cache.tokenize_corpus`."""
    return tokenize_corpus(documents, tokenizer, segmenter=Uncut(), directory=directory, progress=progress)


class PackedText(Dataset[dict[str, Any]]):
    """Sequences of one length out of a corpus of token ids, cut as they are asked for.

    Args:
        corpus: The documents.
        rows: Which of them, in this order.
        length: Tokens of a sequence, [CLS] and [SEP] included.
        tokenizer: Has the ids of [CLS] and [SEP].

    Attributes:
        tokens: Tokens of the documents that stand in the sequences.
        left_over: Tokens at the end of the last document that do not fill a sequence.

    Raises:
        ConfigurationError: ``length`` leaves no room for text.
        EmptyCorpusError: The documents do not fill one sequence.
    """

    def __init__(
        self, corpus: TokenCorpus, rows: NDArray[np.int64], length: int, tokenizer: PreTrainedTokenizerBase
    ) -> None:
        if length < 3:
            raise ConfigurationError(
                f"A sequence of {length} tokens has no room between [CLS] and [SEP]: use 3 or more."
            )
        sizes = corpus.sizes[rows]
        self._corpus = corpus
        self._rows = rows[sizes > 0]
        sizes = sizes[sizes > 0]
        self._length = length
        self._content = length - 2
        self._ends = (int(tokenizer.cls_token_id), int(tokenizer.sep_token_id))
        # Places in the stream of all tokens, where each document but the last has a [SEP] behind it.
        self._starts = np.concatenate([[0], np.cumsum(sizes + 1)])
        self._sequences = max(0, int(self._starts[-1]) - 1) // self._content
        if not self._sequences:
            raise EmptyCorpusError(
                f"{len(rows)} documents of {sizes.sum()} tokens in all do not fill one sequence of {length} tokens."
            )
        end = self._sequences * self._content
        separators = int((self._starts[1:-1] - 1 >= end).sum())
        self.left_over = int(self._starts[-1]) - 1 - end - separators
        self.tokens = int(sizes.sum()) - self.left_over

    def __len__(self) -> int:
        return self._sequences

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Give a sequence: its number and its token ids, ``(length,)``, int64."""
        if not 0 <= index < len(self):
            raise IndexError(f"sequence {index} of {len(self)}")
        first_token, separator = self._ends
        sequence = np.full(self._length, separator, dtype=np.int64)
        sequence[0] = first_token
        begin = index * self._content
        end = begin + self._content
        document = int(np.searchsorted(self._starts, begin, side="right")) - 1
        while document < len(self._rows) and self._starts[document] < end:
            start = int(self._starts[document])
            skipped = max(0, begin - start)
            ids = self._corpus[self._rows[document]].ids[skipped : end - start]
            place = 1 + start + skipped - begin
            sequence[place : place + len(ids)] = ids
            document += 1
        return {"row": index, "input_ids": sequence}


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
        state = np.random.SeedSequence([self._seed, epoch, *(int(row["row"]) for row in rows)])
        self._stock.generator = torch.Generator().manual_seed(int(state.generate_state(1, np.uint64)[0]))
        ids = torch.from_numpy(np.stack([row["input_ids"] for row in rows]))
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
