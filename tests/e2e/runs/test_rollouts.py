"""Rollouts from the order to graded results: over gRPC and REST, worked on in the worker's sandboxes."""

import base64
import io
import json
import tarfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from proctor.client import errors
from proctor.v1 import outcome_pb2, rollout_pb2, run_pb2
from proctor.v1 import rollout_service_pb2 as rollouts_pb2
from proctor.v1.scheduler_service_pb2 import ListRunsRequest
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.rollout_tasks import RIGHT, harbor_folder, tb_meta_folder
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

_ESCAPED = RIGHT.encode("unicode_escape").decode()
MEND = f"Mend it.\nDO ls && cat doubling.py\nDO printf '{_ESCAPED}' > doubling.py\n"
SPOIL = "Mend it.\nDO echo nothing > doubling.py\nDO exit 3\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(models=("fake", "other"))) as stack:
            yield stack


def archive(folder: Path) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as tar:
        for child in sorted(folder.iterdir()):
            tar.add(child, child.name)
    return written.getvalue()


def harbor_tasks(folder: Path, instructions: Mapping[str, str]) -> bytes:
    for name, instruction in instructions.items():
        task = harbor_folder(folder / name)
        (task / "instruction.md").write_text(instruction)
    return archive(folder)


def request(name: str, tasks: bytes, **changes: object) -> rollouts_pb2.OrderRolloutsRequest:
    order = rollouts_pb2.OrderRolloutsRequest(name=name, tasks=tasks, models=["openai/fake"])
    order.MergeFrom(rollouts_pb2.OrderRolloutsRequest(**changes))  # type: ignore[arg-type]  # fields of a message
    return order


async def finished(stack: StackHarness, run_id: str) -> list[outcome_pb2.RecordedOutcome]:
    run = await ended(stack, run_id)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    return await all_outcomes(stack, run_id)


async def test_a_model_works_on_tasks_and_is_graded(stack: StackHarness, tmp_path: Path) -> None:
    tasks = harbor_tasks(tmp_path, {"mended": MEND, "spoiled": SPOIL})
    order = request("worked", tasks, rollouts=2)
    order.models.append("openai/other")
    ordered = await stack.client.rollouts.order(order)
    assert (ordered.suite, list(ordered.task_ids)) == ("worked@1", ["mended", "spoiled"])
    assert [run.order.model for run in ordered.runs] == ["openai/fake", "openai/other"]
    for run in ordered.runs:
        outcomes = await finished(stack, run.run_id)
        scores = {(each.doc_id, each.outcome.rollout): each.scores["pass@1"] for each in outcomes}
        assert scores == {(0, 0): 1.0, (0, 1): 1.0, (1, 0): 0.0, (1, 1): 0.0}
    summary = await stack.client.get_summary(ordered.runs[0].run_id)
    figures = {metric.metric: metric.mean for metric in summary.tasks[0].metrics}
    assert (figures["pass@1"], figures["reward"], figures["pass@2"]) == (0.5, 0.5, 0.5)


async def test_a_record_of_a_rollout_has_all_that_was_done(stack: StackHarness, tmp_path: Path) -> None:
    ordered = await stack.client.rollouts.order(request("recorded", harbor_tasks(tmp_path, {"a": MEND})))
    [outcome] = await finished(stack, ordered.runs[0].run_id)
    answer = outcome.outcome.answer
    assert (answer.finish_reason, "COMPLETE_TASK" in answer.text) == ("submitted", True)
    record = json.loads(answer.body_json)
    assert (record["score"], record["ended"]) == (1.0, "submitted")
    assert "-    return 3 * n" in record["diff"]
    assert "+    return 2 * n" in record["diff"]
    assert "1 passed" in record["verifier_log"]
    trajectory = record["trajectory"]
    assert trajectory["schema_version"] == "ATIF-v1.8"
    sources = [step["source"] for step in trajectory["steps"]]
    assert sources == ["system", "user", "agent", "agent", "agent"]
    assert outcome.outcome.usage.completion_tokens == trajectory["final_metrics"]["total_completion_tokens"]
    assert trajectory["steps"][2]["tool_calls"][0]["arguments"] == {"command": "ls && cat doubling.py"}
    assert "return 3 * n" in trajectory["steps"][2]["observation"]["results"][0]["content"]


@pytest.mark.parametrize(("kind", "score"), [("ORACLE", 1.0), ("NONE", 0.25)])
async def test_agents_without_a_model_ask_none(
    stack: StackHarness, tmp_path: Path, kind: str, score: float
) -> None:
    tb_meta_folder(tmp_path / "a")
    await stack.model_server.control(reset_stats=True)
    agent = rollout_pb2.RolloutAgent(kind=f"AGENT_KIND_{kind}")  # type: ignore[arg-type]  # its name
    ordered = await stack.client.rollouts.order(request(f"{kind.lower()}s", archive(tmp_path), agent=agent))
    [outcome] = await finished(stack, ordered.runs[0].run_id)
    assert (outcome.scores["reward"], outcome.scores["pass@1"]) == (score, float(score == 1.0))
    assert (await stack.model_server.stats())["requests"] == 0
    rubrics = json.loads(outcome.outcome.answer.body_json)["rubrics"]
    assert [rubric["weighted_score"] for rubric in rubrics.values()] == [3.0 * (score == 1.0), 1.0]


async def test_a_verifier_without_a_result_is_a_failure_and_no_score(
    stack: StackHarness, tmp_path: Path
) -> None:
    harbor_folder(tmp_path / "a", test="exit 1; true")
    ordered = await stack.client.rollouts.order(request("unverified", archive(tmp_path)))
    run = await ended(stack, ordered.runs[0].run_id)
    assert run.state == run_pb2.RUN_STATE_FAILED
    [outcome] = await all_outcomes(stack, run.run_id)
    assert outcome.outcome.failure.failure_class == outcome_pb2.FAILURE_CLASS_VERIFIER
    assert dict(outcome.scores) == {}


async def test_an_order_over_rest_that_is_repeated_is_one(stack: StackHarness, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a")
    (folder / "instruction.md").write_text(MEND)
    body = {
        "name": "rest",
        "tasks": base64.b64encode(archive(tmp_path)).decode(),
        "models": ["openai/fake"],
        "agent": {"max_steps": 1},
    }
    url = f"http://{stack.stack.gateway_http}/api/v1/rollouts"
    async with aiohttp.ClientSession() as session:
        answers = []
        for _ in range(2):
            async with session.post(url, json=body, headers={"Idempotency-Key": "mine"}) as response:
                assert response.status == 201, await response.text()
                answers.append(await response.json())
        async with session.post(url, json=body | {"tasks": "bm8="}) as refused:
            problem = await refused.json()
    assert answers[0]["jobs"][0]["job_id"] == answers[1]["jobs"][0]["job_id"]
    assert (refused.status, problem["reason"]) == (400, "INVALID_TASK_FOLDER")
    [outcome] = await finished(stack, answers[0]["jobs"][0]["job_id"])
    # Its one step looked at the files; what is left is graded.
    assert (outcome.outcome.answer.finish_reason, outcome.scores["pass@1"]) == ("step_limit", 0.0)


async def test_nothing_is_stored_of_an_order_with_an_unknown_model(
    stack: StackHarness, tmp_path: Path
) -> None:
    order = request("refused", harbor_tasks(tmp_path, {"a": MEND}))
    order.models.append("nowhere/model")
    with pytest.raises(errors.Refused, match="nowhere"):
        await stack.client.rollouts.order(order)
    listed = await stack.client.list_runs(ListRunsRequest(suite="refused"))
    assert listed.total == 0
