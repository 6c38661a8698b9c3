"""Long-document embeddings learned without labels: DocSplit / SimLTE for sentence-transformers.

``__init__.pyi`` lists the public names. Each is imported on first use, so that ``import simlte_st`` and
``simlte --help`` do not wait for torch.
"""

from importlib.metadata import version

import lazy_loader

from simlte_st.models.registration import register

__version__ = version("simlte-st")
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

register()
