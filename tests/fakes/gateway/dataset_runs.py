"""Runs over data sets at a fake scheduler, and answers of theirs."""

import uuid
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import outcome_pb2, run_pb2
from tests.fakes.gateway.gateway_harness import GatewayHarness

DATASET = "ds_" + 32 * "0"
RECORDED_AT = 1_700_000_005


def stored_run(
    harness: GatewayHarness, state: run_pb2.RunState.ValueType = run_pb2.RUN_STATE_COMPLETED
) -> run_pb2.Run:
    run = run_pb2.Run(run_id=str(uuid.uuid4()), state=state, dataset_name="rows.jsonl", user="bob")
    run.order.dataset_id, run.order.model = DATASET, "vllm/org/starter"
    run.order.priority = run_pb2.PRIORITY_NORMAL
    run.created_at.FromSeconds(1_700_000_000)
    harness.scheduler.put(run)
    return run


def shown_id(run: run_pb2.Run) -> str:
    return f"bm_{uuid.UUID(run.run_id).hex}"


def recorded(number: int, **more: Any) -> outcome_pb2.RecordedOutcome:
    answer = outcome_pb2.Answer(text=f"answer {number}", finish_reason="stop")
    outcome = outcome_pb2.Outcome(sample=number, answer=answer)
    outcome.usage.prompt_tokens, outcome.usage.completion_tokens, outcome.timing.total_seconds = 7, 2, 0.25
    known: dict[str, Any] = {
        "task": "rows",
        "outcome": outcome,
        "status": outcome_pb2.OUTCOME_STATUS_SCORED,
        "doc_id": number,
        "prompt": "One and one?",
        "row_id": f"request-{number}",
        "recorded_at": Timestamp(seconds=RECORDED_AT),
    }
    return outcome_pb2.RecordedOutcome(**{**known, **more})
