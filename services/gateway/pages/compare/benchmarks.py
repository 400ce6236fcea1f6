"""The suites and data sets of compared runs, by the names that users know them by."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.v1 import run_pb2
from services.common.errors import DomainError
from services.gateway.http.presentation import benchmark_of
from services.gateway.pages.addresses import address


@dataclass(frozen=True, slots=True)
class ComparedBenchmark:
    """A suite, or a data set by the name of its file; `runs` are the ids of its runs among the compared."""

    value: str
    name: str
    runs: Sequence[str]

    @property
    def first_link(self) -> str:
        """The page that offers its runs, with the first one chosen."""
        return address("/compare", [("run", self.runs[0]), ("suite", self.value)])

    @property
    def link(self) -> str:
        """The page that offers its runs, with those that are compared chosen."""
        chosen = [("run", run_id) for run_id in self.runs]
        return address("/compare", [*chosen, ("suite", self.value), ("choose", "1")])


def compared_benchmarks(runs: Sequence[run_pb2.Run]) -> list[ComparedBenchmark]:
    """In the order of the runs."""
    of_benchmark: dict[str, list[run_pb2.Run]] = defaultdict(list)
    for run in runs:
        of_benchmark[benchmark_of(run.order)].append(run)
    return [
        ComparedBenchmark(value, each[0].dataset_name or value, [run.run_id for run in each])
        for value, each in of_benchmark.items()
    ]


def names_of(benchmarks: Sequence[ComparedBenchmark]) -> str:
    return " and ".join(dict.fromkeys(each.name for each in benchmarks))


def refusal_text(refused: DomainError, benchmarks: Sequence[ComparedBenchmark]) -> str:
    """Results knows data sets by their ids alone."""
    if refused.facts.get("difference") != "benchmark" or not benchmarks:
        return refused.message
    named = names_of(benchmarks)
    return f"The runs are of {named}: only runs of one suite, or over data sets, can be compared."
