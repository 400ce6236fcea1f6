"""Comparisons over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass, fields

import grpc

from proctor.v1 import comparison_pb2, comparison_service_pb2
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.wire.convert import Codec
from services.common.checked_fields import checked_id, checked_text, checked_texts
from services.common.grpc.server import RpcContext
from services.results.comparison.answer_pairs import PairTally
from services.results.comparison.compare_runs import CompareQuery, CompareRuns
from services.results.comparison.comparison import Comparison, Difference
from services.results.comparison.list_flips import Flip, FlipsQuery, ListFlips
from services.results.samples.sample import target_as_text
from services.results.statistics.paired.difference_estimate import DifferenceEstimate

SERVICE_NAME = comparison_service_pb2.DESCRIPTOR.services_by_name["ComparisonService"].full_name

_OF_ESTIMATE = {each.name for each in fields(DifferenceEstimate)} - {"stderr", "units"}
_OF_TALLY = {each.name for each in fields(PairTally)}
_COMPUTED = {"difference_if_parsed", "depends_on_unparsed"}
_OF_PAIR = {each.name for each in fields(Difference)} - {"estimate", "tally", "if_parsed"} | _COMPUTED
# A difference is sent in one piece with its estimate and its tally.
DIFFERENCE = Codec(
    Difference,
    comparison_pb2.Difference,
    unpaired={"estimate", "tally", "if_parsed", *_COMPUTED, *_OF_ESTIMATE, *_OF_TALLY},
)
ESTIMATE = Codec(
    DifferenceEstimate, comparison_pb2.Difference, unpaired={"stderr", "units", *_OF_TALLY, *_OF_PAIR}
)
TALLY = Codec(PairTally, comparison_pb2.Difference, unpaired=_OF_ESTIMATE | _OF_PAIR)
COMPARISON = Codec(Comparison, comparison_pb2.Comparison, nested=[DIFFERENCE])


@dataclass(frozen=True, kw_only=True)
class GrpcComparisonApi(comparison_grpc.ComparisonServiceServicer):
    compare_runs: CompareRuns
    list_flips: ListFlips

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


def comparison_to_proto(comparison: Comparison) -> comparison_pb2.Comparison:
    message = COMPARISON.to_proto(comparison)
    for one, sent in zip(comparison.differences, message.differences, strict=True):
        ESTIMATE.fill(sent, one.estimate)
        TALLY.fill(sent, one.tally)
        sent.depends_on_unparsed = one.depends_on_unparsed
        if one.if_parsed and one.if_parsed.difference is not None:
            sent.difference_if_parsed = one.if_parsed.difference
    return message


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
    )
