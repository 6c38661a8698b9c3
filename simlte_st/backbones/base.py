"""What every backbone has; how it computes, and how a model is converted to it, is in a room of its own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from simlte_st.config import Config

if TYPE_CHECKING:  # the command line reads the settings of backbones, and shall not wait for torch
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True, kw_only=True)
class Backbone(Config):
    """An architecture of encoders, with the settings of a conversion to it. This class describes the stock ones.

    An architecture of this package that reads long documents has a subclass in its room and a line in
    :data:`~simlte_st.backbones.registry.BACKBONES`. The room's ``modeling`` registers it with transformers, with a
    configuration whose ``usable_length`` is the number of tokens that it reads; the room's ``convert`` converts to it.
    """

    model_type: ClassVar[str] = ""  # its name in transformers
    replaces: ClassVar[tuple[str, ...]] = ()  # stock architectures that it computes as well, and faster
    # Whether it wraps another encoder, ``encoder``, and pools by itself: the state of its first token is the embedding
    # of the document, and no other pooling can be chosen once it is made.
    pooled_inside: ClassVar[bool] = False
    reading: ClassVar[str] = ""  # how it reads a number of tokens, as a format

    @classmethod
    def register(cls) -> None:
        """Register the architecture with transformers' Auto classes."""
        if cls.model_type:
            import_module(f"{_room(cls)}.modeling")

    def convert(self, model: SentenceTransformer, path: Path, max_length: int | None, tuned: bool) -> None:
        """Write a model, which is not changed, as one of this architecture.

        Args:
            model: The model to convert.
            path: The folder to write, which exists and is empty.
            max_length: Tokens that the new model reads, special tokens included; None for the architecture's default,
                or for what a model of an architecture that is replaced reads.
            tuned: Whether the model is a sentence encoder, as opposed to a bare language model.
        """
        import_module(f"{_room(type(self))}.convert").convert(self, model, path, max_length, tuned)


def _room(backbone: type[Backbone]) -> str:
    return backbone.__module__.rpartition(".")[0]
