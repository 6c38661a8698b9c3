"""Divergence: a run stops when its loss or its weights are not finite, before a model is saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import nn
from torch.nn import functional
from transformers import TrainerCallback, TrainerState

from simlte_st.errors import TrainingDiverged
from simlte_st.prompts import document_prompt

REMEDY = "Use a lower learning rate (learning_rate=), a longer warm-up (warmup=), or float32 (bf16=False)."


class DivergenceCallback(TrainerCallback):
    """Stops the Trainer when the loss of a batch, or a weight at a checkpoint, is not finite.

    The Trainer by itself leaves such losses out of its log, and saves the weights at the end. Add it before
    ``CompleteCallback``: then the newest complete checkpoint is the last good one.
    """

    def __init__(self, model: nn.Module, loss: nn.Module, documents: Callable[[int], Sequence[str]]) -> None:
        self.model, self.loss, self.documents = model, loss, documents
        self._step = 0

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Begin to check the loss."""
        self.loss.register_forward_hook(self._check)

    def on_step_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Note the step."""
        self._step = state.global_step

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Check the weights of the checkpoint that has just been written."""
        check_weights(self.model, f"after step {state.global_step}")

    def _check(self, module: nn.Module, inputs: Any, result: Any) -> None:
        terms = result if isinstance(result, dict) else {"loss": result}
        bad = {name: float(term.detach()) for name, term in terms.items() if not torch.isfinite(term).all()}
        if bad:
            values = ", ".join(f"{name} is {value}" for name, value in bad.items())
            ids = list(self.documents(self._step))
            shown = ", ".join(map(repr, ids[:5])) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
            raise TrainingDiverged(
                f"Training diverged in step {self._step + 1}: {values}. The batch: {shown}. No model was saved. "
                + REMEDY,
                ids,
            )


def check_embeddings(model: SentenceTransformer, texts: Sequence[str]) -> None:
    """Check that the embeddings of a trained model are finite and not all the same."""
    prompt = document_prompt(model)
    rows = model.encode(list(texts), prompt=prompt, show_progress_bar=False, convert_to_tensor=True).float()
    unit = functional.normalize(rows, dim=1)
    if not torch.isfinite(rows).all():
        what = "numbers in its embeddings are not finite"
    elif len(rows) > 1 and (unit - unit[:1]).abs().max() < 1e-6:
        what = f"its embeddings of {len(rows)} documents are all the same"
    else:
        return
    raise TrainingDiverged(f"Training diverged: at the end, {what}. No model was saved. " + REMEDY)


def check_weights(model: nn.Module, when: str) -> None:
    """Check that all weights of a model are finite."""
    bad = [name for name, weight in model.state_dict().items() if not torch.isfinite(weight).all()]
    if bad:
        raise TrainingDiverged(
            f"Training diverged: {when}, {len(bad)} of the model's tensors are not finite ({bad[0]}, ...). No model "
            "was saved. " + REMEDY
        )
