"""Train a rival: the same base, documents and budget for all, and a record of what it cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.base.modules import Transformer
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from transformers import PreTrainedModel

from benchmarks.rivals.job import RIVAL_FILE, RivalJob, RivalRecord
from benchmarks.rivals.objectives import get_rival
from simlte_st.errors import ConfigurationError
from simlte_st.files import atomic_path, check_free, write_json
from simlte_st.training.config import Preset, get_preset

CHEAP: dict[str, Any] = {"batch_size": 32, "warmup": 0.1, "mlm_weight": 0.0, "dropout": 0.0}
CONTRASTIVE = get_preset("docsplit-bert").changed(**CHEAP)
"""The papers' objective for a base that is a sentence encoder already: without MLM and dropout."""


def train_rival(
    name: str,
    documents: Any,
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    steps: int,
    batch_size: int,
    max_view_length: int | None,
    preset: Preset,
    seed: int = 0,
    bf16: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> RivalRecord:
    """Train one of :data:`~benchmarks.rivals.RIVALS` from a base, on a budget that is the same for all.

    The budget is ``steps`` batches of ``batch_size`` documents, of which at most ``max_view_length`` tokens are read as
    one text, with the same optimizer and learning rate. What a document costs in a step differs, and so do the tokens
    that an objective really reads (SimCSE reads sentences, TSDAE what is left of a text): the record has both, with the
    seconds. No document is held out.
    """
    rival = get_rival(name)
    if steps < 1:
        raise ConfigurationError(f"steps={steps}: at least one step is needed.")
    output = Path(output)
    check_free(output, overwrite)
    settings = preset.changed(batch_size=batch_size, max_view_length=max_view_length).changed(**rival.settings)
    with atomic_path(output) as path:
        job = RivalJob(
            documents=documents,
            base=base,
            path=path,
            preset=settings,
            steps=steps,
            seed=seed,
            bf16=bf16,
            progress=progress,
        )
        with count_tokens() as tokens:
            outcome = rival.train(job)
        record = RivalRecord(
            rival=name,
            title=rival.title,
            output=output,
            base=os.fspath(base),
            seed=seed,
            steps=steps,
            batch_size=batch_size,
            max_view_length=max_view_length,
            dtype="bfloat16" if bf16 else "float32",
            preset=settings,
            documents=outcome.documents,
            passes=rival.passes,
            encoder_tokens=tokens.encoder,
            decoder_tokens=tokens.decoder,
            seconds=outcome.seconds,
            log=outcome.log,
        )
        write_json(path / RIVAL_FILE, record.to_dict())
    return record


class TokenCount:
    """Tokens that models in training mode are given, special tokens counted, padding not.

    A token that passes twice counts twice: both views, a pass over masked copies, the passes of gradient caching.
    """

    def __init__(self) -> None:
        self._encoder: Tensor | int = 0
        self._decoder: Tensor | int = 0
        self._words: dict[nn.Module, int] = {}  # word embeddings of decoders, and what pads there

    @property
    def encoder(self) -> int:
        """Tokens that encoders were given."""
        return int(self._encoder)

    @property
    def decoder(self) -> int:
        """Tokens that decoders were given."""
        return int(self._decoder)

    def _see(self, module: nn.Module, inputs: Any) -> None:
        # Sums stay where they are until somebody asks: a number would make the accelerator wait at each step.
        if isinstance(module, Transformer):
            if module.training:
                features = inputs[0]
                mask = features.get("attention_mask")  # flattened inputs have none, and no padding either
                self._encoder += features["input_ids"].numel() if mask is None else mask.sum()
        elif isinstance(module, PreTrainedModel):
            # Its inputs have names, which this hook is not told; those of its word embeddings do not.
            if getattr(module.config, "is_decoder", False):
                padding = getattr(module.config, "pad_token_id", None)
                self._words[module.get_input_embeddings()] = -1 if padding is None else padding
        elif module.training and module in self._words:
            self._decoder += torch.sum(inputs[0] != self._words[module])


@contextmanager
def count_tokens() -> Iterator[TokenCount]:
    """Count the tokens of all SentenceTransformers, and decoders, that are trained here while the block runs."""
    count = TokenCount()
    handle = register_module_forward_pre_hook(count._see)
    try:
        yield count
    finally:
        handle.remove()
