"""Search an index on disk by text or by example documents. ``__init__.pyi`` lists the exported names."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
