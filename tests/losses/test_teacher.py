from __future__ import annotations

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss
from torch.nn import functional

from simlte_st.errors import ConfigurationError
from simlte_st.losses import TeacherLoss


@pytest.fixture
def columns() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    torch.manual_seed(0)
    student = [torch.randn(5, 8, requires_grad=True) for _ in range(2)]
    return student, [torch.randn(5, 8)] * 2


def test_the_distance_is_the_stock_loss(
    model: SentenceTransformer, columns: tuple[list[torch.Tensor], list[torch.Tensor]]
) -> None:
    stock = EmbedDistillLoss(model).compute_loss_from_embeddings(*columns)
    terms = TeacherLoss(model).compute_loss_from_embeddings(*columns)
    assert terms["distance"] == stock
    assert set(TeacherLoss(model, relation_weight=0.0).compute_loss_from_embeddings(*columns)) == {"distance"}


def test_the_relation_by_hand(
    model: SentenceTransformer, columns: tuple[list[torch.Tensor], list[torch.Tensor]]
) -> None:
    [student, _], [teacher, _] = columns
    shown = functional.normalize(teacher, dim=-1)
    expected = 0.0
    for row in range(5):
        wanted = torch.softmax(10 * shown[row] @ shown.T, dim=0)
        found = torch.log_softmax(10 * functional.normalize(student[row], dim=0) @ shown.T, dim=0)
        expected -= float((wanted * found).sum().detach()) / 5
    loss = TeacherLoss(model, relation_weight=0.5, scale=10.0)
    terms = loss.compute_loss_from_embeddings([student], [teacher])
    assert float(terms["relation"]) == pytest.approx(0.5 * expected, rel=1e-5)


def test_a_student_that_is_its_teacher_has_nothing_to_learn(model: SentenceTransformer) -> None:
    torch.manual_seed(1)
    teacher = torch.randn(6, 8)
    student = (3 * teacher).requires_grad_()
    terms = TeacherLoss(model).compute_loss_from_embeddings([student], [teacher])
    assert float(terms["distance"]) == pytest.approx(0.0, abs=1e-6)
    sum(terms.values(), torch.zeros(())).backward()
    assert student.grad is not None
    assert student.grad.abs().max() < 1e-5


def test_blur_costs_more_than_with_the_distance_alone(model: SentenceTransformer) -> None:
    torch.manual_seed(2)
    common = torch.randn(1, 8)
    teacher = functional.normalize(3 * common + torch.randn(6, 8), dim=-1)
    blurred = teacher.mean(dim=0, keepdim=True).expand(6, -1)
    right, wrong = (TeacherLoss(model).compute_loss_from_embeddings([rows], [teacher]) for rows in (teacher, blurred))
    assert wrong["distance"] < 0.15, "little is lost by it"
    assert wrong["relation"] > right["relation"]


def test_it_trains_texts_with_labels(model: SentenceTransformer) -> None:
    texts = ["ba bei cis", "dor ka mal", "net por run"]
    labels = torch.randn(3, 32)
    loss = TeacherLoss(model)
    terms = loss([model.preprocess(texts), model.preprocess(texts[::-1])], labels)
    assert set(terms) == {"distance", "relation"}
    assert loss.get_config_dict() == {"relation_weight": 0.3, "scale": 20.0}
    with pytest.raises(ValueError, match="requires pre-computed teacher embeddings"):
        loss([model.preprocess(texts)], None)


def test_settings_out_of_range_are_refused(model: SentenceTransformer) -> None:
    with pytest.raises(ConfigurationError, match="relation_weight=-1"):
        TeacherLoss(model, relation_weight=-1)
    with pytest.raises(ConfigurationError, match="scale=0"):
        TeacherLoss(model, scale=0)
