from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from shipped_support import BERT, LONGFORMER, ship

from simlte_st.errors import ModelError
from simlte_st.models import shipped
from simlte_st.models.difference import DIFFERENCE_FILE, add_difference
from simlte_st.models.shipped import untrained


@pytest.mark.usefixtures("weights")
def test_a_difference_of_another_model(base: Path, tmp_path: Path) -> None:
    ship(LONGFORMER, base)
    model, path = untrained(BERT, base), shipped.FOLDER / LONGFORMER / DIFFERENCE_FILE
    before = {key: value.clone() for key, value in model.state_dict().items()}
    for keep in (lambda key: True, lambda key: not key.endswith("layer.0.output.dense.weight.left")):
        factors = {key: value for key, value in load_file(path).items() if "global" not in key and keep(key)}
        factors["encoder.layer.1.output.dense.weight.left"] = torch.ones(5, 2, dtype=torch.float16)
        save_file(factors, tmp_path / "other")
        with pytest.raises(ModelError, match=r"other does not fit encoder\.layer\..*: it is another's"):
            add_difference(model, tmp_path / "other")
    path.write_bytes(path.read_bytes()[:-100])
    for damaged in (path, tmp_path / "none"):
        with pytest.raises(ModelError, match=r"cannot be read: .* Install simlte-st again"):
            add_difference(model, damaged)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
