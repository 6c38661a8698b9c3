"""The account of a run that made one of this package's own models, and the model's card in the Hub's form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import fill
from typing import Any

from simlte_st.models.names import HUB_BASE

WATTS = 10
"""Of one busy CPU core, in the card's guess at the energy that a run took."""

GRAMS = 400
"""Of CO2 a kilowatt-hour, in the same guess: somewhat below the mean of the world's grids."""

RESULTS_TITLE, LIMITS_TITLE = "## Results", "## Limits"

_IS = {
    "simlte-bert": "384-dimensional embeddings of documents, of which it reads the first 512 tokens. It is "
    "all-MiniLM-L6-v2 reading twice as much as it was set to, with low-rank adapters merged in that were trained "
    "without labels.",
    "simlte-longformer": "384-dimensional embeddings of whole documents of up to 4,096 tokens, in one pass. It is "
    "all-MiniLM-L6-v2 converted to a Longformer (window 128, positions tiled), with low-rank adapters merged in that "
    "were trained without labels.",
}

_LOADS = {
    "simlte-bert": "It is made of stock modules, so that sentence-transformers' own class loads its folder too.",
    "simlte-longformer": "sentence-transformers' own class loads its folder after `import simlte_st` and with "
    "`trust_remote_code=True`: attention and pooling are this package's.",
}

_LIMITS = {
    "simlte-bert": "What a document says after its first 512 tokens it can only guess: where documents are longer, "
    "`simlte-longformer` is the better one.",
    "simlte-longformer": "The beginning of a document weighs more than the rest, which does harm where documents begin "
    "with boilerplate.",
}


@dataclass(frozen=True)
class Build:
    """What was done.

    Attributes:
        name: The model.
        documents: Documents read.
        sha256: Of their ids and texts, in their order.
        tokens: Their tokens, as far as the student saw them.
        steps: Optimizer steps.
        teaching_seconds: Time of the teacher.
        training_seconds: Time of the training, in the process that ended it.
        device: Where both ran: ``"cpu"``, ``"cuda"``.
        threads: Of the CPU.
        dtype: What the passes computed in.
        seed: Decided everything that was drawn.
        distance: Mean cosine distance to the teacher in the first fifth of the training and in the last.
        recipe: The settings of the method, by name.
    """

    name: str
    documents: int
    sha256: str
    tokens: int
    steps: int
    teaching_seconds: float
    training_seconds: float
    device: str
    threads: int
    dtype: str
    seed: int
    distance: tuple[float, float]
    recipe: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    def summary(self) -> str:
        """Return a summary of two lines."""
        first, last = self.distance
        return (
            f"{self.name}: {self.documents:,} documents, {self.tokens:,} tokens, {self.steps:,} steps in "
            f"{(self.teaching_seconds + self.training_seconds) / 60:.0f} min ({self.dtype}).\n"
            f"Cosine distance to the teacher: {first:.4f} at first, {last:.4f} at last."
        )

    def card(
        self, text: str = "Documents", licence: str = "", verdict: str = "Not measured.", results: Sequence[str] = ()
    ) -> str:
        """Write the model's card."""
        recipe = self.recipe
        read = " or the first ".join(f"{length:,}" for length in recipe["student_lengths"])
        first, last = self.distance
        made = (
            "The frozen base is the teacher. It reads up to "
            f"{recipe['teacher_length']:,} tokens of a document in pieces of {recipe['piece']}; the embeddings of the "
            "pieces are averaged, the beginning with more weight (the n-th token has "
            f"`max(1, n / {recipe['flat']}) ** -{recipe['power']}`). The student begins as the base and learns, by "
            f"adapters of rank {recipe['rank']} on its linear layers, to have the teacher's embedding after one pass "
            f"over the first {read} tokens: what it does not see, it learns to predict. Short excerpts of the same "
            "documents are among the lessons, so that short texts stay as they were."
        )
        adapt = f"To adapt it to your documents: `simlte train my_documents --base {self.name} --name mine`."
        hours = (self.teaching_seconds + self.training_seconds) / 3600
        where = f"{self.threads} thread{'s' * (self.threads > 1)} of a CPU" if self.device == "cpu" else "a GPU"
        energy = f"; about {hours * self.threads * WATTS / 1000:.3f} kWh" if self.device == "cpu" else ""
        lines = [
            *self._header(hours),
            f"# {self.name}", "",
            wrapped(f"**Better than its base?** {verdict}"), "",
            wrapped(f"{self.name} gives {_IS[self.name]}"), "",
            f"- **Base model:** [{HUB_BASE}](https://huggingface.co/{HUB_BASE})", "",
            "## Usage", "",
            "```python",
            "from simlte_st import SentenceTransformer  # pip install simlte-st", "",
            f'model = SentenceTransformer("{self.name}")',
            'embeddings = model.encode(["A long document ...", "Another one ..."])',
            "```", "",
            wrapped(f"{_LOADS[self.name]} {adapt}"), "",
            "## How it was made", "",
            wrapped(made), "",
            f"- Text: {text}: {self.documents:,}, of which {self.tokens:,} tokens were seen, one pass; SHA-256 of ids "
            f"and texts `{self.sha256}`",
            f"- Steps: {self.steps:,} of at most {recipe['batch_tokens']:,} tokens, AdamW, learning rate "
            f"{recipe['learning_rate']:g}, {self.dtype}, seed {self.seed}",
            f"- Cosine distance to the teacher: {first:.4f} in the first fifth of the steps, {last:.4f} in the last",
            f"- Time: {self.teaching_seconds / 60:,.0f} min for the teacher and {self.training_seconds / 60:,.0f} min "
            f"of training, on {where}{energy}",
            f"- Command: `python -m benchmarks.build_model {self.name} SOURCE --limit {self.documents}"
            f"{' --bf16' * (self.dtype == 'bfloat16')} --output FOLDER`", "",
            *((RESULTS_TITLE, "", *results, "") if results else ()),
            LIMITS_TITLE, "",
            wrapped(f"English. {_LIMITS[self.name]}"), "",
            "## Licences", "",
            wrapped(f"Base (all-MiniLM-L6-v2) and adapters: Apache-2.0. {licence}".strip()), "",
        ]  # fmt: skip
        return "\n".join(lines)

    def _header(self, hours: float) -> list[str]:
        lines = [
            "---", "language: en", "license: apache-2.0", "library_name: sentence-transformers",
            "pipeline_tag: sentence-similarity", f"base_model: {HUB_BASE}", "tags:", "- sentence-transformers",
            "- sentence-similarity", "- feature-extraction", "- long-documents",
        ]  # fmt: skip
        if self.device == "cpu":
            cores = f"{self.threads} CPU core{'s' * (self.threads > 1)}"
            source = f"guessed: {hours:.2f} h of {cores} at {WATTS} W, {GRAMS} g a kWh"
            lines += [
                "co2_eq_emissions:",
                f"  emissions: {hours * self.threads * WATTS / 1000 * GRAMS:.1f}",
                f"  source: {json.dumps(source)}",
                "  training_type: fine-tuning",
                f"  hardware_used: {cores}",
            ]
        return [*lines, "---", ""]


def wrapped(text: str) -> str:
    """Break a paragraph into lines."""
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)
