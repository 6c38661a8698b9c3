from .adding import IndexReport as IndexReport
from .calibration import Calibration as Calibration
from .hits import Hit as Hit
from .hits import Hits as Hits
from .index import Index as Index
