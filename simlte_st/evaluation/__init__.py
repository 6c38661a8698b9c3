"""Evaluate models without labels (neighbours), with labels (probes) and against TF-IDF, and give a verdict.

``__init__.pyi`` lists the public names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
