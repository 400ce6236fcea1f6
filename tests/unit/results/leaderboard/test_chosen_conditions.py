"""Which conditions a leaderboard ranks under, and the reasons of those that it does not rank."""

from dataclasses import replace
from typing import Any

import pytest

from proctor.values.scoring import ScoringMethod
from services.common.errors import InvalidParameter
from services.results.leaderboard.conditions import EvaluationConditions
from services.results.leaderboard.leaderboard import AskedConditions, Leaderboard
from services.results.leaderboard.rank_models import LeaderboardQuery
from tests.fakes.results.closed_runs import BENCHMARK, WHOLE, ClosedRuns
from tests.fakes.results.recorded_run import new_id

QUERY = LeaderboardQuery(BENCHMARK)


def under(**values: str) -> EvaluationConditions:
    """The usual conditions with other values; `_` stands for a space."""
    return WHOLE.with_values({name.replace("_", " "): value for name, value in values.items()})


FIVE_SHOTS = replace(under(shots="5"), num_fewshot=5)
GENERATED = replace(under(scoring_method="generate"), scoring_method=ScoringMethod.GENERATE)


def asking(**conditions: Any) -> LeaderboardQuery:
    return replace(QUERY, asked=AskedConditions(**conditions))


def positions(leaderboard: Leaderboard) -> list[tuple[str, int]]:
    return [(entry.model, entry.rank) for entry in leaderboard.entries]


def unranked(leaderboard: Leaderboard) -> dict[str, tuple[str, ...]]:
    return {entry.model: entry.unranked_because for entry in leaderboard.unranked}


async def test_a_run_under_other_conditions_is_unranked_with_the_reasons() -> None:
    runs = ClosedRuns()
    runs.add("p/whole", 0.5)
    runs.add("p/whole", 0.6, under(limit="10"))
    runs.add("p/other", 0.5)
    runs.add("p/chat", 0.9, GENERATED)
    runs.add("p/shots", 0.9, FIVE_SHOTS)
    runs.add("p/cut", 0.9, under(truncation="left", limit="100"))
    runs.add("p/few", 0.9, WHOLE.with_values({"missing tasks": "rte, wnli", "stand-in rows": "qqp"}))
    runs.add("p/none", None)
    leaderboard = await runs.rank_models.rank(QUERY)
    assert positions(leaderboard) == [("p/other", 1), ("p/whole", 1)]
    assert unranked(leaderboard) == {
        "p/chat": ("scoring method generate instead of loglikelihood",),
        "p/shots": ("shots 5 instead of 0",),
        "p/cut": ("limit 100 instead of none", "truncation left instead of none"),
        "p/few": ("missing tasks rte, wnli instead of none", "stand-in rows qqp instead of none"),
        "p/none": ("acc is undefined",),
    }
    assert all(entry.rank == 0 for entry in leaderboard.unranked)


async def test_the_terms_that_were_asked_for_decide_who_is_ranked() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.5)
    runs.add("p/b", 0.6)
    runs.add("p/c", 0.9, GENERATED)
    runs.add("p/a", 0.7, FIVE_SHOTS)
    chat = await runs.rank_models.rank(asking(scoring_method=ScoringMethod.GENERATE))
    assert (positions(chat), sorted(unranked(chat))) == ([("p/c", 1)], ["p/a", "p/b"])
    shots = await runs.rank_models.rank(asking(num_fewshot=5))
    assert (positions(shots), shots.conditions.scoring_method) == ([("p/a", 1)], ScoringMethod.LOGLIKELIHOOD)
    assert unranked(shots)["p/b"] == ("shots 0 instead of 5",)


async def test_an_older_version_of_a_suite_is_unranked() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.5, under(suite_version="2"))
    runs.add("p/b", 0.6, under(suite_version="1"))
    runs.add("p/c", 0.6, under(suite_version="1"))
    leaderboard = await runs.rank_models.rank(QUERY)
    assert (positions(leaderboard), unranked(leaderboard)["p/b"]) == (
        [("p/a", 1)],
        ("suite version 1 instead of 2",),
    )


async def test_where_no_run_is_whole_partial_ones_are_ranked_and_a_sentence_says_so() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.6, under(limit="20", missing_tasks="rte"))
    runs.add("p/b", 0.9, under(limit="20", missing_tasks="rte"))
    newest = runs.add("p/c", 0.7, under(limit="100"))
    leaderboard = await runs.rank_models.rank(QUERY)
    assert [model for model, _ in positions(leaderboard)] == ["p/b", "p/a"]
    assert unranked(leaderboard) == {
        "p/c": ("limit 100 instead of 20", "missing tasks none instead of rte"),
    }
    lacks = "so partial runs are ranked: limit 20, missing tasks rte."
    assert leaderboard.note == f"No run of letters is whole, {lacks}"
    # Limited runs that lack nothing else are asked for.
    included = await runs.rank_models.rank(asking(includes_limited=True))
    assert (positions(included), included.note) == ([("p/c", 1)], "")
    like = await runs.rank_models.rank(replace(QUERY, like_run_id=newest.run_id))
    assert (positions(like), like.note) == ([("p/c", 1)], "")
    runs.add("p/d", 0.5)
    whole = await runs.rank_models.rank(QUERY)
    assert (positions(whole), whole.note) == ([("p/d", 1)], "")
    assert (await ClosedRuns().rank_models.rank(QUERY)).note == ""


