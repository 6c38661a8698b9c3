"""Long documents through short encoders: the mean of chunk embeddings. ``import simlte_st`` registers the architecture.

The names are in ``__init__.pyi``; a module is loaded when one of its is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
