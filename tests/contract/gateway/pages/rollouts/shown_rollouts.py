"""An order of rollouts at the fake backends: two models, two tasks, two rollouts, in every state shown."""

import json
from typing import Any

from proctor.v1 import outcome_pb2, rollout_pb2, rollout_service_pb2, run_pb2, summary_pb2
from tests.contract.gateway.pages.shown_pages import RUN_ID
from tests.fakes.gateway.gateway_harness import GatewayHarness

ORDER_ID = f"{RUN_ID[:-2]}aa"
FIRST, SECOND = f"{RUN_ID[:-2]}b1", f"{RUN_ID[:-2]}b2"


def record(text: str = "", steps: int = 3, **changes: Any) -> str:
    """The record of a rollout as a worker writes it; `text` is a part of whatever a model or a task says."""
    said: dict[str, Any] = {
        "source": "agent",
        "timestamp": "2026-11-23T06:00:00+00:00",
        "message": f"Look {text}",
    }
    said["metrics"] = {"prompt_tokens": 1200, "completion_tokens": 34}
    said["tool_calls"] = [
        {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": f"cat a.py {text}"}}
    ]
    said["observation"] = {"results": [{"source_call_id": "c", "content": f"Exit code: 0 {text}"}]}
    system = {"source": "system", "timestamp": "2026-11-23T06:00:00+00:00", "message": "You solve. " * 100}
    known = {
        "ended": "submitted",
        "score": 0.25,
        "detail": f"1 of 2 rubrics passed {text}",
        "rubrics": {
            "works": {
                "criterion": f"It works {text}",
                "weight": 3.0,
                "score": 0.0,
                "test_count": 2,
                "tests_passed": 0,
            },
            "tidy": {"criterion": "Tidy", "weight": 1.0, "score": 1.0, "test_count": 1, "tests_passed": 1},
            "none": {
                "criterion": "Untested",
                "weight": 1.0,
                "score": None,
                "test_count": 0,
                "tests_passed": 0,
            },
        },
        "rewards": {"reward": 0.25, "style": 0.5},
        "suspicions": [f"conftest.py steers pytest {text}"],
        "verifier_log": f"1 passed, 1 failed {text}",
        "diff": f"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old {text}\n+new {text}\n same\n",
        "trajectory": {"schema_version": "ATIF-v1.8", "steps": [system, *[said] * (steps - 1)]},
    }
    return json.dumps(known | changes)


def _run(run_id: str, model: str, state: run_pb2.RunState.ValueType) -> run_pb2.Run:
    order = run_pb2.RunOrder(suite="mine", model=model, rollouts=2)
    run = run_pb2.Run(run_id=run_id, order=order, user="local", state=state, suite_version=2)
    run.created_at.FromSeconds(1_700_000_000)
    run.progress.total = 4
    run.progress.usage.prompt_tokens = 5000
    return run


def put_rollouts(harness: GatewayHarness, text: str = "") -> rollout_service_pb2.RolloutsOrder:
    """The first model has ended and one rollout of it failed; the second has one rollout of four."""
    first = _run(FIRST, "openai/fake", run_pb2.RUN_STATE_COMPLETED)
    second = _run(SECOND, "vllm/org/small", run_pb2.RUN_STATE_RUNNING)
    first.progress.recorded, second.progress.recorded = 4, 1
    first.progress.failures["verifier"] = 1
    outcomes = {
        FIRST: [_judged(0, 0, 1.0), _judged(0, 1, 0.25, text), _judged(1, 0, 0.0), _failed(1, 1, text)]
    }
    outcomes[SECOND] = [_judged(0, 0, 1.0)]
    order = rollout_service_pb2.RolloutsOrder(
        order_id=ORDER_ID, suite="mine", suite_version=2, user="local", rollouts=2
    )
    order.agent.kind = rollout_pb2.AGENT_KIND_SHELL
    order.task_ids.extend([f"mend-a-parser {text}", "double"])
    order.created_at.FromSeconds(1_700_000_000)
    for run in (first, second):
        order.models.append(run.order.model)
        order.runs.append(run)
        harness.scheduler.put(run)
        harness.results.outcomes[run.run_id] = outcomes[run.run_id]
        figures = [
            summary_pb2.MetricFigure(metric=name, mean=0.5, ci_low=0.3, ci_high=0.7, n=2)
            for name in ("pass@1", "reward", "pass@2")
        ]
        answered = sum(not one.outcome.HasField("failure") for one in outcomes[run.run_id])
        summary = summary_pb2.RunSummary(run_id=run.run_id, answered=answered, total=4)
        summary.tasks.add(task="mine", answered=answered, metrics=figures)
        harness.results.summaries[run.run_id] = summary
    harness.scheduler.rollouts.orders = [order]
    return order


def _judged(sample: int, rollout: int, score: float, text: str = "") -> outcome_pb2.RecordedOutcome:
    recorded = _recorded(sample, rollout, outcome_pb2.OUTCOME_STATUS_SCORED)
    answer = recorded.outcome.answer
    answer.text, answer.finish_reason, answer.body_json = (
        f"Done {text}",
        "submitted",
        record(text, score=score),
    )
    recorded.scores["reward"], recorded.scores["pass@1"] = score, float(score == 1)
    recorded.prompt = f"Mend it {text}"
    return recorded


def _failed(sample: int, rollout: int, text: str) -> outcome_pb2.RecordedOutcome:
    recorded = _recorded(sample, rollout, outcome_pb2.OUTCOME_STATUS_FAILED)
    recorded.outcome.failure.failure_class = outcome_pb2.FAILURE_CLASS_VERIFIER
    recorded.outcome.failure.message = f"The tests gave no result {text}."
    return recorded


def _recorded(
    sample: int, rollout: int, status: outcome_pb2.OutcomeStatus.ValueType
) -> outcome_pb2.RecordedOutcome:
    outcome = outcome_pb2.Outcome(sample=sample, rollout=rollout, attempt=1)
    outcome.usage.prompt_tokens, outcome.timing.total_seconds = 1200, 12.5
    return outcome_pb2.RecordedOutcome(task="mine", doc_id=sample, status=status, outcome=outcome)
