"""Tables of comparisons, leaderboards, suites and samples, on 80 columns as well."""

import io

import pytest
from rich.console import Console

from proctor.cli.models import print_models
from proctor.cli.results.compare import print_comparison, print_flips
from proctor.cli.results.figures import print_summary
from proctor.cli.results.leaderboard import history_table, print_leaderboard
from proctor.cli.runs.commands import print_runs
from proctor.cli.suites.commands import print_sample, suites_table
from proctor.v1 import (
    comparison_pb2,
    leaderboard_pb2,
    leaderboard_service_pb2,
    model_pb2,
    run_pb2,
    sample_pb2,
    summary_pb2,
)
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from tests.fakes.gateway.compared_runs import two_models

RUN = "1b671a64-40d5-491e-99b0-da01ff1f3341"


class Shown:
    """A console of a width, and what it shows."""

    def __init__(self, width: int = 80, *, is_terminal: bool = True) -> None:
        self._file = io.StringIO()
        self.console = Console(
            file=self._file,
            width=width,
            force_terminal=is_terminal,
            color_system=None,
            highlight=False,
            markup=False,
        )

    @property
    def text(self) -> str:
        return self._file.getvalue()

    def lines(self, *words: str) -> list[str]:
        return [line for line in self.text.splitlines() if all(word in line for word in words)]


def figure(metric: str, mean: float) -> summary_pb2.MetricFigure:
    return summary_pb2.MetricFigure(metric=metric, mean=mean, ci_low=mean - 0.02, ci_high=mean + 0.02, n=872)


@pytest.mark.parametrize("width", [80, 120])
def test_comparison_has_a_row_per_task_with_its_verdict(width: int) -> None:
    shown = Shown(width)
    print_comparison(shown.console, two_models())
    [rte] = shown.lines("rte", "B is better")
    assert "-0.0600" in rte
    assert "-0.0800 to -0.0400" in rte
    assert shown.lines("all tasks", "-0.0200", "0.060", "not shown")
    assert max(map(len, shown.text.splitlines())) <= width


def test_comparison_says_what_must_be_known_to_read_it() -> None:
    shown = Shown(200)
    print_comparison(shown.console, two_models())
    assert shown.lines("all tasks (acc): 400 pairs would have shown a difference of 0.0400", "not equal")
    assert shown.lines("2 answers were unparsed", "without them the difference is -0.0190")
    assert shown.lines("(acc): the verdict depends on unparsed", "without them B is better (-0.0190)")
    assert shown.lines("0.8000 on the whole benchmark, 12.5% unparsed")
    assert shown.lines("cola (mcc): only one pair")
    assert shown.lines("corrected (Holm) over 3 tests")
    assert shown.lines("Note: qqp: only a has it")
    conditions = shown.lines("temperature in rte", "0", "1.0")
    assert len(conditions) == 1
    assert shown.text.index("temperature in rte") < shown.text.index("B is better")
    assert shown.lines("loglikelihood, 0.8000 on the whole benchmark")


def test_flips_show_both_answers_with_their_blanks() -> None:
    shown = Shown()
    flip = comparison_pb2.Flip(
        task="sst2", doc_id=17, prompt="Q: \x1b[31m?", target="yes", first_prediction=" yes", first_score=1
    )
    print_flips(shown.console, [flip])
    assert shown.lines("sst2 row 17")
    assert shown.lines("A 1", '" yes"')
    assert shown.lines("B 0", '""')
    assert "\x1b" not in shown.text


def leaderboard() -> leaderboard_service_pb2.GetLeaderboardResponse:
    found = leaderboard_service_pb2.GetLeaderboardResponse(metric="acc", total_models=12)
    first = leaderboard_pb2.LeaderboardEntry(
        rank=1, model="vllm/a", figure=figure("acc", 0.83), tied_with=["vllm/b"]
    )
    first.trend.direction, first.trend.difference = leaderboard_pb2.TREND_DIRECTION_UP, 0.0134
    second = leaderboard_pb2.LeaderboardEntry(
        rank=1, model="vllm/b", figure=figure("acc", 0.82), tied_with=["vllm/a"]
    )
    second.is_selected_best = True
    found.entries.extend([first, second])
    found.baselines.add(model="baseline/majority", figure=summary_pb2.MetricFigure(mean=0.5))
    reasons = ["shots 5 instead of 0", "limit 9 instead of none"]
    found.unranked.add(model="vllm/c", run_id="r1", unranked_because=reasons)
    found.entries[0].unparsed_rate, found.unranked[0].unparsed_rate = 0.0123, 0.25
    found.conditions.add(name="temperature", value="0")
    found.conditions.add(name="seed", value="none")
    return found


