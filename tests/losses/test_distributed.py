from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.distributed
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss, ReconstructionLoss
from simlte_st.losses.multiple_negatives_ranking_mlm import MLMLossMixin
from simlte_st.training.prepare_model import set_dropout

WORLD = 2
RECONSTRUCTION = "reconstruction"
PLAIN = ["separate", "shared", "gather", "accumulated", "nothing masked"]
BACKWARDS = {case: 1 + ("accumulated" in case) for case in (*PLAIN, RECONSTRUCTION, f"{RECONSTRUCTION} accumulated")}
"""Number of backward passes before the gradients are compared, by case."""
CACHED = {f"cached {case}": (case, {"mini_batch_size": 3}) for case in PLAIN}
# Different numbers of mini-batches in the two processes.
CACHED |= {f"cached {case} by tokens": (case, {"mini_batch_num_tokens": 60}) for case in ("separate", "shared")}
"""Cases of the cached loss: the equivalent case of the plain loss, and settings."""

Pairs = list[tuple[list[str], list[str]]]


def count_and_average(synchronisations, bucket):  # type: ignore[no-untyped-def]  # PyTorch looks at annotations here
    synchronisations.append(bucket.index())
    return allreduce_hook(None, bucket)


def run_case(case: str, path: str, pairs: Pairs, rank: int, wrap: bool) -> dict[str, Any]:
    """Run one step on a rank's own data, in a process group (``wrap``) or alone."""
    model = SentenceTransformer(path, device="cpu")
    set_dropout(model, 0.0)
    model.train()
    kind: Any = CachedMultipleNegativesRankingMLMLoss if case in CACHED else MultipleNegativesRankingMLMLoss
    case, settings = CACHED.get(case, (case, {}))
    options: dict[str, Any] = {"scale": 10.0, "mlm_weight": 0.5, "mlm_probability": 0.3, **settings}
    options["mlm_input"] = "shared" if case == "shared" else "separate"
    loss = kind(model, gather_across_devices=wrap and case == "gather", **options)
    if case == "nothing masked" and rank == 1:
        assert loss.masker is not None
        loss.masker.probability = 1e-12
    if case.startswith(RECONSTRUCTION):
        beside = ReconstructionLoss(loss, weight=0.5)
        return step(case, beside, loss, beside.head, model, pairs, rank, wrap)
    return step(case, loss, loss, loss.mlm_head, model, pairs, rank, wrap)


def step(
    case: str, loss: Any, runner: Any, head: Any, model: SentenceTransformer, pairs: Pairs, rank: int, wrap: bool
) -> dict[str, Any]:
    """Run one step of a loss; ``runner`` is the module that calls the model."""
    synchronisations: list[int] = []
    if wrap:
        # As the Trainer wraps a SentenceTransformer: BERT's pooler is not used.
        loss.model = runner.model = DistributedDataParallel(model, find_unused_parameters=True)
        runner.model.register_comm_hook(synchronisations, count_and_average)
    passes: list[int] = []
    model.register_forward_pre_hook(lambda module, args: passes.append(len(args[0]["input_ids"])))
    values: dict[str, list[float]] = {}
    for number in range(BACKWARDS[case]):
        torch.manual_seed(100 * number + rank)
        terms = loss([model.preprocess(texts) for texts in pairs[number]], None)
        for name, value in terms.items():
            values.setdefault(name, []).append(value.item())
        torch.stack(list(terms.values())).sum().backward()
    return {
        "values": values,
        "synchronisations": len(synchronisations),
        "passes": len(passes),
        "head": {name: value.grad for name, value in head.named_parameters()},
        "encoder": {name: value.grad for name, value in model.named_parameters() if "pooler" not in name},
    }


def work(rank: int, folder: str, path: str, data: list[Pairs]) -> None:
    torch.set_num_threads(1)
    group: dict[str, Any] = {"rank": rank, "world_size": WORLD, "timeout": datetime.timedelta(seconds=60)}
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", **group)
    try:
        results = {case: run_case(case, path, data[rank], rank, wrap=True) for case in (*BACKWARDS, *CACHED)}
        torch.save(results, Path(folder) / f"rank-{rank}.pt")
    finally:
        torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def data(documents: list[str]) -> list[Pairs]:
    """Two batches of pairs per rank: different documents and lengths, equal numbers."""
    sentences = [document.split(". ") for document in documents]

    def batch(first: int, length: int) -> tuple[list[str], list[str]]:
        rows = sentences[first : first + 4]
        return [". ".join(row[:length]) for row in rows], [". ".join(row[4 : 4 + length]) for row in rows]

    return [[batch(0, 2), batch(4, 1)], [batch(8, 3), batch(12, 2)]]


