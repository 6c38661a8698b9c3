from __future__ import annotations

from evaluation_support import labelled_texts, tiny_model_for_evaluation  # noqa: F401
