"""Lines of lm-evaluation-harness: what is written where an answer cannot be read again."""

import json
from dataclasses import replace

from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.export.lm_eval_samples import UNREADABLE, sample_lines
from services.results.outcomes.outcome import ListedOutcome
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.score import ScoringTarget
from tests.fakes.results.recorded_run import (
    TEXT_SCORING,
    choice_sample,
    logprob_answer,
    plan_of,
    said,
    scored,
)


def test_an_answer_whose_pattern_is_too_slow_by_now_ends_no_export() -> None:
    slow = [{"name": "slow", "filter": [{"function": "regex", "regex_pattern": "(?:a|b|ab)*[cd]"}]}]
    task = replace(plan_of([1]).tasks[0], scoring=replace(TEXT_SCORING, filters_json=json.dumps(slow)))
    listed = ListedOutcome(task, choice_sample(0), scored("run", said(0, "ab" * 60)))
    [line] = sample_lines(listed, compile_scoring(task.scoring))
    assert (line["resps"], line["filtered_resps"]) == ([["ab" * 60]], [UNREADABLE])


def test_what_another_tool_read_from_an_answer_is_written_as_it_came() -> None:
    task = replace(plan_of([1]).tasks[0], scoring=replace(TEXT_SCORING, is_logged=True))
    recorded = replace(scored("run", said(0, "It is 5.")), prediction="5")
    listed = ListedOutcome(task, choice_sample(0), recorded)
    [line] = sample_lines(listed, compile_scoring(task.scoring))
    assert (line["resps"], line["filtered_resps"]) == ([["It is 5."]], ["5"])
    listed = replace(listed, scored=replace(recorded, prediction=""))
    assert sample_lines(listed, compile_scoring(task.scoring))[0]["filtered_resps"] == [UNREADABLE]


def test_contexts_are_written_before_the_text_that_follows_each() -> None:
    target = ScoringTarget(("Ann left.", "Bob left."), 0, choice_ending=" left.")
    task, sample = plan_of([1]).tasks[0], replace(choice_sample(0), target=target)
    listed = ListedOutcome(
        task, sample, scored("run", replace(said(0, ""), result=logprob_answer((-1.0, -2.0))))
    )
    [line] = sample_lines(listed, compile_scoring(task.scoring))
    asked = f"{sample.prompt.as_text}"
    assert line["arguments"] == {
        "gen_args_0": {"arg_0": f"{asked}Ann", "arg_1": " left."},
        "gen_args_1": {"arg_0": f"{asked}Bob", "arg_1": " left."},
    }


def test_a_whole_text_is_written_as_one_argument_with_its_log_probability() -> None:
    scoring = TaskScoring(OutputType.LOGLIKELIHOOD_ROLLING, (MetricUse("word_perplexity"),))
    task = replace(plan_of([1]).tasks[0], scoring=scoring)
    sample = replace(choice_sample(0), target=ScoringTarget(("Cats purr.",), 0))
    recorded = scored("run", replace(said(0, ""), result=logprob_answer((-12.5,))))
    [line] = sample_lines(ListedOutcome(task, sample, recorded), compile_scoring(scoring))
    assert line["arguments"] == {"gen_args_0": {"arg_0": "Cats purr."}}
    assert (line["resps"], line["filtered_resps"]) == ([["-12.5"]], ["-12.5"])
