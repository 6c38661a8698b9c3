from __future__ import annotations

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss
from torch.nn import functional

from benchmarks.bank.teacher import TeacherLoss, nearest, smoothed


def unit(rows: list[list[float]]) -> np.ndarray:
    found = np.asarray(rows, dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_neighbours_are_near_by_embedding_and_by_words() -> None:
    vectors = unit([[1, 0], [1, 0.1], [0, 1], [0.1, 1]])
    texts = ["red green", "blue white", "red green", "blue white"]
    assert nearest(vectors, texts, count=1, lexical=0.0).ravel().tolist() == [1, 0, 3, 2]
    assert nearest(vectors, texts, count=1, lexical=1.0).ravel().tolist() == [2, 3, 0, 1]
    assert nearest(vectors, texts, count=9).shape == (4, 3), "never the document itself"
    assert nearest(vectors, ["one", "two", "three", "four"], count=1).ravel().tolist() == [1, 0, 3, 2], (
        "no shared words"
    )


def test_smoothing_goes_towards_the_mean_of_the_neighbours() -> None:
    vectors = unit([[1, 0], [0, 1], [0, -1]])
    near = np.array([[1], [0], [0]])
    assert smoothed(vectors, near, 0.5)[0] == pytest.approx([np.sqrt(0.5), np.sqrt(0.5)], abs=1e-6)
    assert smoothed(vectors, near, 0.0) == pytest.approx(vectors)
    assert smoothed(vectors, near, 1.0)[1] == pytest.approx([1, 0])


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
