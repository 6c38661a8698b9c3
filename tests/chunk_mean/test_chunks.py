from __future__ import annotations

import pytest
import torch

from simlte_st.chunk_mean.chunks import ChunkBatch, plan_chunks
from simlte_st.errors import ConfigurationError


def plan(lengths: list[int], chunk_length: int, **options: object) -> tuple[torch.Tensor, list[ChunkBatch]]:
    sizes = torch.tensor(lengths)
    starts = sizes.cumsum(0) - sizes
    return starts, plan_chunks(starts, sizes, chunk_length, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("overlap", [0, 1, 4, 7])
@pytest.mark.parametrize("prefix", [1, 3])
def test_against_slices(overlap: int, prefix: int) -> None:
    lengths = [30, 1, 12, 0, 2, 13, 55, 14, 97]
    starts, batches = plan(lengths, 12, overlap=overlap, prefix=prefix, slack=5)
    found: dict[int, list[tuple[list[int], float]]] = {row: [] for row in range(len(lengths))}
    for batch in batches:
        for row, inside, source, weight in zip(batch.document, batch.inside, batch.source, batch.weight, strict=True):
            found[int(row)].append(((source[inside] - starts[row]).tolist(), float(weight)))
    for row, length in enumerate(lengths):
        room = 12 - prefix - 1
        if length <= 12:
            expected = [list(range(length))] if length else []
        else:
            body, expected, end = list(range(prefix, length - 1)), [], 0
            while end < len(body):
                start = max(0, end - overlap)
                end = start + room
                expected.append([*range(prefix), *body[start:end], length - 1])
        assert sorted(tokens for tokens, _ in found[row]) == sorted(expected)
        shares = {tuple(tokens): float(max(1, len(tokens) - prefix - 1)) for tokens, _ in found[row]}
        for tokens, weight in found[row]:
            assert weight == pytest.approx(shares[tuple(tokens)] / sum(shares.values()))


@pytest.mark.parametrize("overlap", [0, 3, 4])
def test_every_token_but_the_first_gets_its_state_once_from_the_nearer_chunk(overlap: int) -> None:
    lengths = [40, 5, 1, 0, 77]
    starts, batches = plan(lengths, 12, overlap=overlap)
    targets = torch.cat([batch.targets for batch in batches])
    firsts = {int(start) for start, length in zip(starts, lengths, strict=True) if length}
    assert sorted(targets.tolist()) == sorted(set(range(sum(lengths))) - firsts)
    for batch in batches:
        assert torch.equal(batch.source.flatten()[batch.kept], batch.targets)
        width = batch.inside.shape[1]
        for kept, target in zip(batch.kept.tolist(), batch.targets.tolist(), strict=True):
            row = int(batch.document[kept // width])
            is_last = target - int(starts[row]) == lengths[row] - 1
            slot, size = kept % width, int(batch.inside[kept // width].sum())
            whole = lengths[row] <= 12
            begins = target - int(starts[row]) < 1 + 10  # in the document's first chunk nothing stands before
            assert whole or is_last or begins or slot - 1 >= overlap // 2, "too near to the beginning"
            ends = int(starts[row]) + lengths[row] - 1 in batch.source[kept // width, : size - 1].tolist()
            last = int(batch.source[kept // width, size - 2]) == int(starts[row]) + lengths[row] - 2
            assert whole or is_last or ends or last or size - 2 - slot >= overlap - overlap // 2, "too near to the end"


def test_equal_weights_and_the_token_weights_of_a_short_rest() -> None:
    (_, equal), (_, by_tokens) = (plan([23], 12, equal_weights=flag) for flag in (True, False))
    assert [batch.weight.tolist() for batch in equal] == [pytest.approx([1 / 3] * 3)]
    assert by_tokens[0].weight.tolist() == pytest.approx([10 / 21, 10 / 21, 1 / 21])


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
    with pytest.raises(ConfigurationError, match="overlap of 5"):
        plan([30], 12, prefix=6, overlap=5)
    _, batches = plan([12], 12, prefix=11)
    assert batches[0].inside.all(), "a document that fits is not cut"
