from .evaluation.compare import compare as compare
from .exploration.explore import explore as explore
from .losses.cached_multiple_negatives_ranking_mlm import (
    CachedMultipleNegativesRankingMLMLoss as CachedMultipleNegativesRankingMLMLoss,
)
from .losses.multiple_negatives_ranking_mlm import MultipleNegativesRankingMLMLoss as MultipleNegativesRankingMLMLoss
from .models.distillation import to_static as to_static
from .models.encode import encode_documents as encode_documents
from .models.export import load_onnx as load_onnx
from .models.sentence_transformers import SentenceTransformer as SentenceTransformer
from .reading.documents import read_documents as read_documents
from .search.index import Index as Index
from .training.callbacks import trainer_callbacks as trainer_callbacks
from .training.train import train as train
from .views.transform import DocSplitTransform as DocSplitTransform
from .views.views import DocSplit as DocSplit

__version__: str
