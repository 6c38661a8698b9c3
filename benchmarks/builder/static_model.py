"""Build ``simlte-static``: distil all-MiniLM-L6-v2 to one vector per token, then train it by DocSplit.

Distillation weights tokens by their rank in the vocabulary. DocSplit on whole articles then learns how much each token
says about a document. No labels are used.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from simlte_st.data import DocSplitTransform, Document
from simlte_st.files import atomic_path, check_free, write_json
from simlte_st.models.distillation import SIF, distil_base
from simlte_st.models.loading import load_model
from simlte_st.models.names import OWN_STATIC, base_of_own_models
from simlte_st.models.shipped import BUILD_FILE
from simlte_st.models.static import TOKENIZER, save_for_model2vec

DIMENSION = 256
STEPS = 300
BATCH = 256
LEARNING_RATE = 1e-2
SCALE = 2.0
"""Inverse of the temperature."""

SHARE = 0.5
"""Weight of the trained vectors in their mean with the distilled ones (Wortsman et al., 2022, "Robust fine-tuning").

The mean is better at sentence similarity than either. Further training on a user's documents reaches the same quality
from the mean as from the distilled vectors, but up to 2 points less from the trained ones.
"""


def build_static(
    documents: Iterable[Document], output: Path, *, max_steps: int | None = None, seed: int = 0, overwrite: bool = False
) -> dict[str, Any]:
    """Build the static model that ships with the package and return a record of the run."""
    check_free(output, overwrite)
    steps = STEPS if max_steps is None else max_steps
    began = time.perf_counter()
    base = load_model(base_of_own_models(), dtype=torch.float32, device="cpu")
    model = distil_base(base, dimension=DIMENSION, progress=False)
    documents, digest = list(documents), hashlib.sha256()
    for document in documents:
        digest.update(f"{document.id}\0{document.text}\0".encode())
    distilling = time.perf_counter() - began
    if steps:
        train_by_docsplit(model, documents, steps, seed)
    build = {
        "name": OWN_STATIC,
        "documents": len(documents),
        "sha256": digest.hexdigest(),
        "steps": steps,
        "distilling_seconds": distilling,
        "training_seconds": time.perf_counter() - began - distilling,
        "threads": torch.get_num_threads(),
        "seed": seed,
        "recipe": {
            "dimension": DIMENSION, "sif": SIF, "batch_size": BATCH, "learning_rate": LEARNING_RATE, "scale": SCALE,
            "share": SHARE,
        },
    }  # fmt: skip
    with atomic_path(output) as path:
        path.mkdir()
        save_for_model2vec(path, model[0].embedding.weight.detach().numpy(), "int8")  # type: ignore[union-attr]
        model.tokenizer.save(str(path / TOKENIZER))
        write_json(path / BUILD_FILE, build)
    return build


def train_by_docsplit(model: SentenceTransformer, documents: list[Document], steps: int, seed: int) -> None:
    """Train a static model in place, on whole documents."""
    views = DocSplitTransform(seed=seed)
    weights, unknown = model[0].embedding.weight, model.tokenizer.token_to_id("[UNK]")  # type: ignore[union-attr]
    start = weights.detach().clone()
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=BATCH,
            dataloader_drop_last=True,
            learning_rate=LEARNING_RATE,
            weight_decay=0.0,
            seed=seed,
            bf16=False,
            use_cpu=True,
            logging_steps=max(1, steps // 10),
            save_strategy="no",
            report_to="none",
        )
        trainer = SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=views.attach(documents, progress=False),
            loss=MultipleNegativesRankingLoss(
                model, scale=SCALE, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
            ),
            callbacks=[views.callback],
        )
        trainer.train()
    with torch.no_grad():
        weights.copy_(start + SHARE * (weights - start))
        if unknown is not None:
            weights[unknown] = 0  # as before training, because model2vec drops unknown tokens
