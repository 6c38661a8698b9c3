from .add import IndexReport as IndexReport
from .hits import Hit as Hit
from .hits import Hits as Hits
from .index import Index as Index
