"""Comparisons over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass, fields

import grpc

from proctor.v1 import comparison_pb2, comparison_service_pb2
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.wire.convert import Codec
from proctor.wire.enums import number_of
from services.common.checked_fields import checked_id, checked_text, checked_texts
from services.common.grpc.server import RpcContext
from services.results.comparison.answer_pairs import PairTally
from services.results.comparison.compare_runs import CompareQuery, CompareRuns
from services.results.comparison.comparison import ComparedRun, Comparison, Difference
from services.results.comparison.decide_gate import DecideGate, GateQuery
from services.results.comparison.gate import Decision, Gate, GatedTask, GateRules
from services.results.comparison.list_flips import Flip, FlipsQuery, ListFlips
from services.results.comparison.plan_size import DEFAULT_ROLLOUTS, PlanSize, SizePlan, SizeQuery
from services.results.samples.sample import target_as_text
from services.results.statistics.paired.difference_estimate import LEVEL, POWER, DifferenceEstimate

SERVICE_NAME = comparison_service_pb2.DESCRIPTOR.services_by_name["ComparisonService"].full_name

# Of these only the service itself makes use.
_UNSENT = {"degrees_of_freedom", "units", "noise"}
_OF_ESTIMATE = {each.name for each in fields(DifferenceEstimate)} - _UNSENT
_OF_TALLY = {each.name for each in fields(PairTally)}
_COMPUTED = {"difference_if_parsed", "depends_on_unparsed", "noise_floor"}
_OF_PAIR = {each.name for each in fields(Difference)} - {"estimate", "tally", "if_parsed"} | _COMPUTED
# A difference is sent in one piece with its estimate and its tally.
DIFFERENCE = Codec(
    Difference,
    comparison_pb2.Difference,
    unpaired={"estimate", "tally", "if_parsed", *_COMPUTED, *_OF_ESTIMATE, *_OF_TALLY},
)
ESTIMATE = Codec(DifferenceEstimate, comparison_pb2.Difference, unpaired={*_UNSENT, *_OF_TALLY, *_OF_PAIR})
TALLY = Codec(PairTally, comparison_pb2.Difference, unpaired=_OF_ESTIMATE | _OF_PAIR)
# A warning says so.
COMPARED_RUN = Codec(ComparedRun, comparison_pb2.ComparedRun, unpaired={"is_stopped"})
COMPARISON = Codec(Comparison, comparison_pb2.Comparison, nested=[COMPARED_RUN, DIFFERENCE])
DECISION = Codec(
    Decision,
    comparison_pb2.GatedTask,
    unpaired={each.name for each in fields(GatedTask)} - {"decision"} | {"pairs_needed", "times_needed"},
)
# Rules are sent as far as a reader needs them.
GATE = Codec(
    Gate,
    comparison_pb2.Gate,
    unpaired={"tasks", "rules", "verdict", "margin_points", "alpha"},
    nested=[COMPARED_RUN],
)


@dataclass(frozen=True, kw_only=True)
class GrpcComparisonApi(comparison_grpc.ComparisonServiceServicer):
    compare_runs: CompareRuns
    list_flips: ListFlips
    decide_gate: DecideGate
    plan_size: PlanSize

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        comparison_grpc.add_ComparisonServiceServicer_to_server(self, server)

    async def CompareRuns(
        self, request: comparison_service_pb2.CompareRunsRequest, context: RpcContext
    ) -> comparison_service_pb2.CompareRunsResponse:
        query = CompareQuery(
            tuple(checked_id("run_ids", run_id) for run_id in request.run_ids),
            checked_texts("models", request.models),
            checked_text("benchmark", request.benchmark),
            checked_texts("metrics", request.metrics),
            checked_texts("tasks", request.tasks),
            request.is_forced,
        )
        return comparison_service_pb2.CompareRunsResponse(
            comparison=comparison_to_proto(await self.compare_runs.compare(query))
        )

    async def ListFlips(
        self, request: comparison_service_pb2.ListFlipsRequest, context: RpcContext
    ) -> comparison_service_pb2.ListFlipsResponse:
        query = FlipsQuery(
            (
                checked_id("first_run_id", request.first_run_id),
                checked_id("second_run_id", request.second_run_id),
            ),
            checked_text("task", request.task),
            checked_text("metric", request.metric),
            request.page_size,
            request.page_token,
        )
        page = await self.list_flips.list_page(query)
        return comparison_service_pb2.ListFlipsResponse(
            flips=[flip_to_proto(flip) for flip in page.flips],
            next_page_token=page.next_page_token,
            total=page.total,
        )

    async def PlanSize(
        self, request: comparison_service_pb2.PlanSizeRequest, context: RpcContext
    ) -> comparison_service_pb2.PlanSizeResponse:
        query = SizeQuery(
            CompareQuery(
                tuple(checked_id("run_ids", run_id) for run_id in request.run_ids),
                checked_texts("models", request.models),
                checked_text("benchmark", request.benchmark),
                checked_texts("metrics", request.metrics),
                checked_texts("tasks", request.tasks),
            ),
            request.difference_points,
            request.alpha if request.HasField("alpha") else LEVEL,
            request.power if request.HasField("power") else POWER,
            request.max_rollouts or DEFAULT_ROLLOUTS,
        )
        plan = await self.plan_size.plan(query)
        return comparison_service_pb2.PlanSizeResponse(plan=size_plan_to_proto(plan))

    async def GateRun(
        self, request: comparison_service_pb2.GateRunRequest, context: RpcContext
    ) -> comparison_service_pb2.GateRunResponse:
        given = {each.name for each, _ in request.ListFields()}
        query = GateQuery(
            checked_id("run_id", request.run_id),
            checked_id("base_run_id", request.base_run_id),
            GateRules(
                **{each.name: getattr(request, each.name) for each in fields(GateRules) if each.name in given}
            ),
            checked_texts("tasks", request.tasks),
            tuple(
                (checked_text("metrics", task), checked_text("metrics", metric))
                for task, metric in sorted(request.metrics.items())
            ),
            request.is_whole,
            checked_texts("may_differ", request.may_differ),
        )
        gate = await self.decide_gate.decide(query)
        return comparison_service_pb2.GateRunResponse(gate=gate_to_proto(gate))


def comparison_to_proto(comparison: Comparison) -> comparison_pb2.Comparison:
    message = COMPARISON.to_proto(comparison)
    for one, sent in zip(comparison.differences, message.differences, strict=True):
        _fill_figures(sent, one)
    return message


def size_plan_to_proto(plan: SizePlan) -> comparison_pb2.SizePlan:
    message = comparison_pb2.SizePlan(benchmark=plan.comparison.benchmark, warnings=plan.warnings)
    message.runs.extend(COMPARISON.to_proto(plan.comparison).runs)
    for task in plan.tasks:
        sent = message.tasks.add(
            rows=task.difference.estimate.pairs,
            wanted=task.wanted,
            sizes=[comparison_pb2.PlannedSize(rollouts=size.rollouts, rows=size.rows) for size in task.sizes],
        )
        DIFFERENCE.fill(sent.difference, task.difference)
        _fill_figures(sent.difference, task.difference)
        for name, value in (("sample_std", task.sample_std), ("rollout_std", task.rollout_std)):
            if value is not None:
                setattr(sent, name, value)
    return message


def gate_to_proto(gate: Gate) -> comparison_pb2.Gate:
    message = GATE.to_proto(gate)
    message.verdict = number_of(gate.verdict)
    message.margin_points, message.alpha = gate.rules.margin_points, gate.rules.alpha
    for task in gate.tasks:
        sent = message.tasks.add(margin=task.margin, pairs_needed=task.pairs_needed, reason=task.reason)
        DECISION.fill(sent, task.decision)
        DIFFERENCE.fill(sent.difference, task.difference)
        _fill_figures(sent.difference, task.difference)
    return message


def _fill_figures(sent: comparison_pb2.Difference, one: Difference) -> None:
    ESTIMATE.fill(sent, one.estimate)
    TALLY.fill(sent, one.tally)
    sent.depends_on_unparsed = one.depends_on_unparsed
    if one.estimate.noise_floor is not None:
        sent.noise_floor = one.estimate.noise_floor
    if one.if_parsed and one.if_parsed.difference is not None:
        sent.difference_if_parsed = one.if_parsed.difference


def flip_to_proto(flip: Flip) -> comparison_pb2.Flip:
    return comparison_pb2.Flip(
        task=flip.task.task,
        doc_id=flip.sample.doc_id,
        digest=flip.sample.digest,
        prompt=flip.sample.prompt.as_text,
        target=target_as_text(flip.sample.target, flip.task.scoring.target_delimiter),
        first_prediction=flip.predictions[0],
        second_prediction=flip.predictions[1],
        first_score=flip.scores[0],
        second_score=flip.scores[1],
        sample=flip.task.first_sample + flip.sample.position,
    )
