from .configuration import SimlteChunkMeanConfig as SimlteChunkMeanConfig
from .convert import to_chunk_mean as to_chunk_mean
from .modeling import SimlteChunkMeanModel as SimlteChunkMeanModel