@pytest.fixture(scope="module")
def ranks(data: list[Pairs], encoder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Results of all cases from one pair of processes, because starting them is slow."""
    folder = tmp_path_factory.mktemp("ranks")
    # Forking avoids importing everything again, which takes most of half a minute; CUDA does not allow it.
    method = "fork" if sys.platform == "linux" and not torch.cuda.is_available() else "spawn"
    arguments = (str(folder), str(encoder_path), data)
    torch.multiprocessing.start_processes(work, arguments, nprocs=WORLD, start_method=method)
    return [torch.load(folder / f"rank-{rank}.pt") for rank in range(WORLD)]


def alone(case: str, data: list[Pairs], encoder_path: Path) -> list[dict[str, Any]]:
    """Run each process alone, with the MLM mean over the tokens of both."""
    counts: list[list[int]] = [[], []]

    def run(rank: int, mean_count: Any) -> dict[str, Any]:
        with patch.object(MLMLossMixin, "mean_count", lambda self, count: mean_count(count)):
            return run_case(case, str(encoder_path), data[rank], rank, wrap=False)

    for rank in range(WORLD):
        run(rank, lambda count, rank=rank: counts[rank].append(count) or 1.0)
    means = [sum(both) / WORLD for both in zip(*counts, strict=True)]
    left = iter(means * WORLD)
    return [run(rank, lambda count: next(left)) for rank in range(WORLD)]


def compare(ranks: list[dict[str, Any]], part: str, expected: dict[str, Tensor]) -> None:
    first, second = (rank[part] for rank in ranks)
    assert first.keys() == second.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(first[name], second[name]), name  # otherwise the ranks would drift apart
        torch.testing.assert_close(first[name], value, rtol=1e-4, atol=1e-6, msg=lambda text, name=name: name + text)


def mean_gradients(single: list[dict[str, Any]], part: str) -> dict[str, Tensor]:
    return {name: (value + single[1][part][name]) / 2 for name, value in single[0][part].items()}


@pytest.mark.parametrize("case", [case for case in BACKWARDS if case != "gather"])
def test_loss_values_and_mean_gradients_match_each_process_alone(
    case: str, ranks: list[dict[str, Any]], data: list[Pairs], encoder_path: Path
) -> None:
    single = alone(case, data, encoder_path)
    for rank, own in zip(ranks, single, strict=True):
        assert rank[case]["values"].keys() == own["values"].keys()
        for name, values in own["values"].items():
            assert rank[case]["values"][name] == pytest.approx(values, rel=1e-5)
    if case == "nothing masked":
        assert [rank[case]["values"]["mlm"][0] > 0 for rank in ranks] == [True, False]
    for part in ("head", "encoder"):
        pairs = [(value, single[1][part][name]) for name, value in single[0][part].items()]
        # The two differ, so the test would notice a gradient that was not averaged.
        assert any((one - two).abs().max() > 10 * (1e-6 + 1e-4 * one.abs().max()) for one, two in pairs)
        compare([rank[case] for rank in ranks], part, mean_gradients(single, part))


def test_gathered_negatives_match_one_batch(ranks: list[dict[str, Any]], data: list[Pairs], encoder_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    set_dropout(model, 0.0)
    joint = [[text for pairs in data for text in pairs[0][column]] for column in range(2)]
    loss = MultipleNegativesRankingLoss(model, scale=10.0)
    value = loss([model.preprocess(texts) for texts in joint], None)
    per_rank = [rank["gather"]["values"]["contrastive"][0] for rank in ranks]
    assert sum(per_rank) / WORLD == pytest.approx(value.item(), rel=1e-5)
    # More negatives than a single process has.
    fewer = [rank["separate"]["values"]["contrastive"][0] for rank in ranks]
    assert all(gathered > value + 0.1 for gathered, value in zip(per_rank, fewer, strict=True))

    # The MLM term and its head's gradient are as they are without gathering.
    single = alone("separate", data, encoder_path)
    for rank, own in zip(ranks, single, strict=True):
        assert rank["gather"]["values"]["mlm"] == pytest.approx(own["values"]["mlm"], rel=1e-5)
    compare([rank["gather"] for rank in ranks], "head", mean_gradients(single, "head"))


@pytest.mark.parametrize("case", CACHED)
def test_cached_loss_matches_the_plain_loss(case: str, ranks: list[dict[str, Any]]) -> None:
    plain = CACHED[case][0]
    for rank in ranks:
        for name in ("contrastive", "mlm"):
            assert rank[case]["values"][name] == pytest.approx(rank[plain]["values"][name], rel=1e-5)
    for part in ("head", "encoder"):
        expected = ranks[0][plain][part]
        assert sum(bool(value.any()) for value in expected.values()) == (5 if part == "head" else 37)
        compare([rank[case] for rank in ranks], part, expected)


def test_gradients_are_averaged_once_per_step(ranks: list[dict[str, Any]]) -> None:
    for case, (plain, _) in CACHED.items():
        for rank in ranks:
            assert rank[case]["synchronisations"] == rank[plain]["synchronisations"] == BACKWARDS[plain], case
            assert rank[case]["passes"] > 2 * rank[plain]["passes"]
    by_tokens = [rank["cached separate by tokens"]["passes"] for rank in ranks]
    assert by_tokens[0] != by_tokens[1]
