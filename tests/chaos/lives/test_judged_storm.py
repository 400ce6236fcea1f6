"""A storm of `kill -9` over runs that are judged and gated: each verdict once, and no gate passes by mistake.

`PROCTOR_STORM_KILLS=300 PROCTOR_STORM_SEED=7` is a longer storm.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest

from proctor.client.errors import ClientError, Refused
from proctor.v1 import comparison_pb2, comparison_service_pb2, outcome_pb2, run_pb2, sample_pb2
from tests.chaos.faults.faulted_run import made_ready
from tests.chaos.faults.kill_storm import (
    KILLS,
    RUN_LIMIT_SECONDS,
    SEED,
    STORM_LIMIT_SECONDS,
    KillStorm,
    known_runs,
    until_ended,
)
from tests.e2e.harness.run_ends import all_outcomes
from tests.e2e.scoring.test_decided_runs import OTHER, upload
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import MODEL, StackHarness

ROWS = 400
# So much worse is the other model: far more than the margin of the gate.
WON = 0.2
_JUDGES = "SELECT run_id FROM scheduler.runs WHERE ordered -> 'judge' ->> 'run_id' = $1"

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(STORM_LIMIT_SECONDS),
]


@dataclass
class JudgedStorm(KillStorm):
    """Two runs after the other, both judged by themselves once they are complete, and gated all the time."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    gates: Counter[str] = field(default_factory=Counter)

    async def order_pairs(self, dataset_id: str) -> None:
        while not self.is_over:
            worse, base = [await self.submitted(judged_order(dataset_id, model)) for model in (OTHER, MODEL)]
            self.pairs.append((worse, base))
            await until_ended(self.stack, (worse, base))

    async def gate_pairs(self) -> None:
        """Over and over, whatever is open, closed or dead: the latest pair, and one of those before."""
        while not self.is_over:
            for worse, base in [*self.pairs[-1:], *self.pairs[:1]]:
                self.gates[await self.gated(worse, base)] += 1
            await asyncio.sleep(0.1)

    async def gated(self, worse: str, base: str) -> str:
        request = comparison_service_pb2.GateRunRequest(run_id=worse, base_run_id=base)
        try:
            gate = (await self.stack.client.comparisons.GateRun(request, timeout=30)).gate
        except Refused as refused:
            return refused.reason
        except ClientError as error:
            return type(error).__name__
        return comparison_pb2.GateVerdict.Name(gate.verdict)

    @property
    def counted(self) -> str:
        killed = f"killed {dict(self.killed)}"
        return f"seed {SEED}: {killed}, {len(self.pairs)} pairs of {ROWS} rows, gates {dict(self.gates)}"


def judged_order(dataset_id: str, model: str) -> run_pb2.RunOrder:
    return run_pb2.RunOrder(
        dataset_id=dataset_id,
        model=model,
        metrics=[sample_pb2.MetricUse(name="contains")],
        judges=[run_pb2.NamedJudge(model=MODEL)],
    )


@pytest.mark.thorough
async def test_storm_doubles_and_loses_no_verdict_and_passes_no_worse_run(stack: StackHarness) -> None:
    await made_ready(stack)
    dataset_id, storm = await upload(stack, ROWS, WON), JudgedStorm(stack)
    earlier = set(await known_runs(stack))
    async with asyncio.TaskGroup() as group:
        group.create_task(storm.rage())
        group.create_task(storm.order_pairs(dataset_id))
        group.create_task(storm.gate_pairs())
    print(storm.counted)  # noqa: T201  # what a long storm is run for
    assert storm.killed.total() == KILLS
    assert storm.gates["GATE_VERDICT_PASS"] == 0, storm.gates
    runs = await judged_runs(stack, earlier)
    await until_ended(stack, runs)
    verdicts = sum([await verdicts_of(stack, run_id) for run_id in runs])
    print(f"{verdicts} verdicts on {len(runs)} runs")  # noqa: T201  # what a long storm is run for
    # In the quiet after it each pair is told apart.
    ends = Counter([await storm.gated(worse, base) for worse, base in storm.pairs])
    assert ends == {"GATE_VERDICT_FAIL": len(storm.pairs)}


async def judged_runs(stack: StackHarness, earlier: set[str]) -> list[str]:
    """Those that name a judge, also of an order whose answer was lost."""
    new = set(await known_runs(stack)) - earlier
    return [run_id for run_id in new if (await stack.client.run(run_id)).order.judges]


async def verdicts_of(stack: StackHarness, judged: str) -> int:
    """How many there are of a run: one for each answer, all of one judging run."""
    judges: list[str] = []

    async def is_judged() -> bool:
        async with stack.database() as database:
            judges[:] = [str(row["run_id"]) for row in await database.fetch(_JUDGES, judged)]
        return bool(judges)

    await eventually(is_judged, "the judge is ordered", RUN_LIMIT_SECONDS)
    [judging] = judges
    await until_ended(stack, [judging])
    answers, verdicts = await all_outcomes(stack, judged), await all_outcomes(stack, judging)
    assert len(answers) == ROWS
    right = {f"{each.outcome.sample}.0": each.scores["contains"] for each in answers}
    assert Counter(each.row_id for each in verdicts) == Counter([*right])
    for each in verdicts:
        assert each.status == outcome_pb2.OUTCOME_STATUS_SCORED
        assert each.scores["verdict"] == right[each.row_id]
    return len(verdicts)
