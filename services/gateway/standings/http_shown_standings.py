"""Standings from their messages: undefined numbers as null, places that are none as null."""

from proctor.v1 import leaderboard_pb2
from services.gateway.proto_words import choice_scoring, moment, state_word, trend_word
from services.gateway.runs.http_figures import interval
from services.gateway.standings.http_standing_bodies import PastRun, Ranked, TrendShown


def ranked(standing: leaderboard_pb2.LeaderboardEntry) -> Ranked:
    figure = standing.figure
    return Ranked(
        rank=standing.rank or None,
        model=standing.model,
        score=figure.mean if figure.HasField("mean") else None,
        provider=standing.model.partition("/")[0],
        benchmark_count=standing.task_count,
        ci95=interval(figure),
        tied_with=list(standing.tied_with),
        not_compared_with=list(standing.not_compared_with),
        trend=trend_word(standing.trend.direction),
        trend_details=_trend(standing.trend),
        job_id=standing.run_id or None,
        n=figure.n,
        scoring=choice_scoring(standing.scoring_method) or None,
        num_fewshot=_shots(standing),
        unparsed_rate=_unparsed_rate(standing),
        is_selected_best=standing.is_selected_best,
        unranked_because=list(standing.unranked_because),
        completed_at=moment(standing.closed_at),
    )


def past_run(standing: leaderboard_pb2.LeaderboardEntry) -> PastRun:
    figure = standing.figure
    return PastRun(
        job_id=standing.run_id,
        status=state_word(standing.state),
        model_name=standing.model,
        benchmark_suite=standing.suite,
        dataset_name=standing.dataset_name or None,
        project_id=standing.project_id,
        score=figure.mean if figure.HasField("mean") else None,
        ci95=interval(figure),
        n=figure.n,
        metric=figure.metric,
        benchmark_count=standing.task_count,
        scoring=choice_scoring(standing.scoring_method) or None,
        num_fewshot=_shots(standing),
        answered=standing.answered,
        failed=standing.failed,
        unparsed_rate=_unparsed_rate(standing),
        trend=trend_word(standing.trend.direction),
        trend_details=_trend(standing.trend),
        unranked_because=list(standing.unranked_because),
        completed_at=moment(standing.closed_at),
    )


def _trend(trend: leaderboard_pb2.Trend) -> TrendShown | None:
    if not trend.previous_run_id:
        return None
    return TrendShown(
        difference=trend.difference if trend.HasField("difference") else None,
        p_value=trend.p_value if trend.HasField("p_value") else None,
        previous_job_id=trend.previous_run_id,
    )


def _shots(standing: leaderboard_pb2.LeaderboardEntry) -> int | None:
    return standing.num_fewshot if standing.HasField("num_fewshot") else None


def _unparsed_rate(standing: leaderboard_pb2.LeaderboardEntry) -> float | None:
    return standing.unparsed_rate if standing.HasField("unparsed_rate") else None
