from .explore import ExploreReport as ExploreReport
from .explore import explore as explore
