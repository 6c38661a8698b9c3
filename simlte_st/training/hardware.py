"""What the machine can do."""

from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer

from simlte_st.chunk_mean.modeling import SimlteChunkMeanModel
from simlte_st.compat import encoder_of


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


def compile_encoder(model: SentenceTransformer, backend: str = "inductor") -> None:
    """Let ``torch.compile`` make kernels of the encoder, in place, when it is first called; lengths may vary.

    The encoder stays the module that it was: its weights keep their names, and it is saved as ever. Where a model reads
    in chunks, what reads a chunk is compiled. Chunk plans and packing are not for the compiler.

    Args:
        model: The model.
        backend: The compiler; ``"inductor"`` needs a C++ compiler on CPUs and Triton on GPUs.
    """
    encoder = encoder_of(model)
    if isinstance(encoder, SimlteChunkMeanModel):
        encoder = encoder.encoder
    # Not encoder.compile(): sentence-transformers calls forward itself, past what that replaces.
    encoder.forward = torch.compile(encoder.forward, backend=backend, dynamic=True)
