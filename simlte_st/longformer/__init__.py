"""The Longformer, exact and at the price of its real tokens. Importing this registers it with transformers."""

from __future__ import annotations

from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from simlte_st.longformer.configuration import SimlteLongformerConfig
from simlte_st.longformer.convert import convert_to_longformer
from simlte_st.longformer.modeling import SimlteLongformerForMaskedLM, SimlteLongformerModel

AutoConfig.register(SimlteLongformerConfig.model_type, SimlteLongformerConfig, exist_ok=True)
AutoModel.register(SimlteLongformerConfig, SimlteLongformerModel, exist_ok=True)
AutoModelForMaskedLM.register(SimlteLongformerConfig, SimlteLongformerForMaskedLM, exist_ok=True)

__all__ = ["SimlteLongformerConfig", "SimlteLongformerForMaskedLM", "SimlteLongformerModel", "convert_to_longformer"]
