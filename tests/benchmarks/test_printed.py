from __future__ import annotations

import pytest

from benchmarks.datasets import SETS
from benchmarks.grid.printed import (
    CLASSIFICATION,
    COMPARED,
    CONTAMINATED,
    DATA,
    FEW_SHOT,
    GAINS,
    GAINS_LONG,
    IMPOSSIBLE,
    LONG,
    REDUNDANCY,
    STATISTICS,
    TABLES,
    Table,
)
from benchmarks.papers.redundancy import BUCKETS, BucketRedundancy
from benchmarks.relative_gain import papers_gain


@pytest.mark.parametrize("setting", TABLES)
@pytest.mark.parametrize(("architecture", "printed"), [("BERT", GAINS), ("Longformer", GAINS_LONG)])
def test_the_tables_give_the_printed_gains(setting: str, architecture: str, printed: dict[str, float]) -> None:
    assert round(100 * papers_gain(setting, architecture), 1) == printed[setting]


def test_all_settings_have_the_same_systems_and_gains() -> None:
    assert list(FEW_SHOT) == list(CLASSIFICATION)
    assert set(TABLES) == set(GAINS) == set(GAINS_LONG)
    assert set(CLASSIFICATION) >= LONG
    assert set(CLASSIFICATION) >= {name for pair in COMPARED.values() for name in pair}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_system_has_every_data_set_that_it_was_not_trained_on(table: Table) -> None:
    missing = {(system, data) for system, scores in table.items() for data in DATA if data not in scores}
    assert missing == CONTAMINATED
    assert all(tuple(data for data in DATA if data in scores) == tuple(scores) for scores in table.values())


def test_data_sets_are_those_of_the_registry() -> None:
    assert tuple(name for name in SETS if name in STATISTICS) == DATA
    assert set(STATISTICS) == set(DATA)
    assert all(set(values) == set(DATA) for values in REDUNDANCY.values())


def test_redundancies_grow_with_the_length_but_for_the_impossible_one() -> None:
    lengths = [BucketRedundancy(*bucket, 0, 0, None, None, None).name() for bucket in (*BUCKETS, (0, None))]
    assert list(REDUNDANCY) == lengths
    for data in DATA:
        kept = [REDUNDANCY[length][data] for length in lengths[:-1] if (length, data) not in IMPOSSIBLE]
        assert kept == sorted(kept)
        assert 1 <= kept[0] < REDUNDANCY["all"][data] < kept[-1] < 2
    # Were the marked value right, hardly an article could have these lengths: the mean over all would be larger.
    ((length, data),) = IMPOSSIBLE
    wrong, least, whole = REDUNDANCY[length][data], REDUNDANCY["0-50"][data], REDUNDANCY["all"][data]
    assert (whole - least) / (wrong - least) < 0.012
