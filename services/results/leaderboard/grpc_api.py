"""The leaderboard and the history over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass
from typing import Any

import grpc

from proctor.v1 import leaderboard_pb2, leaderboard_service_pb2
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.values.metrics.catalogue import REWARD_UNSUSPECTED, UNSUSPECTED
from proctor.values.run import RunKind, RunState
from proctor.values.scoring import ScoringMethod
from proctor.wire.convert import Codec
from proctor.wire.enums import member_of, number_of
from proctor.wire.well_known import time_to_proto
from services.common.checked_fields import checked_choice, checked_id, checked_ids, checked_text
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.request_fields import MAX_PAGE_SIZE, check_sees
from services.results.leaderboard.closed_run import ClosedRun
from services.results.leaderboard.leaderboard import AskedConditions, Leaderboard, LeaderboardEntry, Trend
from services.results.leaderboard.list_history import HistoryPage, HistoryQuery, ListHistory
from services.results.leaderboard.measure_noise import MeasureNoise, Noise
from services.results.leaderboard.ports import HistoryTotals
from services.results.leaderboard.rank_models import LeaderboardQuery, RankModels
from services.results.ratings.proto import ratings_to_proto
from services.results.ratings.rate_models import RateModels, RatingsQuery
from services.results.runs.conditions import CONDITIONS
from services.results.statistics.variance_split import VarianceSplit
from services.results.summaries.proto import figure_to_proto

SERVICE_NAME = leaderboard_service_pb2.DESCRIPTOR.services_by_name["LeaderboardService"].full_name

TREND = Codec(Trend, leaderboard_pb2.Trend)


@dataclass(frozen=True, kw_only=True)
class GrpcLeaderboardApi(leaderboard_grpc.LeaderboardServiceServicer):
    rank_models: RankModels
    list_history: ListHistory
    rate_models: RateModels
    measure_noise: MeasureNoise

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        leaderboard_grpc.add_LeaderboardServiceServicer_to_server(self, server)

    async def GetLeaderboard(
        self, request: leaderboard_service_pb2.GetLeaderboardRequest, context: RpcContext
    ) -> leaderboard_service_pb2.GetLeaderboardResponse:
        query = LeaderboardQuery(
            checked_text("benchmark", request.benchmark),
            checked_text("metric", request.metric),
            request.max_entries,
            request.is_best,
            _asked(request),
            _project(request, context),
            checked_id("like_run_id", request.like_run_id) if request.like_run_id else "",
        )
        return leaderboard_to_proto(await self.rank_models.rank(query))

    async def ListHistory(
        self, request: leaderboard_service_pb2.ListHistoryRequest, context: RpcContext
    ) -> leaderboard_service_pb2.ListHistoryResponse:
        query = HistoryQuery(
            checked_text("model", request.model),
            checked_text("benchmark", request.benchmark),
            checked_text("metric", request.metric),
            request.days,
            request.page_size,
            request.page_token,
            member_of(RunKind, request.kind),
            checked_choice("state", RunState, request.state) if request.state else None,
            request.includes_totals,
        )
        return history_to_proto(await self.list_history.list_page(query))

    async def ListClosedRuns(
        self, request: leaderboard_service_pb2.ListClosedRunsRequest, context: RpcContext
    ) -> leaderboard_service_pb2.ListClosedRunsResponse:
        run_ids = checked_ids("run_ids", request.run_ids, MAX_PAGE_SIZE)
        entries = await self.list_history.list_closed(run_ids, checked_text("metric", request.metric))
        return leaderboard_service_pb2.ListClosedRunsResponse(entries=map(_entry_to_proto, entries))

    async def GetRatings(
        self, request: leaderboard_service_pb2.GetRatingsRequest, context: RpcContext
    ) -> leaderboard_service_pb2.GetRatingsResponse:
        query = RatingsQuery(
            checked_text("benchmark", request.benchmark),
            checked_text("prompt", request.prompt),
            checked_text("judge", request.judge),
            _project(request, context),
            request.is_style_controlled,
        )
        return ratings_to_proto(await self.rate_models.rate(query))

    async def GetNoise(
        self, request: leaderboard_service_pb2.GetNoiseRequest, context: RpcContext
    ) -> leaderboard_service_pb2.GetNoiseResponse:
        run_id, metric = checked_id("run_id", request.run_id), checked_text("metric", request.metric)
        return noise_to_proto(await self.measure_noise.measure(run_id, metric))


def _project(
    request: leaderboard_service_pb2.GetLeaderboardRequest | leaderboard_service_pb2.GetRatingsRequest,
    context: RpcContext,
) -> int | None:
    """That of the caller's key where none is named; None for all. Raises `ProjectNotFound`."""
    caller = caller_of(context.invocation_metadata())
    is_named = request.HasField("project_id")
    project_id = request.project_id if is_named else caller.key_project
    check_sees(caller, project_id)
    return project_id if is_named or caller.key_project else None


