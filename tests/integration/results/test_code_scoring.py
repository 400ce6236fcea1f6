"""Python code of tasks scores answers, executed in real sandboxes: what it makes, and what it cannot do."""

import json
import math
from dataclasses import replace
from textwrap import dedent

import pytest

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.task_code.bubblewrap import BubblewrapCode, CodeLimits
from services.common.sandboxes.task_code.ports import CodeEnded
from services.results.scoring.code.figures_by_code import CodeFigure, figures_by_code
from services.results.scoring.code.score_by_code import AnswerToCode, ScoreByCode
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.ports import AnswerToScore, Scored
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.scoring.timed_regex import SlowTime
from services.results.summaries.corpus_figures import corpus_figures
from tests.fakes.thorough_cases import every_third

MIB = 1024**2
LIMITS = CodeLimits(seconds=6.0, memory_bytes=192 * MIB, output_bytes=8 * MIB, line_bytes=MIB)
TEXT = TaskScoring(
    OutputType.GENERATE_UNTIL, (MetricUse("words"),), process_results="own/utils.py:score", code_digest="d"
)


@pytest.fixture(scope="module")
def runner() -> BubblewrapCode:
    return BubblewrapCode(BubblewrapEngine(find_bubblewrap()), limits=LIMITS)


async def scored(
    runner: BubblewrapCode | None, code: str, scoring: TaskScoring, answers: list[Answer], gold: str = "yes"
) -> list[Scored]:
    compiled = compile_scoring(scoring)
    target = ScoringTarget(texts=(gold,), choices=(" a", " b"), choice=0)
    given = [
        AnswerToCode(
            number,
            f'{{"row": {number}}}',
            AnswerToScore(target, answer),
            score_answer(compiled, target, answer),
        )
        for number, answer in enumerate(answers)
    ]
    files = {"own/utils.py": dedent(code).encode()}
    return list(await ScoreByCode(runner).score(compiled, files, given))


async def numbers(runner: BubblewrapCode, code: str, scoring: TaskScoring = TEXT) -> list[object]:
    """What each of three answers scores, or why it has no score."""
    found = await scored(runner, code, scoring, [Answer("one"), Answer("two two"), Answer("three")])
    return [str(one) if isinstance(one, ScoringImpossible) else dict(one.stored) for one in found]


async def test_process_results_gives_the_values_of_all_metrics(runner: BubblewrapCode) -> None:
    code = """
        import random

        def score(doc, results):
            print("noise")
            return {"words": len(results[0].split()), "even": doc["row"] % 2 == 0, "other": "left out",
                    "drawn": random.random()}
    """
    uses = tuple(MetricUse(name) for name in ("words", "even", "absent", "drawn"))
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, uses, process_results="own/utils.py:score")
    first, second = await numbers(runner, code, scoring), await numbers(runner, code, scoring)
    assert [{key: one[key] for key in ("words", "even")} for one in first if isinstance(one, dict)] == [
        {"words": 1.0, "even": 1.0},
        {"words": 2.0, "even": 0.0},
        {"words": 1.0, "even": 1.0},
    ]
    # What is drawn at random depends on the number of the sample alone.
    assert first == second


async def test_code_gets_the_log_probabilities_of_choices(runner: BubblewrapCode) -> None:
    code = """
        def score(doc, results):
            (first, is_greedy), (second, _) = results
            return {"margin": first - second, "greedy": is_greedy}
    """
    uses = (MetricUse("margin"), MetricUse("greedy"), MetricUse("acc"))
    scoring = TaskScoring(OutputType.MULTIPLE_CHOICE, uses[:2], process_results="own/utils.py:score")
    answer = Answer(choices=(ChoiceScore(-1.0, is_greedy=True), ChoiceScore(-3.5, is_greedy=False)))
    [found] = await scored(runner, code, scoring, [answer])
    assert not isinstance(found, ScoringImpossible)
    assert found.stored == {"margin": 2.5, "greedy": 1.0}
    assert found.prediction == "a"


async def test_metrics_are_called_as_lm_evaluation_harness_calls_them(runner: BubblewrapCode) -> None:
    code = """
        def length(references, predictions, factor):
            return len(predictions[0]) * factor

        def pair(items):
            return items[0] + "/" + items[1]

        def several(references, predictions):
            return {"several": 3, "others": 4}
    """
    uses = (
        MetricUse("length", '{"factor": 10}', "own/utils.py:length"),
        MetricUse("pair", "", "own/utils.py:pair", "own/utils.py:length"),
        MetricUse("several", "", "own/utils.py:several"),
        MetricUse("f1", "", "", "own/utils.py:length"),
        MetricUse("exact_match"),
    )
    steps = [{"function": "regex", "regex_pattern": "(two)"}, {"function": "take_first"}]
    filters = json.dumps([{"name": "words", "filter": steps}])
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, uses, filters)
    others = {"several": 3.0, "exact_match": 0.0}
    unread = {"length": 90.0, "pair": "yes/[invalid]", "f1": ["yes", "[invalid]"], **others}
    read = {"length": 30.0, "pair": "yes/two", "f1": ["yes", "two"], **others}
    assert await numbers(runner, code, scoring) == [unread, read, unread]
    by_sum = (MetricUse("f1", "", "", "own/utils.py:length"),)
    of_all = TaskScoring(
        OutputType.GENERATE_UNTIL, by_sum, json.dumps([{"name": "words", "filter": steps[:1]}])
    )
    # Without take_first a filter leaves a list there.
    assert (await numbers(runner, code, of_all))[1] == {"f1": ["yes", ["two"]]}


