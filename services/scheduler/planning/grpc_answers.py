"""The answers of a run that is judged, read from results in pages."""

from collections.abc import AsyncIterator, Sequence

import grpc

from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import results_service_pb2_grpc as results_grpc
from proctor.values.outcome import Answer
from proctor.values.reasoning.answers import with_reasoning_apart
from proctor.values.run import RunId
from services.common.grpc.errors import remote_error
from services.scheduler.judging.judged_answer import JudgedAnswer

# Each call reads one page.
_CALL_SECONDS = 20.0
_PAGE_ANSWERS = 200


class GrpcAnswers:
    """A client of ResultsService; failures are raised as `RemoteError`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._results = results_grpc.ResultsServiceStub(channel)

    async def pages(self, run_id: RunId) -> AsyncIterator[Sequence[JudgedAnswer]]:
        request = results_pb2.ListOutcomesRequest(run_id=run_id, page_size=_PAGE_ANSWERS)
        while True:
            try:
                response = await self._results.ListOutcomes(request, timeout=_CALL_SECONDS)
            except grpc.aio.AioRpcError as error:
                raise remote_error(error) from error
            yield [_judged(each) for each in response.outcomes if each.outcome.HasField("answer")]
            request.page_token = response.next_page_token
            if not request.page_token:
                return


def _judged(recorded: outcome_pb2.RecordedOutcome) -> JudgedAnswer:
    return JudgedAnswer(
        sample=recorded.outcome.sample,
        rollout=recorded.outcome.rollout,
        doc_id=recorded.doc_id,
        question=_question(recorded),
        target=_target(recorded),
        answer=_text(recorded),
        digest=recorded.digest,
    )


def _target(recorded: outcome_pb2.RecordedOutcome) -> str:
    """What is right: of several targets each in a line, so that no judge takes them for one answer."""
    targets = [text for text in dict.fromkeys(recorded.targets) if text.strip()]
    if len(targets) < 2:
        return targets[0] if targets else recorded.target
    return "Any of:\n" + "\n".join(f"- {text.strip()}" for text in targets)


def _question(recorded: outcome_pb2.RecordedOutcome) -> str:
    """The prompt with its choices, which it does not show by itself."""
    listed = "\n".join(f"- {choice.strip()}" for choice in recorded.choices)
    return f"{recorded.prompt}\n\nChoices:\n{listed}" if listed else recorded.prompt


def _text(recorded: outcome_pb2.RecordedOutcome) -> str:
    """The answer without its reasoning; where a choice was scored by log-likelihood, that choice."""
    answer = recorded.outcome.answer
    if answer.choices:
        return recorded.prediction
    return with_reasoning_apart(Answer(answer.text, finish_reason=answer.finish_reason)).text.strip()
