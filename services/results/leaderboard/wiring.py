"""Joins the parts of leaderboards: reading them, and adding baselines and comparisons of closed runs."""

from services.common.clock import Clock
from services.common.postgres import PostgresSession
from services.results.comparison.compare_runs import StoreComparison
from services.results.comparison.ports import Calls
from services.results.comparison.postgres import PostgresComparisons
from services.results.leaderboard.add_baselines import AddBaselines
from services.results.leaderboard.compare_peers import ComparePeers
from services.results.leaderboard.compare_pending import ComparePending
from services.results.leaderboard.grpc_api import GrpcLeaderboardApi
from services.results.leaderboard.list_history import ListHistory
from services.results.leaderboard.measure_noise import MeasureNoise
from services.results.leaderboard.postgres import (
    PostgresBaselines,
    PostgresLeaderboard,
    PostgresPeers,
    PostgresWaitingRuns,
)
from services.results.leaderboard.process_leases import ProcessLeases
from services.results.leaderboard.rank_models import RankModels
from services.results.leases.ports import LeaseStore
from services.results.ratings.postgres import PostgresJudgedPairs
from services.results.ratings.rate_models import RateModels
from services.results.scoring.ports import AnswerScorer
from services.results.summaries.ports import Stores


def make_leaderboard_api(
    session: PostgresSession, stores: Stores, compare_pending: ComparePending, clock: Clock
) -> GrpcLeaderboardApi:
    leaderboard = PostgresLeaderboard(session=session)
    rank_models = RankModels(
        leaderboard=leaderboard, differences=PostgresComparisons(session=session), pending=compare_pending
    )
    return GrpcLeaderboardApi(
        rank_models=rank_models,
        list_history=ListHistory(history=leaderboard, clock=clock),
        rate_models=RateModels(pairs=PostgresJudgedPairs(session=session)),
        measure_noise=MeasureNoise(runs=leaderboard, records=stores.records, outcomes=stores.outcomes),
    )


def make_leased_runs(session: PostgresSession, leases: LeaseStore) -> ProcessLeases:
    return ProcessLeases(waiting=PostgresWaitingRuns(session=session), leases=leases)


def make_add_baselines(
    session: PostgresSession,
    stores: Stores,
    leased_runs: ProcessLeases,
    *,
    calls: Calls,
    scorer: AnswerScorer,
) -> AddBaselines:
    return AddBaselines(
        records=stores.records,
        sample_sets=stores.sample_sets,
        summaries=stores.summaries,
        baselines=PostgresBaselines(session=session),
        leased_runs=leased_runs,
        calls=calls,
        scorer=scorer,
    )


def make_compare_peers(
    session: PostgresSession, stores: Stores, leased_runs: ProcessLeases, store_comparison: StoreComparison
) -> ComparePeers:
    return ComparePeers(
        records=stores.records,
        leaderboard=PostgresLeaderboard(session=session),
        comparisons=PostgresComparisons(session=session),
        peers=PostgresPeers(session=session),
        leased_runs=leased_runs,
        store_comparison=store_comparison,
    )


def make_compare_pending(
    session: PostgresSession, store_comparison: StoreComparison, clock: Clock
) -> ComparePending:
    return ComparePending(
        comparisons=PostgresComparisons(session=session), store_comparison=store_comparison, clock=clock
    )
