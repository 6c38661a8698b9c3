"""Public names for documents, sentences and views, listed in ``data.pyi``. Each is imported on first use."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("simlte_st", __file__)
