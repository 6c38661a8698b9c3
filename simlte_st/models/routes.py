"""Models with modules of their own for queries and documents (``Router``): each side as a model without."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router

from simlte_st.compat import modules_of_route
from simlte_st.errors import ModelError


def side_of(model: SentenceTransformer, task: str | None, name: str = "given") -> SentenceTransformer:
    """Return a model as it reads texts of a task ("query", "document"), same weights; itself without Router."""
    modules = list(model)
    if not any(isinstance(module, Router) for module in modules):
        return model
    while (router := next((module for module in modules if isinstance(module, Router)), None)) is not None:
        at = modules.index(router)
        try:
            modules[at : at + 1] = modules_of_route(router, task)
        except ValueError as error:
            raise ModelError(f"The model {name!r} has no modules for texts of the task {task!r}: {error}") from None
    side = SentenceTransformer(
        modules=modules,
        device=str(model.device),
        prompts={name: prompt or "" for name, prompt in model.prompts.items()},
        default_prompt_name=model.default_prompt_name,
        similarity_fn_name=model.similarity_fn_name,
        truncate_dim=model.truncate_dim,
    )
    return side.train(model.training)
