"""Training: presets, the run, callbacks for the stock Trainer, and what keeps a base's knowledge.

The names are in ``__init__.pyi``; a module is loaded when one of its is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
