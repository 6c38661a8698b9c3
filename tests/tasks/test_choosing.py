from __future__ import annotations

import pytest

pytest.importorskip("mteb")
import mteb

from simlte_st.errors import ConfigurationError
from simlte_st.tasks import LONG_EMBED, long_document_task_names, long_document_tasks

pytestmark = pytest.mark.usefixtures("no_network")


def test_longembed_by_default() -> None:
    tasks = long_document_tasks()
    assert [task.metadata.name for task in tasks] == list(LONG_EMBED)
    assert all(isinstance(task, mteb.AbsTask) for task in tasks)
    assert {task.metadata.type for task in tasks} == {"Retrieval"}


def test_long_documents_are_found_in_mtebs_statistics() -> None:
    lengths = long_document_task_names()
    assert set(LONG_EMBED) <= set(lengths)
    assert lengths["LEMBQMSumRetrieval"] == 53_336
    assert "ArxivClassification.v2" in lengths
    assert "Banking77Classification" not in lengths
    assert list(lengths.values()) == sorted(lengths.values())
    assert min(lengths.values()) >= 5_000
    assert [task.metadata.name for task in long_document_tasks(list(lengths))] == list(lengths)


def test_a_name_that_mteb_does_not_have() -> None:
    with pytest.raises(ConfigurationError, match=r"no English task 'LEMBQMSum'.*LEMBQMSumRetrieval"):
        long_document_tasks(["LEMBQMSum"])
    with pytest.raises(ConfigurationError, match="no English task 'GermanSTSBenchmark'"):
        long_document_tasks(["GermanSTSBenchmark"])
