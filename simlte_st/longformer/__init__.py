"""The Longformer, exact and at the price of its real tokens. ``import simlte_st`` registers it with transformers.

The names are in ``__init__.pyi``; a module is loaded when one of its is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
