from __future__ import annotations

import pytest

pytest.importorskip("mteb")
from simlte_st.errors import ConfigurationError
from simlte_st.tasks.metadata import MAIN_SCORES, make_metadata


@pytest.mark.parametrize("kind", MAIN_SCORES)
def test_what_mteb_knows_of_a_task(kind: str) -> None:
    metadata = make_metadata("My tickets", kind, "What.", source="own/tickets", language="deu-Latn")  # type: ignore[arg-type]
    assert metadata.languages == ["deu"]
    assert metadata.main_score == MAIN_SCORES[kind]  # type: ignore[index]
    assert metadata.description == "What. Texts are cut by the model, at its max_seq_length."
    assert metadata.hf_subsets == ["default"]


@pytest.mark.parametrize("name", ["", "a/b", "../up", "line\n", " x"])
def test_names_that_are_no_file_names(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be called"):
        make_metadata(name, "STS", "What.", source="own")


@pytest.mark.parametrize("fields", [{"licence": "mit"}, {"license": "none of mteb's"}])
def test_fields_that_mteb_refuses(fields: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="mteb refuses"):
        make_metadata("Task", "STS", "What.", source="own", **fields)  # type: ignore[arg-type]


def test_a_language_that_is_not_written_as_mteb_does() -> None:
    with pytest.raises(ConfigurationError, match="such as eng-Latn"):
        make_metadata("Task", "STS", "What.", source="own", language="English")
