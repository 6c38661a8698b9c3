from __future__ import annotations

import pytest
import torch

from simlte_st.chunk_mean.chunks import ChunkBatch, plan_chunks
from simlte_st.errors import ConfigurationError


def plan(lengths: list[int], chunk_length: int, **options: object) -> tuple[torch.Tensor, list[ChunkBatch]]:
    sizes = torch.tensor(lengths)
    starts = sizes.cumsum(0) - sizes
    return starts, plan_chunks(starts, sizes, chunk_length, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", [1, 3])
def test_against_slices(prefix: int) -> None:
    lengths = [30, 1, 12, 0, 2, 13, 55, 14, 97]
    starts, batches = plan(lengths, 12, prefix=prefix, slack=5)
    found: dict[int, list[tuple[list[int], float]]] = {row: [] for row in range(len(lengths))}
    for batch in batches:
        for row, inside, source, weight in zip(batch.document, batch.inside, batch.source, batch.weight, strict=True):
            found[int(row)].append(((source[inside] - starts[row]).tolist(), float(weight)))
    for row, length in enumerate(lengths):
        room = 12 - prefix - 1
        if length <= 12:
            expected = [list(range(length))] if length else []
        else:
            body = list(range(prefix, length - 1))
            pieces = [body[start : start + room] for start in range(0, len(body), room)]
            expected = [[*range(prefix), *piece, length - 1] for piece in pieces]
        assert sorted(tokens for tokens, _ in found[row]) == sorted(expected)
        shares = {tuple(tokens): float(max(1, len(tokens) - prefix - 1)) for tokens, _ in found[row]}
        for tokens, weight in found[row]:
            assert weight == pytest.approx(shares[tuple(tokens)] / sum(shares.values()))


def test_every_token_but_the_first_gets_its_state_once() -> None:
    lengths = [40, 5, 1, 0, 77]
    starts, batches = plan(lengths, 12)
    targets = torch.cat([batch.targets for batch in batches])
    firsts = {int(start) for start, length in zip(starts, lengths, strict=True) if length}
    assert sorted(targets.tolist()) == sorted(set(range(sum(lengths))) - firsts)
    for batch in batches:
        assert torch.equal(batch.source.flatten()[batch.kept], batch.targets)


@pytest.mark.parametrize(("slots_per_pass", "slack"), [(48, 10_000), (10_000, 5), (1, 0)])
def test_batches_hold_neither_too_much_nor_too_much_padding(slots_per_pass: int, slack: int) -> None:
    lengths = [12, 11, 11, 5, 5, 4, 100, 2, 2, 2]
    _, batches = plan(lengths, 12, slots_per_pass=slots_per_pass, slack=slack)
    chunks = sum(len(batch.document) for batch in batches)
    assert chunks == 9 + 10
    for batch in batches:
        sizes = batch.inside.sum(1)
        assert sizes.tolist() == sorted(sizes.tolist(), reverse=True)
        assert batch.inside.shape[1] == sizes[0]
        assert batch.inside.numel() <= slots_per_pass or len(sizes) == 1
        assert int((~batch.inside).sum()) <= slack
    if slots_per_pass == slack == 10_000:
        assert len(batches) == 1


def test_a_prompt_without_room() -> None:
    with pytest.raises(ConfigurationError, match=r"10 tokens .* chunks of 12"):
        plan([30], 12, prefix=11)
    _, batches = plan([12], 12, prefix=11)
    assert batches[0].inside.all(), "a document that fits is not cut"