_FAILED = "failed in process_results (own/utils.py, line 4): "
_FORGED = """import os
        for file in range(3, 9):
            try: os.write(file, b'{}\\n' * 9)
            except OSError: pass
        os._exit(0)"""
_OPENED = "import urllib.request; urllib.request.urlopen('http://198.51.100.1', timeout=2)"
_WRITTEN = "import os\n        while True: os.write(2, b'x' * 65536)"
# Of three answers the code fails at the second.
FAILURES = {
    "an error": ("raise ValueError('no')", f"{_FAILED}ValueError: no"),
    "a text": ("return {'words': 'many'}", "makes a str for words, not a number"),
    "no dict": ("return 3", "failed in process_results: TypeError: it returned int"),
    "an end": ("import os; os._exit(0)", "ended before its last row"),
    "an exit": ("raise SystemExit(2)", "failed in process_results at row 1"),
    "a kill": ("import os; os.kill(os.getpid(), 9)", "ended with exit code 137"),
    "a loop": ("while True: pass", "took more than 6 s"),
    "memory": ("x = bytearray(10**10)", ""),
    "output": (_WRITTEN, "wrote more than 8 MiB"),
    "the network": (_OPENED, f"{_FAILED}urllib.error.URLError"),
    "a file": ("open('/task/files/own/utils.py', 'a')", f"{_FAILED}PermissionError"),
    "processes": ("import os\n        while True: os.fork()", ""),
    "forged lines": (_FORGED, ""),
}
# What writes lines of other answers leaves none of them.
FORGING = ("processes", "forged lines")


@pytest.mark.parametrize("name", every_third(FAILURES))
async def test_a_failure_of_the_code_is_that_of_one_answer_and_no_score(
    runner: BubblewrapCode, name: str
) -> None:
    statement, said = FAILURES[name]
    code = f"def score(doc, results):\n    if doc['row'] == 1:\n        pass\n        {statement}\n"
    first, second, third = await numbers(runner, f"{code}    return {{'words': 1}}\n")
    assert str(second).startswith(f"the code of the task {said}"), second
    if name not in FORGING:
        assert [first, third] == [{"words": 1.0}] * 2


async def test_values_that_cannot_be_kept_are_those_of_one_answer(runner: BubblewrapCode) -> None:
    code = """
        VALUES = [10**400, float("inf"), [float("nan")], ["a\\0", "\\ud800", "\\\\u0000 \U0001f600"], 1]

        def score(doc, results):
            return {"words": VALUES[doc["row"]]}
    """
    use = MetricUse("words", aggregation="own/utils.py:score")
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, (use,), process_results="own/utils.py:score")
    huge, infinite, nested, text, number = await scored(runner, code, scoring, [Answer("")] * 5)
    assert str(huge).endswith("000 for words, which is no number from -1e+100 to 1e+100")
    assert str(infinite).startswith("the code of the task makes inf for words")
    assert "a value for words that cannot be kept" in str(nested)
    assert not isinstance(text, ScoringImpossible)
    assert not isinstance(number, ScoringImpossible)
    assert text.stored == {"words": ["a\ufffd", "\ufffd", "\\u0000 \U0001f600"]}
    assert number.stored == {"words": 1.0}


async def test_code_that_never_ends_is_given_up() -> None:
    compiled = replace(compile_scoring(TEXT), code_time=SlowTime(0.5))
    runner = BubblewrapCode(BubblewrapEngine(find_bubblewrap()), limits=CodeLimits(seconds=1.0))
    target, answer = ScoringTarget(texts=("yes",)), Answer("one")
    given = [AnswerToCode(0, "{}", AnswerToScore(target, answer), score_answer(compiled, target, answer))] * 2
    files = {"own/utils.py": b"def score(doc, results):\n    while True: pass\n"}
    first, second = [await ScoreByCode(runner).score(compiled, files, given) for _ in range(2)]
    assert [str(one) for one in first] == ["the code of the task took more than 1 s"] * 2
    assert all("at other answers" in str(one) for one in second)


