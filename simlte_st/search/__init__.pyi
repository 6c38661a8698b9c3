from .add import IndexReport as IndexReport
from .config import AddConfig as AddConfig
from .config import LinkEachConfig as LinkEachConfig
from .config import SearchConfig as SearchConfig
from .hits import Hit as Hit
from .hits import Hits as Hits
from .index import Index as Index
