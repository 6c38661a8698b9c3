"""Low-rank adaptation (LoRA) through PEFT: the base stays frozen; what is learned is small, and merged at the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from simlte_st.compat import checkpoint_name
from simlte_st.errors import ConfigurationError, ModelError, ResumeError
from simlte_st.extras import require
from simlte_st.files import atomic_path
from simlte_st.training.callbacks import checkpoint_directory

logger = logging.getLogger(__name__)

LEARNING_RATE_FACTOR = 10.0
"""How much higher the learning rate of adapters is than that of whole weights. MiniLM at rank 16 then lowers the loss
of DocSplit as fast as without adapters; at the same learning rate it stays behind."""

ADAPTER_FILE = "lora.safetensors"
"""File in a checkpoint: the weights that learn."""

FROZEN_FILE = "frozen.safetensors"
"""File beside the checkpoints: the weights that do not, once a run."""


def add_lora(
    model: SentenceTransformer,
    rank: int,
    *,
    alpha: float | None = None,
    target_modules: Sequence[str] | None = None,
    seed: int = 0,
) -> None:
    """Freeze a model and add trainable low-rank matrices to its linear layers, in place.

    A linear layer ``W x + b`` becomes ``W x + b + alpha / rank * B A x`` with ``A``, ``(rank, in)``, and ``B``,
    ``(out, rank)``. ``B`` begins at 0, so the model begins as it was. There is no dropout on the adapters; only they
    learn (and the MLM head, which belongs to the loss).

    By default all linear layers of the encoder get adapters, because attention alone learns less (Biderman et al.,
    2024). Left out are the pooler, which sentence-transformers does not use, and the output layer of a masked language
    model. Word embeddings are no linear layer and stay as they are: an MLM head stays tied to the base's.

    Adapters want a higher learning rate than whole weights do: multiply it by :data:`LEARNING_RATE_FACTOR`.

    Args:
        model: The model to adapt. Its encoder is a Transformer in PyTorch without adapters.
        rank: Rank of the update, 1 or more.
        alpha: The update is scaled by ``alpha / rank``; twice the rank if not given (Biderman et al., 2024).
        target_modules: Names of the layers that get adapters, whole or from a dot on (``"query"``,
            ``"attention.output.dense"``); all linear layers if not given.
        seed: Decides the initial weights. The global random numbers are not touched.

    Raises:
        ConfigurationError: ``rank`` or ``alpha`` is out of its range, or a name matches no linear layer.
        ModelError: The model has no Transformer, or adapters already.
        MissingExtraError: PEFT is not installed.

    References:
        - LoRA: Low-Rank Adaptation of Large Language Models, Hu et al., 2022, Eq. 3
        - LoRA Learns Less and Forgets Less, Biderman et al., 2024: which layers, and ``alpha``
    """
    if rank < 1:
        raise ConfigurationError(f"rank={rank}: the rank of the update is at least 1.")
    if alpha is not None and alpha <= 0:
        raise ConfigurationError(f"alpha={alpha}: must be greater than 0.")
    peft = require("peft", "lora", "LoRA")
    encoder = _encoder(model)
    if has_adapters(model):
        raise ModelError("The model has adapters already: merge them first, with merge_lora(model).")
    layers = _target_layers(encoder, target_modules)
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank if alpha is None else alpha, target_modules=layers)
    model.requires_grad_(False)
    # PEFT draws the weights on the CPU and moves them then.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model.add_adapter(config)
    learn = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    total = sum(weight.numel() for weight in model.parameters())
    logger.info(
        "LoRA of rank %d on %d linear layers: %s weights learn, %.1f%% of all.",
        rank, len(layers), f"{learn:,}", 100 * learn / total,
    )  # fmt: skip


def merge_lora(model: SentenceTransformer) -> None:
    """Add the adapters to the weights and take them out, in place: a plain model again, all of whose weights can learn.

    Raises:
        ModelError: The model has no adapters, others than LoRA, or they hold values that are not finite.
        MissingExtraError: PEFT is not installed.
    """
    layer_class = require("peft.tuners.lora", "lora", "LoRA").LoraLayer
    if not has_adapters(model):
        raise ModelError("The model has no adapters to merge.")
    encoder = _encoder(model)
    adapters: dict[str, Any] = encoder.peft_config
    other = sorted({str(config.peft_type) for config in adapters.values() if str(config.peft_type.value) != "LORA"})
    if other:
        raise ModelError(f"The model has adapters of another kind than LoRA: {other}.")
    for name, layer in [(name, layer) for name, layer in encoder.named_modules() if isinstance(layer, layer_class)]:
        try:
            layer.merge(safe_merge=True)
        except ValueError as error:
            raise ModelError(f"The adapter of {name!r} holds values that are not finite: training diverged.") from error
        parent, _, attribute = name.rpartition(".")
        setattr(encoder.get_submodule(parent), attribute, layer.get_base_layer())
    encoder.delete_adapter(list(adapters))
    model.requires_grad_(True)


def has_adapters(model: nn.Module) -> bool:
    """Tell whether a model holds adapters of PEFT."""
    return any(getattr(module, "peft_config", None) for module in model.modules())


class LoraStateCallback(TrainerCallback):
    """Saves all weights of an adapted model with full precision, and restores them when a run resumes.

    The Trainer alone does not do that. It saves the adapters without the model they belong to and loads the base anew:
    what the base's checkpoint lacks (a pooler) is drawn again, a base of half precision rounds the adapters, and
    transformers 5.0 does not find the saved adapters, so that they start again at 0 with no more than a warning.

    The weights that learn go into each checkpoint, the others once into the folder of the checkpoints.

    Args:
        model: The model, after :func:`add_lora`.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        self.model = model

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Write the frozen weights, or restore all if the run begins at a checkpoint.

        Raises:
            ModelError: The Trainer could not resume: the encoder was made in memory, or loaded from a subfolder.
            ResumeError: A file of the run that is resumed is missing.
        """
        frozen_path = Path(str(args.output_dir)) / FROZEN_FILE
        if state.global_step == 0:
            _check_reloadable(_encoder(self.model))
            if state.is_world_process_zero:
                _write(frozen_path, self._weights(learn=False))
            return
        self.restore(checkpoint_directory(args, state))

    def restore(self, checkpoint: Path) -> None:
        """Take over the weights of a checkpoint.

        Raises:
            ResumeError: A file is missing, or belongs to another model.
        """
        for path, learn in ((checkpoint.parent / FROZEN_FILE, False), (checkpoint / ADAPTER_FILE, True)):
            if not path.exists():
                raise ResumeError(
                    f"{path} is missing. Resume from a checkpoint in the Trainer's output_dir that was written with "
                    "LoraStateCallback."
                )
            saved, own = load_file(path), self._weights(learn=learn)
            if {name: value.shape for name, value in saved.items()} != {name: w.shape for name, w in own.items()}:
                raise ResumeError(f"{path} belongs to another model, or to adapters of another rank.")
            with torch.no_grad():
                for name, value in saved.items():
                    own[name].copy_(value)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Write the weights that learn into the checkpoint that has just been written."""
        if state.is_world_process_zero:
            _write(checkpoint_directory(args, state) / ADAPTER_FILE, self._weights(learn=True))

    def _weights(self, *, learn: bool) -> dict[str, Tensor]:
        """Name the parameters and buffers that learn, or those that do not; one name for tied weights."""
        trained = {id(weight) for weight in self.model.parameters() if weight.requires_grad}
        named: dict[int, tuple[str, Tensor]] = {}
        for name, value in self.model.state_dict(keep_vars=True).items():
            if (id(value) in trained) is learn:
                named.setdefault(id(value), (name, value))
        return dict(named.values())