async def test_what_an_error_says_can_be_stored(runner: BubblewrapCode) -> None:
    first, *_ = await numbers(runner, "def score(doc, results):\n    raise ValueError('a\\0\\ud800')\n")
    assert str(first).endswith("ValueError: a\ufffd\ufffd")
    quits = r"""
        def score(doc, results):
            import os
            os.write(2, b"a\0")
            os._exit(1)
    """
    first, *_ = await numbers(runner, quits)
    assert str(first).endswith("before its last line: a\ufffd")


async def test_code_that_keeps_something_between_answers_scores_none(runner: BubblewrapCode) -> None:
    code = """
        seen = []

        def score(doc, results):
            seen.append(doc)
            return {"words": len(seen)}
    """
    assert all("may keep nothing between two rows" in str(one) for one in await numbers(runner, code))


async def test_without_a_runner_answers_are_not_scored_and_say_why() -> None:
    [found] = await scored(None, "", TEXT, [Answer("one")])
    assert "set PROCTOR_TASK_CODE=sandbox" in str(found)


def figures(runner: BubblewrapCode, code: str, values: list[object]) -> CodeFigure:
    scoring = TaskScoring(
        OutputType.MULTIPLE_CHOICE, (MetricUse("f1", aggregation="own/utils.py:agg"),), code_digest="d"
    )
    scores = [(number, {"f1": value}) for number, value in enumerate(values)]
    files = {"own/utils.py": dedent(code).encode()}
    return figures_by_code(runner, compile_scoring(scoring), files, scores)["f1"]


_SHARE = """
    def agg(items):
        golds, predictions = zip(*items)
        return sum(one == other for one, other in zip(golds, predictions)) / len(golds)
"""


def test_code_makes_a_figure_of_all_answers_with_draws_of_a_bootstrap(runner: BubblewrapCode) -> None:
    pairs: list[object] = [(1, 1), (0, 1), (0, 0), (1, 1)]
    made = figures(runner, _SHARE, pairs)
    assert made.figure == 0.75
    assert len(made.draws) == 200
    assert 0.7 < sum(made.draws) / 200 < 0.8


def test_a_figure_that_fails_says_why(runner: BubblewrapCode) -> None:
    made = figures(runner, "def agg(items):\n    return 1 / 0\n", [1, 2])
    assert made.figure is None
    assert made.problem.startswith("the code of the task failed in f1 (own/utils.py, line 2): Zero")
    with pytest.raises(CodeEnded, match="took more than 6 s"):
        figures(runner, "def agg(items):\n    while True: pass\n", [1, 2])


_WRITES = """
    import os

    def agg(items):
        os.write(3, b'{"metric": %s, "figure": 1, "draws": [1%s]}' + bytes([10]))
        return 1
"""


def test_a_figure_is_a_number_whatever_the_code_writes(runner: BubblewrapCode) -> None:
    made = figures(runner, "def agg(items):\n    return float('nan')\n", [1, 2])
    assert (made.figure, made.draws) == (None, ())
    assert made.problem.startswith("the code of the task makes nan, which is no number from ")
    for metric, more, said in (
        ("[1]", "", "a line that is no figure"),
        ('"f1"', ', "x"', "a draw that is no"),
    ):
        with pytest.raises(CodeEnded, match=f"wrote {said}"):
            figures(runner, _WRITES % (metric, more), [1])
    # The program's own line replaces it.
    assert figures(runner, _WRITES % ('"f1"', "0" * 400), [1]).figure == 1.0


async def test_log_probabilities_of_texts_are_given_alone_and_summed_up_with_what_they_are_divided_by(
    runner: BubblewrapCode,
) -> None:
    code = """
        def score(doc, results):
            [logprob] = results
            words = "two" if doc["row"] else 2
            return {"per_word": (logprob, words), "alone": logprob}
    """
    uses = (
        MetricUse("per_word", aggregation="weighted_perplexity", less_is_better=True),
        MetricUse("alone", aggregation="perplexity", less_is_better=True),
    )
    scoring = TaskScoring(
        OutputType.LOGLIKELIHOOD_ROLLING, uses, process_results="own/utils.py:score", code_digest="d"
    )
    weighed = Answer(choices=(ChoiceScore(-6.0, is_greedy=False),))
    compiled = compile_scoring(scoring)
    target = ScoringTarget((" a text",), 0)
    to_score = AnswerToScore(target, weighed)
    given = [
        AnswerToCode(row, f'{{"row": {row}}}', to_score, score_answer(compiled, target, weighed))
        for row in (0, 1)
    ]
    files = {"own/utils.py": dedent(code).encode()}
    first, second = await ScoreByCode(runner).score(compiled, files, given)
    assert not isinstance(first, ScoringImpossible)
    assert first.stored == {"per_word": [-6.0, 2.0], "alone": [-6.0, 1.0]}
    assert isinstance(second, ScoringImpossible)
    figures = corpus_figures(compiled, [(0, first.stored)], None)
    assert {name: figure.mean for name, figure in figures.items()} == {
        "per_word": pytest.approx(math.exp(3)),
        "alone": pytest.approx(math.exp(6)),
    }