def test_leaderboard_shows_ties_trends_baselines_and_who_is_unranked() -> None:
    shown = Shown()
    print_leaderboard(shown.console, "glue", leaderboard())
    assert shown.lines("1=", "vllm/a", "0.8300", "0.8100 to 0.8500", "up +0.0134")
    assert shown.lines("1=", "vllm/a", "1.2%")
    assert shown.lines("vllm/c: 25.0% of the answers could not be parsed")
    assert not shown.lines("vllm/a: 1.2%")
    assert shown.lines("1=", "vllm/b *")
    assert shown.lines("* the best of several runs: selected")
    assert shown.lines("baseline/majority", "0.5000")
    assert shown.lines("vllm/c  –, 25.0% unparsed")
    assert shown.lines("   run r1: shots 5 instead of 0; limit 9 instead of none")
    assert shown.lines("conditions: temperature 0")
    assert shown.lines("10 more: --max-entries 12")


def test_leaderboard_of_a_data_set_is_named_on_one_line() -> None:
    shown = Shown()
    dataset_leaderboard = leaderboard_service_pb2.GetLeaderboardResponse(
        metric="score", scoring_method=run_pb2.SCORING_METHOD_GENERATE
    )
    print_leaderboard(shown.console, f"ds_{32 * 'a'}", dataset_leaderboard)
    assert shown.lines(f"ds_{32 * 'a'} by score, scored by generate")


def test_history_shows_the_whole_run_id_on_80_columns() -> None:
    shown = Shown()
    run = leaderboard_pb2.LeaderboardEntry(
        run_id=RUN, model="vllm/Qwen/Qwen3-0.6B", benchmark="glue", state=run_pb2.RUN_STATE_COMPLETED
    )
    run.figure.CopyFrom(figure("acc", 0.83))
    shown.console.print(history_table(shown.console, [run]))
    assert shown.lines(RUN, "completed")
    assert shown.lines("vllm/Qwen/Qwen3-0.6B", "glue", "0.8300 ± 0.0200")


def test_runs_show_the_whole_run_id_on_80_columns() -> None:
    shown = Shown()
    order = run_pb2.RunOrder(suite="truthfulqa", model="vllm/Qwen/Qwen3-0.6B", project_id=7)
    run = run_pb2.Run(run_id=RUN, order=order, state=run_pb2.RUN_STATE_COMPLETED)
    run.created_at.FromSeconds(1_700_000_000)
    print_runs(shown.console, scheduler_pb2.ListRunsResponse(runs=[run]))
    assert shown.lines("vllm/Qwen/Qwen3-0.6B", "truthfulqa", "2023-11-14", "completed")
    assert shown.lines(RUN, "7", "22:13:20")


def test_suites_and_models_are_folded_between_words_on_80_columns() -> None:
    shown = Shown()
    tasks = [scheduler_pb2.TaskInfo(task=f"task_{number}") for number in range(12)]
    about = "Nine tasks of general understanding"
    suite = scheduler_pb2.SuiteInfo(suite="glue", description=about, version=3, tasks=tasks)
    model = model_pb2.ModelInfo(model=f"vllm/{'long/' * 14}name", pool="local", is_loaded=True)
    shown.console.print(suites_table(shown.console, [suite]))
    print_models(shown.console, scheduler_pb2.ListModelsResponse(models=[model]))
    assert shown.lines("glue (version 3)", "task_0,", "Nine tasks")
    assert shown.lines("vllm/long/", "yes")
    assert all(f"task_{number}" in shown.text for number in range(12))
    assert max(map(len, shown.text.splitlines())) <= 80


def test_models_are_listed_by_pool_with_their_memory_and_pools_without_an_answer() -> None:
    shown = Shown()
    big = model_pb2.ModelInfo(model="ollama/big", pool="gpu", quantization="Q4_K_M", context_tokens=131072)
    big.size_bytes, big.memory_bytes = 1_321_098_329, 2_101_098_329
    big.capabilities.chat = big.capabilities.seed = True
    bare = model_pb2.ModelInfo(model="vllm/bare", pool="local", problem="Its folder does not exist.")
    quiet = scheduler_pb2.ModelSource(pool="far", provider="gemini", problem="No answer within 2 s.")
    reported = scheduler_pb2.ModelSource(pool="gpu", provider="ollama")
    listed = scheduler_pb2.ListModelsResponse(models=[big, bare], sources=[quiet, reported])
    print_models(shown.console, listed)
    assert shown.lines("ollama · pool gpu · can chat, seed")
    assert shown.lines("ollama/big", "131,072", "1.3 GB", "2.1 GB", "Q4_K_M")
    assert shown.lines("Its folder does not exist.")
    assert shown.text.splitlines()[-1].rstrip() == "pool far (gemini): No answer within 2 s."
    assert max(map(len, shown.text.splitlines())) <= 80


def test_a_difference_that_rounds_to_nothing_has_no_minus() -> None:
    shown = Shown()
    comparison = two_models()
    for each in comparison.differences:
        each.difference = each.ci_low = -0.00001
    print_comparison(shown.console, comparison)
    assert "+0.0000" in shown.text
    assert "-0.0000" not in shown.text


