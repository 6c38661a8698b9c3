from __future__ import annotations

import copy
import random
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.rivals import train_rival
from benchmarks.rivals.contrastive_tension import draw_pairs
from benchmarks.rivals.stock import TEXT
from simlte_st.data import draw_views, read_documents
from simlte_st.models.loading import load_model
from simlte_st.training import get_preset
from simlte_st.words.sentences import PunktSegmenter, segment_document, tokenizer_counter


def test_one_pair_in_eight_is_positive_and_a_pass_uses_no_document_twice() -> None:
    state = random.getstate()
    pairs = draw_pairs(documents=50, steps=7, batch_size=16, seed=3)
    assert random.getstate() == state
    assert len(pairs.label) == 7 * 16
    assert (pairs.label.reshape(7, 2, 8).sum(axis=2) == 1).all()
    assert ((pairs.first == pairs.second) == (pairs.label == 1)).all()
    assert pairs.turn.tolist() == [turn for turn in range(7) for _ in range(16)], "50 documents are one batch a pass"
    for turn in range(7):
        rows = pairs.turn == turn
        used = np.concatenate([pairs.first[rows], pairs.second[rows & (pairs.label == 0)]])
        assert len(set(used.tolist())) == len(used) == 30
    again, other = draw_pairs(50, 7, 16, 3), draw_pairs(50, 7, 16, 4)
    assert (again.first == pairs.first).all()
    assert (other.first != pairs.first).any()


def test_training_matches_the_papers_objective(bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    steps, size, rate = 4, 8, 1e-3
    preset = get_preset("docsplit-bert").changed(learning_rate=rate, dropout=0.0, pooling="mean", batch_size=size)
    preset = preset.changed(max_view_length=32)
    train_rival("contrastive-tension", documents, bert_path, tmp_path / "out", preset=preset, seed=5, steps=steps)

    # By hand: two encoders, binary cross-entropy of dot products, AdamW with a rate that falls linearly.
    kept = load_model(bert_path).copy("mean", 32).model
    dropped = copy.deepcopy(kept)
    count = tokenizer_counter(kept.tokenizer)
    segmented = [segment_document(document, PunktSegmenter(), count) for document in read_documents(documents)]
    pairs = draw_pairs(len(documents), steps, size, 5)
    optimizer = torch.optim.AdamW([*kept.parameters(), *dropped.parameters()], lr=rate, weight_decay=0.0)
    for step in range(steps):
        rows = range(step * size, (step + 1) * size)

        def texts(column: np.ndarray, rows: range = rows) -> list[str]:
            drawn = ((segmented[column[row]], int(pairs.turn[row])) for row in rows)
            views = [draw_views(document, TEXT, seed=5, epoch=turn, budget=30) for document, turn in drawn]
            return [view.anchor for view in views if view is not None]

        first = dropped(dropped.preprocess(texts(pairs.first)))["sentence_embedding"]
        second = kept(kept.preprocess(texts(pairs.second)))["sentence_embedding"]
        logits = (first * second).sum(dim=1)
        labels = torch.tensor(pairs.label[rows.start : rows.stop], dtype=torch.float32)
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="sum").backward()
        torch.nn.utils.clip_grad_norm_(kept.parameters(), 1.0)  # the Trainer clips only the model's gradients
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
        optimizer.step()

    made = SentenceTransformer(str(tmp_path / "out"), device="cpu").state_dict()
    for name, value in kept.state_dict().items():
        if "pooler" in name:
            continue  # not in the checkpoint and not used: random after each loading
        torch.testing.assert_close(made[name], value, atol=2e-5, rtol=1e-4)
