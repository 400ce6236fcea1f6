"""What tools return: documents without what is unset, short enough for the context of a model."""

from typing import Any

from google.protobuf.message import Message

from proctor.cli.render import words
from proctor.cli.render.words import JsonValue, document
from proctor.v1 import outcome_pb2, run_pb2
from proctor.values.run import FINAL_NUMBERS
from proctor.wire.rollout_orders import answering_model

# Any, because the library cannot describe a recursive type.
Document = dict[str, Any]
_TEXT_LIMIT = 2000


def brief(message: Message) -> Document:
    return _without_unset(document(message))


def _without_unset(shown: Document) -> Document:
    kept = {name: _single(value) for name, value in shown.items()}
    return {name: value for name, value in kept.items() if value not in (None, "", [], {})}


def _single(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return _without_unset(value)
        case list():
            return [_single(each) for each in value]
        case _:
            return value


def run_facts(run: run_pb2.Run) -> Document:
    progress = run.progress
    return _without_unset(
        {
            "run_id": run.run_id,
            "model": answering_model(run.order),
            "benchmark": words.benchmark(run),
            "tasks": list(run.order.tasks),
            "user": run.user,
            "state": words.state_word(run.state),
            "is_final": run.state in FINAL_NUMBERS,
            "phase": words.phase(run),
            "recorded": progress.recorded,
            "total": progress.total,
            "failures": dict(progress.failures),
            "eta_seconds": progress.eta_seconds if progress.HasField("eta_seconds") else None,
            "cost": progress.cost if progress.HasField("cost") else None,
            "currency": run.price.currency,
            "created_at": document(run)["created_at"],
            "error": run.error.message,
        }
    )


def answer_facts(recorded: outcome_pb2.RecordedOutcome) -> Document:
    outcome = recorded.outcome
    return _without_unset(
        {
            "sample": outcome.sample,
            "rollout": outcome.rollout,
            "row_id": recorded.row_id,
            "task": recorded.task,
            "prompt": both_ends(recorded.prompt),
            "target": recorded.target,
            "answer": both_ends(outcome.answer.text),
            "reasoning": both_ends(outcome.answer.reasoning),
            "read_as": recorded.prediction,
            "finish_reason": outcome.answer.finish_reason,
            "scores": dict(recorded.scores),
            "verdicts": [_verdict_facts(one) for one in recorded.verdicts],
            "failure": outcome.failure.message,
        }
    )


def _verdict_facts(verdict: outcome_pb2.AnswerVerdict) -> Document:
    return _without_unset(
        {
            "judge": verdict.judge.model,
            "prompt": verdict.judge.prompt,
            "verdict": verdict.verdict,
            "reason": both_ends(verdict.reason),
        }
    )


def both_ends(text: str, limit: int = _TEXT_LIMIT) -> str:
    half = limit // 2
    left_out = len(text) - 2 * half
    return text if len(text) <= limit else f"{text[:half]} …{left_out} characters… {text[-half:]}"
