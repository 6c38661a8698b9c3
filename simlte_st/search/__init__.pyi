from .add import IndexReport as IndexReport
from .hits import Hit as Hit
from .index import Index as Index