async def test_partial_runs_are_ranked_as_asked_beside_whole_ones_under_other_conditions() -> None:
    runs = ClosedRuns()
    runs.add("p/whole", 0.5)
    runs.add("p/chat", 0.9, replace(GENERATED, values={**GENERATED.values, "limit": "20"}))
    asked = await runs.rank_models.rank(asking(scoring_method=ScoringMethod.GENERATE))
    assert positions(asked) == [("p/chat", 1)]
    assert asked.note == "No such run of letters is whole, so partial runs are ranked: limit 20."
    none = await runs.rank_models.rank(asking(num_fewshot=7))
    assert (positions(none), none.note) == ([], "")


async def test_logs_of_other_tools_are_ranked_unasked_only_where_there_is_no_other_run() -> None:
    runs = ClosedRuns()
    for model in ("p/a", "p/b"):
        runs.add(model, 0.9, under(imported_from="lm-eval"))
    leaderboard = await runs.rank_models.rank(QUERY)
    assert len(positions(leaderboard)) == 2
    assert "imported from lm-eval" in leaderboard.note
    runs.add("p/c", 0.5, under(limit="20"))
    assert positions(await runs.rank_models.rank(QUERY)) == [("p/c", 1)]


async def test_a_long_list_of_missing_tasks_is_left_to_the_conditions() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.6, under(missing_tasks=", ".join(f"task_{number}" for number in range(50))))
    note = (await runs.rank_models.rank(QUERY)).note
    assert note == "No run of letters is whole, so partial runs are ranked: missing tasks."


async def test_a_limit_beside_more_runs_with_all_rows_is_a_difference() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.6)
    runs.add("p/b", 0.5)
    runs.add("p/c", 0.9, under(limit="150"))
    included = await runs.rank_models.rank(asking(includes_limited=True))
    assert unranked(included) == {"p/c": ("limit 150 instead of none",)}
    assert unranked(await runs.rank_models.rank(QUERY)) == {"p/c": ("limit 150 instead of none",)}


async def test_limited_runs_are_ranked_with_those_of_the_same_limit_where_they_are_included() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.6, under(limit="20"))
    runs.add("p/b", 0.9, under(limit="20"))
    runs.add("p/c", 0.7, under(limit="100"))
    runs.add("p/d", 0.8)
    runs.add("p/cut", 0.9, under(limit="20", truncation="left"))
    runs.add("p/failing", 0.9, under(limit="20"), failing_tasks=("t0",))
    leaderboard = await runs.rank_models.rank(asking(includes_limited=True))
    assert [model for model, _ in positions(leaderboard)] == ["p/b", "p/a"]
    assert unranked(leaderboard) == {
        "p/c": ("limit 100 instead of 20",),
        "p/d": ("limit none instead of 20",),
        "p/cut": ("truncation left instead of none",),
        "p/failing": ("more than 5% failed: t0",),
    }
    assert positions(await runs.rank_models.rank(QUERY)) == [("p/d", 1)]


async def test_conditions_of_most_models_are_ranked_and_of_equally_many_the_usual_ones() -> None:
    runs = ClosedRuns()
    runs.add("p/cold", 0.5)
    hot = runs.add("p/hot", 0.6, under(temperature="1.0"))
    assert unranked(await runs.rank_models.rank(QUERY)) == {"p/hot": ("temperature 1.0 instead of none",)}
    runs.add("p/warm", 0.4, under(temperature="1.0"))
    assert [model for model, _ in positions(await runs.rank_models.rank(QUERY))] == ["p/hot", "p/warm"]
    asked = await runs.rank_models.rank(replace(QUERY, like_run_id=hot.run_id))
    assert asked.conditions.value("temperature") == "1.0"


async def test_all_conditions_of_a_run_are_asked_for_by_its_id() -> None:
    runs = ClosedRuns()
    for model in ("p/a", "p/b", "p/c"):
        runs.add(model, 0.5)
    cut = under(truncation="left", limit="7")
    like = runs.add("p/d", 0.6, cut)
    runs.add("p/a", 0.7, cut)
    runs.add("p/e", 0.8, cut, failing_tasks=("t0",))
    leaderboard = await runs.rank_models.rank(replace(QUERY, like_run_id=like.run_id))
    assert [model for model, _ in positions(leaderboard)] == ["p/a", "p/d"]
    assert unranked(leaderboard)["p/b"] == ("limit none instead of 7", "truncation none instead of left")
    assert unranked(leaderboard)["p/e"] == ("more than 5% failed: t0",)
    with pytest.raises(InvalidParameter):
        await runs.rank_models.rank(replace(QUERY, like_run_id=new_id()))


async def test_the_definition_of_the_newest_run_is_ranked() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.5, under(definition="old"))
    runs.add("p/b", 0.5, under(definition="old"))
    runs.add("p/a", 0.6, under(definition="new", limit="5"))
    assert sorted(model for model, _ in positions(await runs.rank_models.rank(QUERY))) == ["p/a", "p/b"]
    runs.add("p/a", 0.6, under(definition="new"))
    leaderboard = await runs.rank_models.rank(QUERY)
    assert (positions(leaderboard), unranked(leaderboard)) == (
        [("p/a", 1)],
        {"p/b": ("definition old instead of new",)},
    )


async def test_a_model_is_ranked_once_whatever_template_its_engine_had() -> None:
    runs = ClosedRuns()
    runs.add("p/a", 0.9, WHOLE.with_values({"chat template": "x"}))
    latest = runs.add("p/a", 0.5, WHOLE.with_values({"chat template": "y"}))
    runs.add("p/b", 0.6)
    leaderboard = await runs.rank_models.rank(QUERY)
    assert [model for model, _ in positions(leaderboard)] == ["p/b", "p/a"]
    assert (leaderboard.entries[1].run, leaderboard.entries[1].trend) == (latest, None)
    best = await runs.rank_models.rank(replace(QUERY, is_best=True))
    assert [model for model, _ in positions(best)] == ["p/a", "p/b"]
