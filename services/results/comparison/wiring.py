"""Joins the parts of comparisons."""

from services.common.postgres import PostgresSession
from services.results.comparison.compare_runs import ComparePair, CompareRuns, StoreComparison
from services.results.comparison.comparison import DifferenceCache
from services.results.comparison.decide_gate import DecideGate
from services.results.comparison.grpc_api import GrpcComparisonApi
from services.results.comparison.list_flips import ListFlips
from services.results.comparison.plan_size import PlanSize
from services.results.comparison.ports import Calls, RunsOfModels
from services.results.comparison.postgres import PostgresComparisons, PostgresPairs
from services.results.summaries.ports import Stores


def make_store_comparison(session: PostgresSession, stores: Stores, calls: Calls) -> StoreComparison:
    return StoreComparison(
        records=stores.records,
        comparisons=PostgresComparisons(session=session),
        compare_pair=ComparePair(
            sample_sets=stores.sample_sets, pairs=PostgresPairs(session=session), calls=calls
        ),
    )


def make_comparison_api(
    stores: Stores, compare_pair: ComparePair, runs_of_models: RunsOfModels
) -> GrpcComparisonApi:
    compare_runs = CompareRuns(
        records=stores.records,
        summaries=stores.summaries,
        runs_of_models=runs_of_models,
        compare_pair=compare_pair,
        cache=DifferenceCache(),
    )
    return GrpcComparisonApi(
        compare_runs=compare_runs,
        decide_gate=DecideGate(records=stores.records, compare_runs=compare_runs),
        plan_size=PlanSize(compare_runs=compare_runs),
        list_flips=ListFlips(
            records=stores.records, sample_sets=stores.sample_sets, pairs=compare_pair.pairs
        ),
    )