def _asked(request: leaderboard_service_pb2.GetLeaderboardRequest) -> AskedConditions:
    method = request.scoring_method
    return AskedConditions(
        checked_choice("scoring_method", ScoringMethod, method) if method else None,
        request.num_fewshot if request.HasField("num_fewshot") else None,
        request.includes_limited,
    )


def leaderboard_to_proto(leaderboard: Leaderboard) -> leaderboard_service_pb2.GetLeaderboardResponse:
    return leaderboard_service_pb2.GetLeaderboardResponse(
        entries=map(_entry_to_proto, leaderboard.entries),
        unranked=map(_entry_to_proto, leaderboard.unranked),
        baselines=map(_entry_to_proto, leaderboard.baselines),
        total_models=leaderboard.total_models,
        last_updated=time_to_proto(leaderboard.last_updated),
        scoring_method=number_of(leaderboard.conditions.scoring_method),
        metric=leaderboard.metric,
        note=leaderboard.note,
        pending_comparisons=leaderboard.pending,
        noise_floor=leaderboard.spread.noise_floor if leaderboard.spread else None,
        repeated_runs=leaderboard.spread.runs if leaderboard.spread else 0,
        less_is_better=leaderboard.less_is_better,
        conditions=[
            leaderboard_pb2.Condition(name=one.name, value=leaderboard.conditions.value(one.name))
            for one in CONDITIONS
            if leaderboard.conditions.values
        ],
    )


def noise_to_proto(noise: Noise) -> leaderboard_service_pb2.GetNoiseResponse:
    return leaderboard_service_pb2.GetNoiseResponse(
        run_ids=noise.run_ids,
        metric=noise.metric,
        rollouts=noise.rollouts,
        tasks=[
            leaderboard_service_pb2.NoisyTask(
                task=one.task, metric=one.metric, rows=one.rows, split=_split_to_proto(one.split)
            )
            for one in noise.tasks
        ],
        split=_split_to_proto(noise.split),
    )


def _split_to_proto(split: VarianceSplit | None) -> leaderboard_service_pb2.VarianceSplit | None:
    if split is None:
        return None
    return leaderboard_service_pb2.VarianceSplit(
        sample=split.sample,
        rollout=split.rollout,
        run=split.run,
        run_p_value=split.run_p_value,
        noise_floor=split.noise_floor,
    )


def history_to_proto(history: HistoryPage) -> leaderboard_service_pb2.ListHistoryResponse:
    return leaderboard_service_pb2.ListHistoryResponse(
        entries=map(_entry_to_proto, history.entries),
        next_page_token=history.next_page_token,
        total=history.total,
        totals=_totals_to_proto(history.totals) if history.totals else None,
    )


def _totals_to_proto(totals: HistoryTotals) -> leaderboard_service_pb2.HistoryTotals:
    return leaderboard_service_pb2.HistoryTotals(
        completed_runs=totals.completed_runs,
        answered=totals.answered,
        failed=totals.failed,
        cost=totals.cost,
        priced_runs=totals.priced_runs,
        currency=totals.currency,
    )


def _entry_to_proto(entry: LeaderboardEntry) -> leaderboard_pb2.LeaderboardEntry:
    return leaderboard_pb2.LeaderboardEntry(
        rank=entry.rank,
        model=entry.model,
        figure=figure_to_proto(entry.metric, entry.figure.figure),
        task_count=entry.figure.task_count,
        tied_with=entry.tied_with,
        not_compared_with=entry.not_compared_with,
        trend=TREND.to_proto(entry.trend) if entry.trend else None,
        is_selected_best=entry.is_selected_best,
        unranked_because=entry.unranked_because,
        run_count=entry.run_count,
        **(_fields_of(entry.run) if entry.run else {}),
    )


def _fields_of(run: ClosedRun) -> dict[str, Any]:
    """The fields of an entry that describe its run."""
    result = run.result
    return {
        "run_id": run.run_id,
        "benchmark": run.benchmark,
        "project_id": run.project_id,
        "state": number_of(run.state),
        "closed_at": time_to_proto(run.closed_at),
        "scoring_method": number_of(result.conditions.scoring_method),
        "num_fewshot": result.conditions.num_fewshot,
        "unparsed_rate": result.unparsed_rate,
        "answered": result.answered,
        "failed": result.failed,
        "dataset_name": result.dataset_name,
        UNSUSPECTED: result.mean(UNSUSPECTED),
        REWARD_UNSUSPECTED: result.mean(REWARD_UNSUSPECTED),
    }