def _encoder(model: SentenceTransformer) -> PreTrainedModel:
    encoder = model.transformers_model
    if not isinstance(encoder, PreTrainedModel):
        raise ModelError(f"LoRA needs a Transformer in PyTorch; this model begins with {type(model[0]).__name__}.")
    return encoder


def _check_reloadable(encoder: PreTrainedModel) -> None:
    """Raise before hours of training what the Trainer would raise on resume: it looks for the base where it was."""
    name = checkpoint_name(encoder)
    try:
        if not name:
            raise ValueError("it was not loaded from a checkpoint")
        AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ModelError(
            "The Trainer could not resume this run, because it would not find the encoder that the adapters belong to "
            f"({name!r}): {error}. Save the model with save_pretrained, load it from there, and add the adapters then."
        ) from error


def _target_layers(encoder: PreTrainedModel, names: Sequence[str] | None) -> list[str]:
    head = encoder.get_output_embeddings()
    linear = [name for name, layer in encoder.named_modules() if isinstance(layer, nn.Linear) and layer is not head]
    if names is None:
        return [name for name in linear if "pooler" not in name.split(".")]
    for wanted in names:
        if not any(_matches(name, wanted) for name in linear):
            known = sorted({name.rsplit(".", 1)[-1] for name in linear})
            raise ConfigurationError(f"target_modules: no linear layer is called {wanted!r}; there are {known}.")
    return [name for name in linear if any(_matches(name, wanted) for wanted in names)]


def _matches(name: str, wanted: str) -> bool:
    return name == wanted or name.endswith(f".{wanted}")


def _write(path: Path, weights: dict[str, Tensor]) -> None:
    with atomic_path(path) as temporary:
        save_file({name: value.detach().cpu().contiguous() for name, value in weights.items()}, temporary)
