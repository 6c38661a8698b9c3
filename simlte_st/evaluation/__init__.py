"""Measuring a model: neighbours without labels, probes on labelled texts, baselines of words, the verdict.

The names are in ``__init__.pyi``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
