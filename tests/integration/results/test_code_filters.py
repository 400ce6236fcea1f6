"""Python code of tasks filters answers in real sandboxes, before they are scored."""

import json
from textwrap import dedent
from typing import cast

import pytest

from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.common.sandboxes.task_code.bubblewrap import LIMITS_OF_ANSWERS, make_code_runner
from services.results.scoring.code.filter_by_code import AnswerToFilter
from services.results.scoring.code.score_by_code import ScoreByCode
from services.results.scoring.compiled_scoring import InvalidScoring, compile_scoring
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer

CODE = """
    import re
    from lm_eval.filters.extraction import Filter, RegexFilter

    class Numbered(RegexFilter):
        def __init__(self, unit, **options):
            super().__init__(r"(\\d+)", **options)
            self.unit = unit
            self.seen = []

        def apply(self, resps, docs):
            self.seen += resps
            assert len(self.seen) == 1, "a filter sees one answer"
            found = super().apply(resps, docs)
            return [[f"{one} {self.unit} of {doc['row']}" for one in each] for each, doc in zip(found, docs)]

    class Pieces(Filter):
        def apply(self, resps, docs):
            return [[answer.split() for answer in answers] for answers in resps]

    def shout(resps, docs):
        return [[answer.upper() for answer in answers] for answers in resps]

    def swells(resps, docs):
        return [["x" * 8 * 1024 * 1024 if answers == ["many"] else answers[0]] for answers in resps]

    def fails(resps, docs):
        return [[1 / (len(resps[0][0]) - 3)]]
"""


Step = dict[str, object]


def step(name: str, **options: object) -> Step:
    return {"function": "custom", "code": f"own/utils.py:{name}", "options": options}


def scoring_by(*pipelines: tuple[str, list[Step]], digest: str = "d") -> TaskScoring:
    filters = [{"name": name, "filter": steps} for name, steps in pipelines]
    uses = (MetricUse("exact_match"),)
    return TaskScoring(OutputType.GENERATE_UNTIL, uses, json.dumps(filters), code_digest=digest)


async def filtered(scoring: TaskScoring, *texts: str, is_off: bool = False) -> list[object]:
    """What is left of answers by pipeline, or why nothing is."""
    runner = make_code_runner("off" if is_off else "sandbox", None, LIMITS_OF_ANSWERS)
    given = [
        AnswerToFilter(number, f'{{"row": {number}}}', Answer(text)) for number, text in enumerate(texts)
    ]
    files = {"own/utils.py": dedent(CODE).encode()}
    found = await ScoreByCode(runner).filter(compile_scoring(scoring), files, given)
    return [str(one) if isinstance(one, ScoringImpossible) else one for one in found]


async def test_classes_with_options_and_functions_filter_answers_by_their_rows() -> None:
    pipelines: tuple[tuple[str, list[Step]], ...] = (
        (
            "counted",
            [step("Numbered", unit="pears", group_select=-1), step("shout"), {"function": "take_first"}],
        ),
        ("cut", [{"function": "regex", "regex_pattern": "is (.*)"}, step("shout")]),
        ("plain", [{"function": "take_first"}]),
    )
    found = await filtered(scoring_by(*pipelines), "It is 3 or 4", "<think>9</think>none")
    assert found == [
        {"counted": "4 PEARS OF 0", "cut": "3 OR 4"},
        {"counted": "[INVALID] PEARS OF 1", "cut": "[INVALID]"},
    ]


async def test_what_a_filter_leaves_is_scored_after_the_steps_behind_it() -> None:
    steps: list[Step] = [step("shout"), {"function": "lowercase"}, {"function": "take_first"}]
    task = scoring_by(("own", steps))
    [left] = await filtered(task, "Yes")
    score = score_answer(
        compile_scoring(task), ScoringTarget(texts=("yes",)), Answer("Yes"), cast("dict[str, object]", left)
    )
    assert (score.scores, score.prediction) == ({"exact_match": 1.0}, "yes")


@pytest.mark.parametrize("left", ["[invalid]", "", ["a", "b"], None, 3])
def test_what_is_no_text_or_the_fallback_is_unparsed(left: object) -> None:
    scoring = compile_scoring(scoring_by(("own", [step("shout")])))
    score = score_answer(scoring, ScoringTarget(texts=("[invalid]",)), Answer("x"), {"own": left})
    assert score.is_unparsed
    assert score.scores == {"exact_match": 0.0}


async def test_code_that_scores_gets_whatever_a_filter_leaves() -> None:
    task = scoring_by(("own", [step("Pieces"), {"function": "take_first"}]))
    assert await filtered(task, "a b", "c") == [{"own": ["a", "b"]}, {"own": ["c"]}]


async def test_a_filter_that_fails_fails_its_answer_alone() -> None:
    found = await filtered(scoring_by(("own", [step("fails")])), "four", "one", "five")
    assert found[::2] == [{"own": 1.0}, {"own": 1.0}]
    assert str(found[1]).startswith("the code of the task failed in filter_list (own/utils.py, line ")
    assert str(found[1]).endswith("): ZeroDivisionError: division by zero")


async def test_a_filter_that_makes_megabytes_of_an_answer_fails_it_alone() -> None:
    found = await filtered(scoring_by(("own", [step("swells")])), "one", "many", "two")
    assert found[::2] == [{"own": "one"}, {"own": "two"}]
    assert found[1] == "the code of the task wrote a line of more than 4 MiB"


async def test_without_its_code_nothing_is_filtered() -> None:
    task = scoring_by(("own", [step("shout")]))
    [why] = await filtered(task, "x", is_off=True)
    assert "PROCTOR_TASK_CODE=sandbox" in str(why)
    with pytest.raises(ScoringImpossible, match="was not executed"):
        score_answer(compile_scoring(task), ScoringTarget(texts=("x",)), Answer("x"))
    with pytest.raises(InvalidScoring, match="is Python code of the task, which is not used here"):
        compile_scoring(scoring_by(("own", [step("shout")]), digest=""))
