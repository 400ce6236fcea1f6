"""Instructions of IFEval: which of them an answer follows, and which targets cannot be held against any."""

import json
from collections.abc import Mapping, Sequence

import pytest

from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.instructions.checks import CHECKS
from services.results.scoring.instructions.followed import FollowedInstructions
from services.results.scoring.score import Score, ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.summaries.corpus_figures import corpus_figures

NAMES = (
    *("prompt_level_strict_acc", "inst_level_strict_acc"),
    *("prompt_level_loose_acc", "inst_level_loose_acc"),
)
SCORING = compile_scoring(TaskScoring(OutputType.GENERATE_UNTIL, tuple(map(MetricUse, NAMES))))
NO_COMMA, WORDS = "punctuation:no_comma", "length_constraints:number_words"


def target(*asked: tuple[str, Mapping[str, object]]) -> str:
    names, parameters = [name for name, _ in asked], [given for _, given in asked]
    return json.dumps({"instruction_id_list": names, "kwargs": parameters})


def scored(answer: str, *asked: tuple[str, Mapping[str, object]]) -> Score:
    return score_answer(SCORING, ScoringTarget(texts=(target(*asked),)), Answer(answer))


def followed(answer: str, name: str, **given: object) -> bool:
    [is_followed] = FollowedInstructions(is_loose=False).followed(answer, [target((name, given))])
    return is_followed


def test_a_prompt_counts_as_a_whole_and_its_instructions_one_by_one() -> None:
    asked: list[tuple[str, Mapping[str, object]]] = [
        (NO_COMMA, {}),
        (WORDS, {"num_words": 3, "relation": "at least"}),
    ]
    scores = [scored("one, two, three", *asked), scored("one two three", *asked)]
    assert [score.scores["prompt_level_strict_acc"] for score in scores] == [0.0, 1.0]
    assert [score.values["inst_level_strict_acc"] for score in scores] == [[1.0, 2.0], [2.0, 2.0]]
    figures = corpus_figures(SCORING, [(n, score.stored) for n, score in enumerate(scores)], None)
    assert figures["inst_level_strict_acc"].mean == pytest.approx(3 / 4)
    assert figures["inst_level_strict_acc"].n == 2


@pytest.mark.parametrize("answer", ["Sure, here:\nno commas", "no commas\nbye, then", "a,\nno commas\nb,"])
def test_loosely_the_first_and_the_last_line_may_be_left_out(answer: str) -> None:
    score = scored(answer, (NO_COMMA, {}))
    assert score.scores == {"prompt_level_strict_acc": 0.0, "prompt_level_loose_acc": 1.0}


def test_loosely_stars_may_be_left_out() -> None:
    score = scored('*"a"*', ("startend:quotation", {}))
    assert score.scores == {"prompt_level_strict_acc": 0.0, "prompt_level_loose_acc": 1.0}


@pytest.mark.parametrize("answer", ["", " \n "])
def test_an_empty_answer_is_unparsed_and_follows_nothing(answer: str) -> None:
    score = scored(answer, (NO_COMMA, {}), (WORDS, {"num_words": 9, "relation": "less than"}))
    assert score.is_unparsed
    assert score.stored == {
        "prompt_level_strict_acc": 0.0,
        "inst_level_strict_acc": [0.0, 2.0],
        "prompt_level_loose_acc": 0.0,
        "inst_level_loose_acc": [0.0, 2.0],
    }


def test_a_letter_that_is_none_of_the_alphabet_is_counted() -> None:
    given = {"letter": "#", "let_frequency": 2, "let_relation": "at least"}
    assert followed("# one # two", "keywords:letter_frequency", **given)
    assert not followed("# one", "keywords:letter_frequency", **given)


def test_a_language_is_the_same_at_each_time() -> None:
    text = "no si la ma"
    answers = {followed(text, "language:response_language", language="es") for _ in range(20)}
    assert len(answers) == 1


def test_what_no_word_says_is_of_any_language() -> None:
    assert followed("42 : 7", "language:response_language", language="th")
    assert not followed("The river is long.", "language:response_language", language="th")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "[]",
        "{}",
        '{"instruction_id_list": [], "kwargs": []}',
        '{"instruction_id_list": ["punctuation:no_comma"]}',
        '{"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}',
        '{"instruction_id_list": ["punctuation:no_comma"], "kwargs": [5]}',
        '{"instruction_id_list": [["a"]], "kwargs": [{}]}',
        '{"instruction_id_list": ["punctuation:no_colon"], "kwargs": [{}]}',
        "[" * 100_000,
    ],
)
def test_a_target_that_names_no_instructions_is_refused(text: str) -> None:
    with pytest.raises(ScoringImpossible):
        FollowedInstructions(is_loose=False).check([text])


@pytest.mark.parametrize(
    ("name", "given"),
    [
        (WORDS, {"relation": "at least"}),
        (WORDS, {"num_words": None, "relation": "at least"}),
        (WORDS, {"num_words": 3, "relation": "about"}),
        (WORDS, {"num_words": -1, "relation": "at least"}),
        (WORDS, {"num_words": 2.5, "relation": "at least"}),
        (WORDS, {"num_words": float("inf"), "relation": "at least"}),
        ("keywords:existence", {"keywords": []}),
        ("keywords:existence", {"keywords": "river"}),
        ("keywords:existence", {"keywords": ["("]}),
        ("keywords:forbidden_words", {"forbidden_words": ["a" * 6000]}),
        ("keywords:letter_frequency", {"letter": "ab", "let_frequency": 1, "let_relation": "at least"}),
        ("combination:repeat_prompt", {"prompt_to_repeat": None}),
    ],
)
def test_an_instruction_without_its_parameters_is_refused_by_its_name(
    name: str, given: Mapping[str, object]
) -> None:
    with pytest.raises(ScoringImpossible, match=name):
        FollowedInstructions(is_loose=True).check([target((name, given))])


def test_numbers_may_be_written_with_a_point() -> None:
    assert followed("one two three", WORDS, num_words=3.0, relation="at least")


def test_a_keyword_that_backtracks_is_a_failure_in_time() -> None:
    with pytest.raises(ScoringImpossible, match="took over"):
        followed("a" * 5000 + "!", "keywords:existence", keywords=["(a|a)*$", "(a+)+$"])


@pytest.mark.parametrize("name", CHECKS)
def test_every_instruction_reads_any_answer(name: str) -> None:
    given: Mapping[str, object] = {
        **dict.fromkeys(("num_words", "num_sentences", "num_paragraphs", "nth_paragraph"), 1),
        **dict.fromkeys(("num_placeholders", "num_bullets", "num_highlights", "num_sections"), 1),
        **dict.fromkeys(("frequency", "let_frequency", "capital_frequency"), 1),
        **dict.fromkeys(("relation", "let_relation", "capital_relation"), "at least"),
        **dict.fromkeys(("keyword", "letter", "first_word", "postscript_marker", "language"), "a"),
        **dict.fromkeys(("section_spliter", "prompt_to_repeat", "end_phrase"), "a"),
        **{key: ["a"] for key in ("keywords", "forbidden_words")},
    }
    answers: Sequence[str] = ("a", "*", '"', "******", "***", "\n\n", "```", "\x00", "𝔸" * 50, "{" * 5000)
    for answer in answers:
        assert followed(answer, name, **given) in (True, False)
