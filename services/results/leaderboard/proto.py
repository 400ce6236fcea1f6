"""Boards and histories between the contract and the domain."""

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import leaderboard_pb2, leaderboard_service_pb2
from proctor.values.scoring import ScoringMethod
from proctor.wire.convert import number_of
from services.results.checked_fields import checked_choice, checked_text
from services.results.leaderboard.closed_run import ClosedRun
from services.results.leaderboard.leaderboard import Board, LeaderboardEntry, Trend
from services.results.leaderboard.list_history import History, HistoryQuery
from services.results.leaderboard.rank_models import BoardQuery
from services.results.summaries.proto import figure_to_proto


def board_query_from_proto(request: leaderboard_service_pb2.GetLeaderboardRequest) -> BoardQuery:
    return BoardQuery(
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


def board_to_proto(board: Board) -> leaderboard_service_pb2.GetLeaderboardResponse:
    return leaderboard_service_pb2.GetLeaderboardResponse(
        entries=[_standing_to_proto(standing) for standing in board.standings],
        unranked=[_standing_to_proto(standing) for standing in board.apart],
        baselines=[_standing_to_proto(standing) for standing in board.baselines],
        total_models=board.total_models,
        last_updated=_timestamp(board.last_updated) if board.last_updated else None,
        scoring_method=number_of(board.scoring_method),
        metric=board.metric,
    )


def history_to_proto(history: History) -> leaderboard_service_pb2.GetHistoryResponse:
    return leaderboard_service_pb2.GetHistoryResponse(
        entries=[_standing_to_proto(standing) for standing in history.standings],
        next_page_token=history.next_page_token,
        total=history.total,
    )


def _standing_to_proto(standing: LeaderboardEntry) -> leaderboard_pb2.LeaderboardEntry:
    message = leaderboard_pb2.LeaderboardEntry(
        rank=standing.rank,
        model=standing.model,
        figure=figure_to_proto(standing.metric, standing.figure.figure),
        task_count=standing.figure.task_count,
        tied_with=standing.tied_with,
        not_compared_with=standing.not_compared_with,
        trend=_trend_to_proto(standing.trend) if standing.trend else None,
        is_selected_best=standing.is_selected_best,
        unranked_because=standing.unranked_because,
    )
    if standing.run is not None:
        message.MergeFrom(_run_to_proto(standing.run))
    return message


def _run_to_proto(run: ClosedRun) -> leaderboard_pb2.LeaderboardEntry:
    """What a standing says of its run."""
    kept = run.standing
    return leaderboard_pb2.LeaderboardEntry(
        run_id=run.run_id,
        suite=run.suite,
        project_id=run.project_id,
        state=number_of(run.state),
        closed_at=_timestamp(run.closed_at),
        scoring_method=number_of(kept.terms.scoring_method),
        num_fewshot=kept.terms.num_fewshot,
        unparsed_rate=kept.unparsed_rate,
        answered=kept.answered,
        failed=kept.failed,
        dataset_name=kept.dataset_name,
    )


def _trend_to_proto(trend: Trend) -> leaderboard_pb2.Trend:
    return leaderboard_pb2.Trend(
        direction=leaderboard_pb2.TrendDirection.ValueType(trend.direction),
        difference=trend.difference,
        p_value=trend.p_value,
        previous_run_id=trend.previous_run_id,
    )


def _timestamp(moment: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp
