from .callbacks import LossMetricsCallback as LossMetricsCallback
from .callbacks import LossStateCallback as LossStateCallback
from .callbacks import trainer_callbacks as trainer_callbacks
from .presets import PRESETS as PRESETS
from .presets import Preset as Preset
from .presets import get_preset as get_preset
from .result import TrainingResult as TrainingResult
