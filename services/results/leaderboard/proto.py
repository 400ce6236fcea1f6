"""Leaderboards and histories between the contract and the domain."""

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import leaderboard_pb2, leaderboard_service_pb2
from proctor.values.scoring import ScoringMethod
from proctor.wire.convert import number_of
from services.results.checked_fields import checked_choice, checked_text
from services.results.leaderboard.closed_run import ClosedRun
from services.results.leaderboard.leaderboard import Leaderboard, LeaderboardEntry, Trend
from services.results.leaderboard.list_history import History, HistoryQuery
from services.results.leaderboard.rank_models import LeaderboardQuery
from services.results.summaries.proto import figure_to_proto


def leaderboard_query_from_proto(request: leaderboard_service_pb2.GetLeaderboardRequest) -> LeaderboardQuery:
    return LeaderboardQuery(
        checked_text("suite", request.suite),
        checked_text("metric", request.metric),
        request.limit,
        request.is_best,
        checked_choice("scoring_method", ScoringMethod, request.scoring_method)
        if request.scoring_method
        else None,
        request.num_fewshot if request.HasField("num_fewshot") else None,
        request.project_id if request.HasField("project_id") else None,
    )


def history_query_from_proto(request: leaderboard_service_pb2.GetHistoryRequest) -> HistoryQuery:
    return HistoryQuery(
        checked_text("model", request.model),
        checked_text("suite", request.suite),
        checked_text("metric", request.metric),
        request.days,
        request.page_size,
        request.page_token,
    )


def leaderboard_to_proto(leaderboard: Leaderboard) -> leaderboard_service_pb2.GetLeaderboardResponse:
    return leaderboard_service_pb2.GetLeaderboardResponse(
        entries=[_entry_to_proto(entry) for entry in leaderboard.entries],
        unranked=[_entry_to_proto(entry) for entry in leaderboard.unranked],
        baselines=[_entry_to_proto(entry) for entry in leaderboard.baselines],
        total_models=leaderboard.total_models,
        last_updated=_timestamp(leaderboard.last_updated) if leaderboard.last_updated else None,
        scoring_method=number_of(leaderboard.scoring_method),
        metric=leaderboard.metric,
    )


def history_to_proto(history: History) -> leaderboard_service_pb2.GetHistoryResponse:
    return leaderboard_service_pb2.GetHistoryResponse(
        entries=[_entry_to_proto(entry) for entry in history.entries],
        next_page_token=history.next_page_token,
        total=history.total,
    )


def _entry_to_proto(entry: LeaderboardEntry) -> leaderboard_pb2.LeaderboardEntry:
    message = leaderboard_pb2.LeaderboardEntry(
        rank=entry.rank,
        model=entry.model,
        figure=figure_to_proto(entry.metric, entry.figure.figure),
        task_count=entry.figure.task_count,
        tied_with=entry.tied_with,
        not_compared_with=entry.not_compared_with,
        trend=_trend_to_proto(entry.trend) if entry.trend else None,
        is_selected_best=entry.is_selected_best,
        unranked_because=entry.unranked_because,
    )
    if entry.run is not None:
        message.MergeFrom(_run_to_proto(entry.run))
    return message


def _run_to_proto(run: ClosedRun) -> leaderboard_pb2.LeaderboardEntry:
    """The fields of an entry that describe its run."""
    result = run.result
    return leaderboard_pb2.LeaderboardEntry(
        run_id=run.run_id,
        suite=run.suite,
        project_id=run.project_id,
        state=number_of(run.state),
        closed_at=_timestamp(run.closed_at),
        scoring_method=number_of(result.conditions.scoring_method),
        num_fewshot=result.conditions.num_fewshot,
        unparsed_rate=result.unparsed_rate,
        answered=result.answered,
        failed=result.failed,
        dataset_name=result.dataset_name,
    )


def _trend_to_proto(trend: Trend) -> leaderboard_pb2.Trend:
    return leaderboard_pb2.Trend(
        direction=number_of(trend.direction),
        difference=trend.difference,
        p_value=trend.p_value,
        previous_run_id=trend.previous_run_id,
    )


def _timestamp(moment: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp
