"""Sentences of any text: no character is lost, and no sentence is empty or too long."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from odd_texts import letters, texts
from sentence_transformers import SentenceTransformer

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.reading.document import Document, count_words
from simlte_st.views.views import DocSplit, draw_views, make_view
from simlte_st.words import sentences as splitting
from simlte_st.words import tokens
from simlte_st.words.sentences import MAX_WORDS, PunktSegmenter, make_segmenter, segment_document, split_paragraphs
from simlte_st.words.tokens import in_batches

LEARNED = PunktSegmenter.learn(["Dr. Smith came in. He saw Dr. Jones there. The patient of Dr. Smith slept. " * 5])
SEGMENTERS: dict[str, splitting.Segmenter] = {
    "punkt": PunktSegmenter(),
    "learned punkt": LEARNED,
    "naive": str.splitlines,
    "whole": lambda text: [text],
    "characters": list,
}


@pytest.mark.parametrize("name", SEGMENTERS)
@settings(max_examples=120)
@given(text=texts, max_words=st.one_of(st.integers(1, 8), st.just(MAX_WORDS)))
@example(text="a\x85b\u2028c\x1cd. e\u3000f", max_words=1)
@example(text="\ufeff\u200b", max_words=1)
@example(text=". . . ! ?", max_words=1)
def test_sentences_cover_the_text_within_max_words(name: str, text: str, max_words: int) -> None:
    segmented = segment_document(Document("d", text), SEGMENTERS[name], max_words=max_words)
    assert letters("".join(segmented.sentences)) == letters(text)
    for sentence in segmented.sentences:
        assert sentence == sentence.strip() != ""
        assert 1 <= count_words(sentence) <= max_words
    assert len(segmented.tokens) == len(segmented.sentences)
    assert all(tokens >= 1 for tokens in segmented.tokens)
    assert list(segmented.paragraphs) == sorted({*segmented.paragraphs} & {*range(len(segmented.sentences))})
    assert (0 in segmented.paragraphs) == (segmented.sentences != ())
    assert len(segmented.paragraphs) == len(split_paragraphs(text))


def cut(text: str, name: str = "punkt", max_words: int = MAX_WORDS) -> list[str]:
    return list(segment_document(Document("d", text), SEGMENTERS[name], max_words=max_words).sentences)


@pytest.mark.parametrize(
    "sentences",
    [
        ["今天下雨了。", "河水上涨。", "船只出港了。"],
        ["你好！", "再见？", "「好。」", "他走了"],
        ["値は３．１４です．", "次の文．"],
        ["आज वर्षा हुई। ", "नदी चढ़ गई।। ", "नावें निकलीं॥"],
        ["كيف حالك؟ ", "أنا بخير"],
        ["یہ پہلا جملہ ہے۔ ", "یہ دوسرا ہے۔"],
        ["Առաջին նախադասություն։ ", "Երկրորդ։"],
        ["ዛሬ ዘነበ። ", "ወንዙ ሞላ፧ ", "ጀልባዎች ወጡ።"],
        ["မိုးရွာသည်။ ", "မြစ်ရေတက်သည်။"],
        ["ថ្ងៃនេះភ្លៀង។ ", "ទឹកឡើង។"],
        ["བོད་ཡིག། ", "ཡིག་གེ།"],
        ["วันนี้ฝนตก ", "แม่น้ำเอ่อล้น ", "เด็ก ๆ ออกไป"],
        ["ຝົນຕົກ ", "ແມ່ນ້ຳຂຶ້ນ"],
        ["One here. ", "今天下雨了。", "Two there."],
    ],
)
def test_full_stops_of_other_scripts_end_sentences(sentences: list[str]) -> None:
    assert cut("".join(sentences)) == [sentence.strip() for sentence in sentences]


def test_overlong_sentence_is_split_into_equal_pieces() -> None:
    words = [f"word{number}" for number in range(10_000)]
    begin = time.process_time()
    sentences = cut(" ".join(words))
    assert time.process_time() - begin < 10
    assert " ".join(sentences).split() == words
    counts = [len(sentence.split()) for sentence in sentences]
    assert max(counts) <= MAX_WORDS
    assert min(counts) >= MAX_WORDS // 2 - 1  # no tiny pieces


@pytest.mark.parametrize("text", ["漢字。", '."', "\u200b", "a\n"], ids=ascii)
def test_segmentation_time_is_not_quadratic(text: str, model: SentenceTransformer) -> None:
    whole = text * (30_000 // len(text))
    begin = time.process_time()
    document = segment_document(Document("d", whole), LEARNED, splitting.tokenizer_counter(model.tokenizer))
    assert letters("".join(document.sentences)) == letters(whole)
    for view in (DocSplit(), make_view("crop")):
        for budget in (None, 100):
            assert draw_views(document, view, budget=budget) is not None
    PunktSegmenter.learn([whole])
    assert time.process_time() - begin < 60  # usually one or two seconds


def test_long_paragraphs_are_segmented_in_pieces() -> None:
    seen: list[str] = []

    def segmenter(text: str) -> list[str]:
        seen.append(text)
        return [text]

    text = "seven77 " * 8_000
    sentences = splitting.cut_sentences(text, segmenter)
    assert len(seen) > 1
    assert max(map(len, seen)) <= 20_000
    assert "".join(seen) == text
    assert set(" ".join(sentences).split()) == {"seven77"}  # none was split


@pytest.mark.parametrize("segmenter", [lambda x: [x[:-1]], lambda x: x.split("."), lambda x: x.split()[::-1]])
def test_segmenter_that_changes_the_text_is_an_error(segmenter: splitting.Segmenter) -> None:
    with pytest.raises(DataError, match="white space"):
        segment_document(Document("d", "Some Text. And more."), segmenter)


def test_blank_or_long_lines_are_paragraphs() -> None:
    assert split_paragraphs("a\nb\n\nc\n \t \n\n d \n") == ["a\nb", "c", "d"]
    assert split_paragraphs("a\r\n\r\nb\r\rc") == ["a", "b", "c"]
    assert split_paragraphs(" \n\n \n") == []
    long = "long " * 30
    assert split_paragraphs(f"title\n{long}\nend") == ["title", long.strip(), "end"]
    assert split_paragraphs(f"title\n{long}\n\nend") == [f"title\n{long.strip()}", "end"], "blank lines come first"
    assert split_paragraphs("x" * 121 + "\ny") == ["x" * 121, "y"]
    for wrapped in ("x" * 120 + "\ny", "This sentence is wrapped\nby hand. And so is\nthis one."):
        assert split_paragraphs(wrapped) == [wrapped]
    assert cut(wrapped) == ["This sentence is wrapped\nby hand.", "And so is\nthis one."]


def test_token_counts_match_the_tokenizer(model: SentenceTransformer, documents: list[str]) -> None:
    count = splitting.tokenizer_counter(model.tokenizer)
    sentences = [*cut(documents[0]), "never seen words", "Ba bei.", " ".join(["ba"] * 500)]
    assert count(sentences) == [len(model.tokenizer.tokenize(sentence)) for sentence in sentences]
    assert count(["ba, bei bo."]) == [5]
    assert count([]) == []
    segmented = segment_document(Document("d", "Ba bei. Bo, bun bis."), PunktSegmenter(), count)
    assert segmented.tokens == (3, 5)
    assert splitting.estimate_tokens(["a", "", "ten words " * 5, "漢" * 10]) == [1, 1, 13, 13]


def test_tokens_are_counted_in_bounded_batches(model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "TOKENIZED_CHARACTERS", 1000)
    asked: list[int] = []

    def tokenizer(texts: list[str], **options: object) -> object:
        asked.append(sum(map(len, texts)))
        return model.tokenizer(texts, **options)

    texts = ["ba " * number for number in (200, 1, 150, 400, 3)]
    assert splitting.tokenizer_counter(tokenizer)(texts) == [200, 1, 150, 400, 3]  # type: ignore[arg-type]
    assert asked == [603, 450, 1200, 9], "no more than so many characters, but for a text by itself"
    assert splitting.tokenizer_counter(tokenizer)([]) == []  # type: ignore[arg-type]


def test_in_batches_bounds_count_and_size() -> None:
    texts = ["x" * size for size in (4, 4, 4, 50, 1, 1, 1, 1)]
    found = list(in_batches(iter(texts), len, 10, 3))
    assert [text for group in found for text in group] == texts
    assert [[len(text) for text in group] for group in found] == [[4, 4], [4], [50], [1, 1, 1], [1]]
    assert [len(group) for group in in_batches(texts, len, 10)] == [2, 1, 1, 4]
    assert list(in_batches([], len, 10)) == []


SAMPLE = [
    "Dr. Smith came in. He saw Dr. Jones there. The patient of Dr. Smith slept. Dr. Brown was late, as always. "
    "Nobody had told Dr. Smith. They all went home. Dr. Jones drove the car. Then it rained. Dr. Brown got wet.",
    "Prof. Miller wrote a book. The book of Prof. Miller is long. Prof. Taylor read it. It took Prof. Taylor a week. "
    "Everybody likes Prof. Miller. Prof. Taylor does not say so. " * 3,
]
TEXT = "The door opened. Dr. Smith came in. He greeted Prof. Miller. Nobody spoke."
CUTS = ["The door opened.", "Dr. Smith came in.", "He greeted Prof. Miller.", "Nobody spoke."]


def test_punkt_learns_abbreviations() -> None:
    learned = PunktSegmenter.learn(SAMPLE)
    assert {"dr", "prof"} <= learned.parameters.abbrev_types
    assert learned(TEXT) == CUTS
    # ... and only because of what Punkt has learned
    assert "Dr." in PunktSegmenter()(TEXT)


def test_segmenters_are_found_by_name() -> None:
    with pytest.raises(ConfigurationError, match="'punkt' or"):
        make_segmenter("spacy", list)
    assert make_segmenter("punkt", lambda: SAMPLE)(TEXT) == CUTS
    assert make_segmenter(str.split, list)(TEXT) == TEXT.split()


def test_text_stays_whole_if_punkt_times_out(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    segmenter = PunktSegmenter()

    def spans(text: str) -> Iterator[tuple[int, int]]:
        yield (0, 4)
        raise TimeoutError("regular expression took too long")

    monkeypatch.setattr(segmenter._tokenizer, "span_tokenize", spans)
    with caplog.at_level(logging.WARNING):
        assert segmenter("One. Two.") == ["One. Two."]
    assert "One. Two." in caplog.text
