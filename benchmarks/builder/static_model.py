"""How ``simlte-static`` is made: all-MiniLM-L6-v2, distilled to a vector for each token, and trained by DocSplit.

The distilled model's tokens weigh as their ranks in the vocabulary say. DocSplit on whole articles, with one half of
the sentences to find the other by, learns from text what a token says of a document. No labels.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from benchmarks.builder.account import LIMITS_TITLE, RESULTS_TITLE, wrapped
from simlte_st.data import DocSplitTransform
from simlte_st.data.document import Document
from simlte_st.files import atomic_path, check_free, write_json
from simlte_st.models.base import load_model
from simlte_st.models.config import StaticConfig
from simlte_st.models.distillation import SIF, distilled
from simlte_st.models.model2vec import TOKENIZER, save_compressed
from simlte_st.models.names import HUB_BASE, OWN_STATIC, base_of_own_models
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE

DIMENSION = 256
STEPS = 300
BATCH = 256
LEARNING_RATE = 1e-2
SCALE = 2.0
"""The inverse of the temperature."""

SHARE = 0.5
"""How much of what training changed is kept (Wortsman et al., "Robust fine-tuning of zero-shot models", 2022).

Between what is distilled and what is trained, similar sentences are found better than by either, and training on one's
own documents ends as high as from the distilled one; from the trained one it ends up to 2 points lower.
"""


@dataclass(frozen=True)
class StaticBuild:
    """What was done.

    Attributes:
        name: The model.
        documents: Documents read.
        sha256: Of their ids and texts, in their order.
        steps: Optimizer steps.
        distilling_seconds: Time of the distillation.
        training_seconds: Time of the training.
        threads: Of the CPU.
        seed: Decided everything that was drawn.
        recipe: The settings of the method, by name.
    """

    name: str
    documents: int
    sha256: str
    steps: int
    distilling_seconds: float
    training_seconds: float
    threads: int
    seed: int
    recipe: Mapping[str, Any]

    def summary(self) -> str:
        """Return a summary of one line."""
        seconds = self.distilling_seconds + self.training_seconds
        return f"{self.name}: {self.documents:,} documents, {self.steps:,} steps in {seconds:.0f} s."


def build_static(
    documents: Iterable[Document],
    output: str | os.PathLike[str],
    *,
    max_steps: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: bool = True,
) -> StaticBuild:
    """Make the static model from documents: the folder that the package carries."""
    check_free(Path(output), overwrite)
    steps = STEPS if max_steps is None else max_steps
    began = time.perf_counter()
    base = load_model(base_of_own_models(), dtype=torch.float32, device="cpu")
    model = distilled(base, StaticConfig(dimension=DIMENSION, progress=progress))
    distilling = time.perf_counter() - began
    digest, texts = hashlib.sha256(), list(documents)
    for document in texts:
        digest.update(f"{document.id}\0{document.text}\0".encode())
    began = time.perf_counter()
    if steps:
        train_by_docsplit(model, texts, steps, seed, progress)
    build = StaticBuild(
        name=OWN_STATIC,
        documents=len(texts),
        sha256=digest.hexdigest(),
        steps=steps,
        distilling_seconds=distilling,
        training_seconds=time.perf_counter() - began,
        threads=torch.get_num_threads(),
        seed=seed,
        recipe={
            "dimension": DIMENSION,
            "sif": SIF,
            "batch_size": BATCH,
            "learning_rate": LEARNING_RATE,
            "scale": SCALE,
            "share": SHARE,
        },
    )
    with atomic_path(output) as path:
        path.mkdir()
        save_compressed(path, model[0].embedding.weight.detach().numpy())  # type: ignore[union-attr]
        model.tokenizer.save(str(path / TOKENIZER))
        (path / CARD_FILE).write_text(card(build), encoding="utf-8")
        write_json(path / BUILD_FILE, asdict(build))
    return build


def train_by_docsplit(
    model: SentenceTransformer, documents: list[Document], steps: int, seed: int, progress: bool = True
) -> None:
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
            disable_tqdm=not progress,
        )
        trainer = SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=views.attach(documents, progress=progress),
            loss=MultipleNegativesRankingLoss(
                model, scale=SCALE, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
            ),
            callbacks=[views.callback],
        )
        trainer.train()
    with torch.no_grad():
        weights.copy_(start + SHARE * (weights - start))
        if unknown is not None:
            weights[unknown] = 0  # as it began: model2vec leaves unknown tokens out


def card(build: StaticBuild, results: str = "") -> str:
    """Write the model's card."""
    recipe = build.recipe
    trained = (
        f"Then DocSplit: each of {build.documents:,} articles of English Wikipedia (2014) is split at random, sentence "
        f"by sentence, into two texts, and the one is to find the other among {recipe['batch_size']} "
        f"({build.steps:,} steps, learning rate {recipe['learning_rate']:g}, temperature {1 / recipe['scale']:g}, seed "
        f"{build.seed}); of what that changed, {recipe['share']:.0%} is kept. No labels."
    )
    seconds = build.distilling_seconds + build.training_seconds
    lines = [
        "---", "language: en", "license: apache-2.0", "library_name: model2vec", "pipeline_tag: sentence-similarity",
        f"base_model: {HUB_BASE}", "tags:", "- model2vec", "- sentence-transformers", "- static-embeddings",
        "- long-documents", "---", "",
        f"# {build.name}", "",
        wrapped(
            f"{build.name} gives {recipe['dimension']}-dimensional embeddings of whole documents, of any length, at a "
            "hundredth of the cost of an encoder: one vector for each token, whose mean is the text's. It is distilled "
            "from all-MiniLM-L6-v2" + (" and trained by DocSplit on Wikipedia." if build.steps else ".")
        ), "",
        f"- **Base model:** [{HUB_BASE}](https://huggingface.co/{HUB_BASE})", "",
        "## Usage", "",
        "```python",
        "from simlte_st import SentenceTransformer  # pip install simlte-st", "",
        f'model = SentenceTransformer("{build.name}")',
        'embeddings = model.encode(["A long document ...", "Another one ..."])',
        "```", "",
        wrapped(
            "The folder that this makes, in float32, is loaded by sentence-transformers' own class too, and by "
            "`model2vec.StaticModel.from_pretrained`, without torch; so is the folder in the package, in 8 bits. To "
            f"adapt it to your documents: `simlte train my_documents --base {build.name} --name mine`."
        ), "",
        "## How it was made", "",
        wrapped(
            "Each token of the base was encoded by itself, a principal component analysis left "
            f"{recipe['dimension']} dimensions, and frequent tokens were given less weight (smooth inverse frequency, "
            f"{recipe['sif']:g}). " + (trained if build.steps else "")
        ), "",
        f"- Text: {build.documents:,} documents; SHA-256 of ids and texts `{build.sha256}`",
        f"- Time: {seconds:,.0f} s of the clock, beside other work, on {build.threads} "
        f"thread{'s' * (build.threads > 1)} of a CPU",
        f"- Command: `python -m benchmarks.build_model {build.name} SOURCE --limit {build.documents} --output FOLDER`",
        "",
        *((RESULTS_TITLE, "", results.strip(), "") if results else ()),
        LIMITS_TITLE, "",
        wrapped(
            "English. The order of words counts for nothing, and neither do tokens that it does not know: a text of "
            "those alone has a vector of zeros. On sentences and short, dense texts an encoder is far ahead."
        ), "",
        "## Licences", "",
        wrapped(
            "Base (all-MiniLM-L6-v2) and these vectors: Apache-2.0. The text that they were trained on is Wikipedia's "
            "(CC BY-SA 3.0); none of it is in the package."
        ), "",
    ]  # fmt: skip
    return "\n".join(lines)
