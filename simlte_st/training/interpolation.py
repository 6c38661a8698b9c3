"""Between base and adapted model: weights on the straight line that joins them, and how far along it to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.bars import with_progress_bar
from simlte_st.compat import forget_model_card_text, view_budget
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.views import View
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.evaluation.split_half import split_half_views
from simlte_st.evaluation.structure import StructureResult, structure_agreement
from simlte_st.evaluation.verdict import Difference

# Settings of an encoder that say where it comes from or how it runs, not what it computes. The Trainer of transformers
# 5.0 sets use_cache, and every Trainer the tokenizer's special tokens where the configuration has others or none.
_SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id")
_IGNORED = ("architectures", "transformers_version", "dtype", "torch_dtype", "use_cache", *_SPECIAL)


def interpolate(
    base: SentenceTransformer, adapted: SentenceTransformer, weight: float, *, in_place: bool = False
) -> SentenceTransformer:
    """Make the model whose weights are ``(1 - weight) * base + weight * adapted``.

    This is the linear merge of two models (WiSE-FT). ``SentenceTransformer.merge`` computes the same through mergekit,
    and is not used because mergekit would have to be installed by all for one line of arithmetic, it makes a whole new
    model for each weight that is tried, and it refuses a model whose dropout was set for training.

    Args:
        base: The model that training began with.
        adapted: What it became. The result has its settings (prompts, length, ...) and the types of its weights.
        weight: From 0, the base, to 1, the adapted model; both ends exactly.
        in_place: Give ``adapted`` itself the weights, instead of a copy of it.

    Returns:
        The model, in evaluation mode. Weights that are tied stay tied. Unless asked to, it changes neither of the two.

    Raises:
        ConfigurationError: ``weight`` is not in [0, 1].
        ModelError: The two are not the same model with other weights; see :func:`check_interpolable`.

    References:
        Robust fine-tuning of zero-shot models (WiSE-FT), Wortsman et al., 2022, section 3
    """
    _check_weights([weight])
    check_interpolable(base, adapted)
    model = adapted if in_place else _copy(adapted)
    _Line(base, adapted, model).go_to(weight)
    return model.eval()


@dataclass(frozen=True, slots=True)
class InterpolationChoice:
    """What :func:`choose_interpolation` found.

    Attributes:
        weight: The weight chosen.
        scores: Structure at each weight tried, ascending: the curve.
        model: The model at the weight chosen.
    """

    weight: float
    scores: dict[float, StructureResult]
    model: SentenceTransformer

    def to_dict(self) -> dict[str, Any]:
        """Give weight and curve as JSON values."""
        return {
            "weight": self.weight,
            "curve": [{"weight": weight, **score.metrics()} for weight, score in self.scores.items()],
        }

    def summary(self) -> str:
        """Say it in a sentence, or two where the base was chosen."""
        curve = ", ".join(f"{100 * score.agreement:.1f} at {weight:g}" for weight, score in self.scores.items())
        documents = next(iter(self.scores.values())).documents
        return (
            f"Between the base (0) and the adapted model (1), {self.weight:g} was chosen by the neighbours on which "
            f"both halves of {documents} documents agree, in percent: {curve}."
            + ("" if self.weight else " No gain over the base was clear, so the weights are the base's again.")
        )


def choose_interpolation(
    base: SentenceTransformer,
    adapted: SentenceTransformer,
    documents: Any,
    *,
    weights: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    view: View | None = None,
    segmenter: str | Segmenter = "punkt",
    batch_size: int = 32,
    seed: int = 0,
    in_place: bool = False,
    progress: bool = False,
) -> InterpolationChoice:
    """Choose a weight for :func:`interpolate` without labels, by the structure of held-out documents.

    The documents are split once and all weights are measured on the same halves. Chosen is by
    :func:`smallest_within_noise`.

    Args:
        base: The model that training began with.
        adapted: What it became.
        documents: Documents that it was not trained on, in any form that :func:`~simlte_st.data.read_documents` takes.
            Do not use them again to measure what was gained: the choice
            has seen them.
        weights: The weights to try, each in [0, 1].
        view: How to split; the papers' DocSplit if not given.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        batch_size: Texts encoded at once.
        seed: Decides the split and the intervals. The global random numbers are not touched.
        in_place: Give ``adapted`` itself the weights that are chosen, instead of a copy of it; it is as before if
            something is raised. Either way there is no more than one model beside the two.
        progress: Show a progress bar.

    Returns:
        The weight, the curve, and the model, in evaluation mode.

    Raises:
        ConfigurationError: There are no weights, or one is not in [0, 1].
        ModelError: The two are not the same model with other weights; see :func:`check_interpolable`.
        DataError: Fewer than two documents can be split.
    """
    tried = _check_weights(weights)
    check_interpolable(base, adapted)
    budgets = [budget for budget in map(view_budget, (base, adapted)) if budget is not None]
    anchors, positives = split_half_views(
        documents, view=view, segmenter=segmenter, budget=min(budgets, default=None), seed=seed
    )
    model = adapted if in_place else _copy(adapted)
    line = _Line(base, adapted, model)
    scores: dict[float, StructureResult] = {}
    try:
        for weight in with_progress_bar(
            tried, "Trying weights between base and trained model", unit="model", shown=progress
        ):
            line.go_to(weight)
            embeddings = encode_texts(model, anchors + positives, batch_size=batch_size)
            scores[weight] = structure_agreement(embeddings[: len(anchors)], embeddings[len(anchors) :], seed=seed)
        chosen = smallest_within_noise(scores)
        line.go_to(chosen)
    except BaseException:
        line.go_to(1.0)
        raise
    return InterpolationChoice(chosen, scores, model)


def smallest_within_noise(scores: Mapping[float, StructureResult]) -> float:
    """Choose the smallest weight that is not clearly worse than the best: that keeps most of what the base knows.

    Clearly worse is a weight whose mean loss of agreement against the best, document by document, has a 95% bootstrap
    interval above 0. So the base (weight 0) is given up only for a gain that the run would call one. The rule leans to
    the base on purpose: where the measure does not tell two weights apart, the larger has only moved further away. (The
    one-standard-error rule of Breiman et al., 1984, with a paired difference and a stricter bound.)

    Args:
        scores: Results by weight, of the same documents in the same order.

    Returns:
        One of the weights.
    """
    best = max(scores, key=lambda weight: (scores[weight].agreement, -weight))

    def clearly_worse(weight: float) -> bool:
        return Difference.of(scores[weight].scores, scores[best].scores).sign > 0

    return next(weight for weight in sorted(scores) if weight == best or not clearly_worse(weight))


def check_interpolable(base: SentenceTransformer, adapted: SentenceTransformer) -> None:
    """Check that two models are one model with different weights: worth calling before training, too.

    Compared are the modules and their settings, the encoder's configuration but for its origin and dropout, the
    vocabulary, and names, shapes, integer values and ties of the weights.

    Raises:
        ModelError: Something differs, or a model has adapters that were not merged.
    """
    for model in (base, adapted):
        if any(getattr(module, "peft_config", None) for module in model.modules()):
            raise ModelError("A model has adapters: merge them first, with merge_lora(model).")
    ours, theirs = _describe(base), _describe(adapted)
    different = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if different:
        name = different[0]
        raise ModelError(
            f"Base and adapted model differ in more than the values of their weights: {name} is "
            f"{_shorten(ours.get(name))} and {_shorten(theirs.get(name))}. Interpolate with the model that training "
            "began with, pooling included."
        )


def _describe(model: SentenceTransformer) -> dict[str, Any]:
    """Everything that must be equal."""
    found: dict[str, Any] = {}
    for position, module in model.named_children():
        found[f"the kind of module {position}"] = type(module).__name__
        settings = getattr(module, "get_config_dict", None)
        found[f"the configuration of module {position}"] = settings() if settings is not None else None
    encoder = model.transformers_model
    if encoder is not None:
        for key, value in encoder.config.to_dict().items():
            if key not in _IGNORED and not key.startswith("_") and "dropout" not in key:
                found[f"the encoder's {key}"] = value
    vocabulary = getattr(getattr(model, "tokenizer", None), "get_vocab", None)
    found["the vocabulary"] = vocabulary() if vocabulary is not None else None
    first_names: dict[int, str] = {}
    for name, value in model.state_dict(keep_vars=True).items():
        found[f"the shape of {name}"] = tuple(value.shape)
        found[f"the weight that {name} is tied to"] = first_names.setdefault(id(value), name)
        if not value.is_floating_point():
            found[f"the value of {name}"] = value.tolist()
    return found


def _shorten(value: Any) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _check_weights(weights: Sequence[float]) -> list[float]:
    if not weights:
        raise ConfigurationError("There are no weights to try.")
    for weight in weights:
        if not 0 <= weight <= 1:  # nor NaN
            raise ConfigurationError(f"weight={weight}: from 0, the base, to 1, the adapted model.")
    return sorted({float(weight) for weight in weights})


def _copy(model: SentenceTransformer) -> SentenceTransformer:
    """Copy a model without its card: that tells of a training which the copy is not, or not only, the result of."""
    card = model.model_card_data_class(local_files_only=True)
    copied = deepcopy(model, {id(model.model_card_data): card})
    card.register_model(copied)
    forget_model_card_text(copied)
    copied.zero_grad(set_to_none=True)
    return copied.eval()


class _Line:
    """The weights between two models, given to a third, which may be the second."""

    def __init__(self, base: SentenceTransformer, adapted: SentenceTransformer, moved: SentenceTransformer) -> None:
        starts, ends = base.state_dict(), adapted.state_dict()
        self._weights: list[tuple[Tensor, Tensor, Tensor]] = []
        seen: set[int] = set()
        for name, target in moved.state_dict(keep_vars=True).items():
            end = ends[name]
            start = starts[name].to(end.device)
            if id(target) in seen or torch.equal(start.to(end.dtype), end):
                continue  # tied to one that is here already, or the same at both ends
            seen.add(id(target))
            self._weights.append((target, start, end.clone() if moved is adapted else end))

    def go_to(self, weight: float) -> None:
        """Set the weights: 0 gives the base's, 1 the adapted model's, to the bit."""
        with torch.no_grad():
            for target, start, end in self._weights:
                dtype = torch.promote_types(end.dtype, torch.float32)  # half precision would round twice
                target.copy_(torch.lerp(start.to(dtype), end.to(dtype), weight))