@pytest.mark.parametrize(("width", "has_interval"), [(80, False), (120, True)])
def test_groups_stand_below_the_tasks(width: int, has_interval: bool) -> None:  # noqa: FBT001  # a case
    shown = Shown(width)
    task = summary_pb2.TaskSummary(
        task="sst2", metrics=[figure("acc", 0.91)], scoring_method=run_pb2.SCORING_METHOD_GENERATE
    )
    summary = summary_pb2.RunSummary(tasks=[task], answered=872, total=872, unparsed=8)
    summary.groups.add(
        group="glue", tasks=["sst2"], metrics=[figure("score", 0.86)], missing_tasks=["rte", "wnli"]
    )
    run = run_pb2.Run(run_id=RUN, order=run_pb2.RunOrder(suite="glue"))
    print_summary(shown.console, run, summary)
    assert shown.lines("sst2", "0.9100 ± 0.0200", "generate")
    assert shown.lines("glue", "score", "0.8600 ± 0.0200", "generate")
    assert bool(shown.lines("0.8400 to 0.8800")) is has_interval
    assert shown.lines("glue without: rte, wnli")
    assert shown.lines("Unparsed answers: 8 (0.9% of the answers; they count as not right)")


def test_unparsed_verdicts_have_no_score() -> None:
    shown = Shown()
    task = summary_pb2.TaskSummary(task="correctness", metrics=[figure("verdict", 0.5)])
    summary = summary_pb2.RunSummary(tasks=[task], answered=40, total=40, unparsed=4)
    order = run_pb2.RunOrder(judge=run_pb2.Judge(run_id=RUN))
    print_summary(shown.console, run_pb2.Run(run_id=RUN, order=order), summary)
    assert shown.lines("Unparsed answers: 4 (10.0% of the answers; they have no score)")
    assert shown.lines("Warning: 10.0% of the verdicts could not be parsed and have no score")


def sample() -> suite_pb2.ShowSampleResponse:
    prompt = sample_pb2.Prompt(text="Review:\tfine \x1b[31m\nSentiment:")
    return suite_pb2.ShowSampleResponse(
        sample=sample_pb2.Sample(
            prompt=prompt, choices=[" negative", " positive"], target=sample_pb2.Target(choice=1)
        ),
        scoring=sample_pb2.TaskScoring(metrics=[sample_pb2.MetricUse(name="acc")]),
        stop=["\n\n"],
        row_source="own rows",
        row_source_revision="ab12",
        is_stand_in=True,
    )


def test_sample_is_shown_verbatim_with_blanks_seen() -> None:
    shown = Shown(is_terminal=False)
    print_sample(shown.console, sample())
    assert "Review:\tfine \x1b[31m\nSentiment:\n" in shown.text
    assert shown.lines("0", '" negative"')
    assert shown.lines("1 right", '" positive"')
    assert shown.lines("stops at:", r'"\n\n"')
    assert shown.lines("row from: own rows, ab12 (stand-in rows")


def test_control_characters_of_a_row_do_not_reach_a_terminal() -> None:
    shown = Shown(is_terminal=True)
    print_sample(shown.console, sample())
    assert "Review:\tfine ␛[31m\nSentiment:" in shown.text


def test_chat_is_shown_turn_by_turn() -> None:
    shown = Shown()
    chat = suite_pb2.ShowSampleResponse()
    chat.sample.prompt.messages.add(role="system", content="Be brief.")
    chat.sample.prompt.messages.add(role="user", content="2 + 2?")
    chat.sample.target.texts.extend(["4", "four"])
    print_sample(shown.console, chat)
    assert shown.text.index("system") < shown.text.index("Be brief.") < shown.text.index("user")
    assert shown.lines('target: "4", "four"')


@pytest.mark.parametrize("width", [80, 120])
def test_times_are_shown_in_one_unit_a_row_and_only_where_reported(width: int) -> None:
    total = summary_pb2.Percentiles(n=400, mean=5, std=2, p50=4, p90=9, p95=10.1, p99=12.34)
    first = summary_pb2.Percentiles(n=400, mean=0.05, std=0.02, p50=0.04, p90=0.09, p95=0.1, p99=1.2)
    reported = summary_pb2.RunSummary(tasks=[summary_pb2.TaskSummary(task="sst2")])
    reported.timing.total.CopyFrom(total)
    reported.timing.first_token.CopyFrom(first)
    shown = Shown(width)
    print_summary(shown.console, run_pb2.Run(run_id=RUN), reported)
    [answer] = shown.lines("whole answer")
    assert answer.split()[2:] == ["s", "5.00", "4.00", "9.00", "10.1", "12.3", "400"]
    assert shown.lines("first token", "ms", "50.0", "1200")
    assert not shown.lines("between tokens")
    assert max(map(len, shown.text.splitlines())) <= width
