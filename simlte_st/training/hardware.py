"""What the machine can do."""

from __future__ import annotations

import torch


def bf16_available() -> bool:
    """Tell whether bfloat16 runs in hardware here: on the GPU, or on a CPU with AVX512-BF16 or AMX."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # Not in every torch that we allow; without it the answer is no, which is only slower.
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def has_accelerator() -> bool:
    """Tell whether training will not run on the CPU."""
    return torch.cuda.is_available() or torch.backends.mps.is_available()
