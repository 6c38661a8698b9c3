"""An exact Longformer whose cost scales with the number of non-padding tokens.

``import simlte_st`` registers the model with transformers.

``__init__.pyi`` lists the public names; each module is imported on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
