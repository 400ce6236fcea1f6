"""Rollouts from the order to judged results: over gRPC and REST, worked on in the worker's sandboxes."""

import base64
import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from proctor.client import errors
from proctor.client.errors import Refused
from proctor.stack.state import StackLock, StackState, write_stack_state
from proctor.v1 import outcome_pb2, rollout_pb2, run_pb2
from proctor.v1.artifact_service_pb2 import Artifact, ListArtifactsRequest, ReadArtifactRequest
from proctor.v1.leaderboard_service_pb2 import ListClosedRunsRequest, ListHistoryRequest
from proctor.v1.rollout_service_pb2 import GetRolloutsOrderRequest, ListRolloutsOrdersRequest
from proctor.v1.scheduler_service_pb2 import DeleteRunRequest, ListRunsRequest
from services.scheduler.runs.lifecycle.change_state import SWEEP_AFTER, SWEEP_SECONDS
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.fakes.eventually import eventually
from tests.fakes.stack.command_line import CommandLine
from tests.fakes.thorough_cases import first_cases
from tests.harness.rollout_orders import MEND, SPOIL, archive, harbor_tasks, rollouts_order
from tests.harness.rollout_tasks import harbor_folder, tb_meta_folder
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def finished(stack: StackHarness, run_id: str) -> list[outcome_pb2.RecordedOutcome]:
    run = await ended(stack, run_id)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    return await all_outcomes(stack, run_id)


async def test_a_model_works_on_tasks_and_is_judged(stack: StackHarness, tmp_path: Path) -> None:
    tasks = harbor_tasks(tmp_path, {"mended": MEND, "spoiled": SPOIL})
    order = rollouts_order("worked", tasks, rollouts=2)
    order.models.append("openai/other")
    ordered = await stack.client.rollouts.SubmitRollouts(order)
    assert (ordered.suite, list(ordered.task_ids)) == ("worked@1", ["mended", "spoiled"])
    assert [run.order.model for run in ordered.runs] == ["openai/fake", "openai/other"]
    for run in ordered.runs:
        outcomes = await finished(stack, run.run_id)
        scores = {(each.doc_id, each.outcome.rollout): each.scores["pass@1"] for each in outcomes}
        assert scores == {(0, 0): 1.0, (0, 1): 1.0, (1, 0): 0.0, (1, 1): 0.0}
    summary = await stack.client.summary(ordered.runs[0].run_id)
    figures = {metric.metric: metric.mean for metric in summary.tasks[0].metrics}
    assert (figures["pass@1"], figures["reward"], figures["pass@2"]) == (0.5, 0.5, 0.5)


async def test_a_record_of_a_rollout_has_all_that_was_done(stack: StackHarness, tmp_path: Path) -> None:
    ordered = await stack.client.rollouts.SubmitRollouts(
        rollouts_order("recorded", harbor_tasks(tmp_path, {"a": MEND}))
    )
    [outcome] = await finished(stack, ordered.runs[0].run_id)
    answer = outcome.outcome.answer
    assert (answer.finish_reason, answer.text) == ("submitted", "Step 3.")
    record = json.loads(answer.body_json)
    assert (record["score"], record["ended"]) == (1.0, "submitted")
    assert "-    return 3 * n" in record["diff"]
    assert "+    return 2 * n" in record["diff"]
    assert "1 passed" in record["verifier_log"]
    trajectory = record["trajectory"]
    assert trajectory["schema_version"] == "ATIF-v1.8"
    assert [each["function"]["name"] for each in trajectory["agent"]["tool_definitions"]] == ["bash"]
    sources = [step["source"] for step in trajectory["steps"]]
    assert sources == ["system", "user", "agent", "agent", "agent"]
    assert outcome.outcome.usage.completion_tokens == trajectory["final_metrics"]["total_completion_tokens"]
    assert trajectory["steps"][2]["tool_calls"][0]["arguments"] == {"command": "ls && cat doubling.py"}
    assert "return 3 * n" in trajectory["steps"][2]["observation"]["results"][0]["content"]


@pytest.mark.thorough
async def test_artifacts_lie_in_the_object_store_until_their_run_is_deleted(
    stack: StackHarness, tmp_path: Path
) -> None:
    ordered = await stack.client.rollouts.SubmitRollouts(
        rollouts_order("kept", harbor_tasks(tmp_path, {"a": MEND}), rollouts=2)
    )
    run_id = ordered.runs[0].run_id
    outcomes = await finished(stack, run_id)
    url = f"http://{stack.stack.gateway_http}/api/v1/rollouts/runs/{run_id}/0/1/artifacts"
    record = json.loads(next(each for each in outcomes if each.outcome.rollout == 1).outcome.answer.body_json)
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as response:
            listed = (await response.json())["artifacts"]
        sizes = {each["name"]: each["size_bytes"] for each in listed}
        assert sizes == record["artifacts"]
        assert sizes.keys() == {"trajectory.json", "files.tar.gz", "diff.patch", "verifier.log"}
        assert {each["execution"] for each in listed} == {record["execution"]}
        contents = {}
        for name in sizes:
            async with session.get(f"{url}/{record['execution']}/{name}") as response:
                contents[name] = await response.read()
        async with session.get(f"{url}/{record['execution']}/other") as response:
            assert response.status == 404
    assert {name: len(content) for name, content in contents.items()} == sizes
    assert json.loads(contents["trajectory.json"]) == record["trajectory"]
    assert contents["diff.patch"].decode() == record["diff"]
    with tarfile.open(fileobj=io.BytesIO(contents["files.tar.gz"])) as tar:
        names = {name.removeprefix("./") for name in tar.getnames()}
    assert "doubling.py" in names
    folder = stack.stack.options.state_dir / "objects" / "runs" / run_id
    assert folder.is_dir()
    await stack.client.runs.DeleteRun(DeleteRunRequest(run_id=run_id))
    limit_seconds = 2 * (SWEEP_AFTER.total_seconds() + SWEEP_SECONDS)
    await eventually(
        lambda: not any(path.is_file() for path in folder.rglob("*")), "the sweep deletes them", limit_seconds
    )


@first_cases(1, ("kind", "score"), [("ORACLE", 1.0), ("NONE", 0.25)])
async def test_agents_without_a_model_ask_none(
    stack: StackHarness, tmp_path: Path, kind: str, score: float
) -> None:
    tb_meta_folder(tmp_path / "a")
    await stack.model_server.control(reset_stats=True)
    agent = rollout_pb2.RolloutAgent(kind=f"AGENT_KIND_{kind}")  # type: ignore[arg-type]  # its name
    ordered = await stack.client.rollouts.SubmitRollouts(
        rollouts_order(f"{kind.lower()}s", archive(tmp_path), agent=agent)
    )
    agent.verification = rollout_pb2.VERIFICATION_PLACE_SAME
    with pytest.raises(Refused, match="judged in a fresh sandbox only: doubling"):
        await stack.client.rollouts.SubmitRollouts(rollouts_order("same", archive(tmp_path), agent=agent))
    [outcome] = await finished(stack, ordered.runs[0].run_id)
    assert (outcome.scores["reward"], outcome.scores["pass@1"]) == (score, float(score == 1.0))
    assert (await stack.model_server.stats())["requests"] == 0
    rubrics = json.loads(outcome.outcome.answer.body_json)["rubrics"]
    assert [rubric["weighted_score"] for rubric in rubrics.values()] == [3.0 * (score == 1.0), 1.0]
    # It is closed with its score, and no result of a model.
    leaderboard, run = stack.client.leaderboard, ordered.runs[0]
    assert run.order.agent_kind == agent.kind
    [closed] = (await leaderboard.ListClosedRuns(ListClosedRunsRequest(run_ids=[run.run_id]))).entries
    history = await leaderboard.ListHistory(ListHistoryRequest(benchmark=closed.benchmark, days=1))
    assert history.total == len(history.entries) == 0


async def test_a_verifier_without_a_result_is_a_failure_and_no_score(
    stack: StackHarness, tmp_path: Path
) -> None:
    harbor_folder(tmp_path / "a", test="exit 1; true")
    ordered = await stack.client.rollouts.SubmitRollouts(rollouts_order("unverified", archive(tmp_path)))
    run = await ended(stack, ordered.runs[0].run_id)
    assert run.state == run_pb2.RUN_STATE_FAILED
    [outcome] = await all_outcomes(stack, run.run_id)
    assert outcome.outcome.failure.failure_class == outcome_pb2.FAILURE_CLASS_VERIFIER
    assert dict(outcome.scores) == {}
    # What the agent did is kept, with what is wrong with the tests.
    url = f"http://{stack.stack.gateway_http}/api/v1/rollouts/runs/{run.run_id}/0/0/artifacts"
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as response:
            listed = {each["name"]: each for each in (await response.json())["artifacts"]}
        async with session.get(f"{url}/{listed['verifier.log']['execution']}/verifier.log") as response:
            log = await response.text()
    assert {"trajectory.json", "files.tar.gz", "verifier.log"} <= listed.keys()
    assert "no reward.json" in log


async def test_an_order_over_rest_that_is_repeated_is_one(stack: StackHarness, tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a")
    (folder / "instruction.md").write_text(MEND)
    body = {
        "suite": "rest",
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
    # Its one step looked at the files; what is left is judged.
    assert (outcome.outcome.answer.finish_reason, outcome.scores["pass@1"]) == ("step_limit", 0.0)


async def test_orders_are_listed_until_their_runs_are_deleted(stack: StackHarness, tmp_path: Path) -> None:
    order = rollouts_order("listed", harbor_tasks(tmp_path, {"a": MEND, "b": MEND}), rollouts=2)
    order.models.append("openai/other")
    ordered = await stack.client.rollouts.SubmitRollouts(order)
    for run in ordered.runs:
        await ended(stack, run.run_id)
    orders = stack.client.rollouts
    [kept] = (await orders.ListRolloutsOrders(ListRolloutsOrdersRequest(suite="listed@1"))).orders
    assert (kept.order_id, kept.rollouts, list(kept.task_ids)) == (ordered.order_id, 2, ["a", "b"])
    assert [run.run_id for run in kept.runs] == [run.run_id for run in ordered.runs]
    assert [run.progress.recorded for run in kept.runs] == [4, 4]
    assert kept.agent.max_steps == 50
    first, second = (run.run_id for run in ordered.runs)
    await stack.client.runs.DeleteRun(DeleteRunRequest(run_id=first))
    left = (await orders.GetRolloutsOrder(GetRolloutsOrderRequest(order_id=ordered.order_id))).order
    assert ([run.run_id for run in left.runs], list(left.models)) == (
        [second],
        ["openai/fake", "openai/other"],
    )
    await stack.client.runs.DeleteRun(DeleteRunRequest(run_id=second))
    with pytest.raises(errors.NotFound, match="no order of rollouts"):
        await orders.GetRolloutsOrder(GetRolloutsOrderRequest(order_id=ordered.order_id))


async def test_nothing_is_stored_of_an_order_with_an_unknown_model(
    stack: StackHarness, tmp_path: Path
) -> None:
    order = rollouts_order("refused", harbor_tasks(tmp_path, {"a": MEND}))
    order.models.append("nowhere/model")
    with pytest.raises(errors.Refused, match="nowhere"):
        await stack.client.rollouts.SubmitRollouts(order)
    listed = await stack.client.runs.ListRuns(ListRunsRequest(benchmark="refused"))
    assert listed.total == 0
    orders = await stack.client.rollouts.ListRolloutsOrders(ListRolloutsOrdersRequest(suite="refused"))
    assert orders.total == 0


CONFIG = """
name = "shown"
parallel = 2

[agent]
max_steps = 10

[[tasks]]
prepared_dir = "tasks/mended"
model = "openai/fake"
rollouts = 2
environment_variables = { TIMEOUT_SEC = "60" }

[[tasks]]
prepared_dir = "tasks/spoiled"
model = "openai/fake"

[[tasks]]
prepared_dir = "tasks/spoiled"
model = "openai/other"
rollouts = 2
"""


@contextmanager
def in_folder_of(stack: StackHarness, folder: Path) -> Iterator[None]:
    """The folder is that of the stack, whose pages the command line then links to."""
    lock = StackLock.take(folder)
    write_stack_state(
        folder, StackState(1, "running", stack.stack.gateway_http, stack.client.address, "", "")
    )
    yield
    lock.release()


def assert_lines(lines: list[str], folder: Path, stamp: str) -> None:
    """What scripts read, word for word."""
    assert lines[:4] == [
        f"[rollouts] config={folder / 'shown.toml'} name=shown tasks=5 parallel=2",
        f"[rollouts] output={folder / 'data'}/rollouts/shown/{stamp}",
        "[rollouts] Running in quiet mode - use -vv for full output",
        "[rollouts] Starting 5 tasks with parallel=2",
    ]
    assert {f"✓ Task {stamp}-{number} completed (launched)" for number in range(5)} <= set(lines)
    assert "✓ All 5 tasks completed!" in lines


async def test_the_command_line_orders_follows_and_writes_folders(
    stack: StackHarness, tmp_path: Path
) -> None:
    harbor_tasks(tmp_path / "tasks", {"mended": MEND, "spoiled": SPOIL})
    (tmp_path / "shown.toml").write_text(CONFIG)
    run = CommandLine(stack.client.address, tmp_path / "state")
    data = str(tmp_path / "data")
    with in_folder_of(stack, tmp_path / "state"):
        config = str(tmp_path / "shown.toml")
        ended = await run("rollouts", "run", config, "--data", data, "--no-check")
    assert ended.code == 0, ended.err
    assert ended.out.count(f"Its page: http://{stack.stack.gateway_http}/rollouts/") == 1
    [manifest_file] = (tmp_path / "data" / "rollouts" / "shown").glob("*/manifest.json")
    manifest = json.loads(manifest_file.read_text())
    assert_lines(ended.out.splitlines(), tmp_path, manifest["created_at"])
    assert {each["status"] for each in manifest["results"]} == {"launched"}
    scores = [(Path(each["task_dir"]).name, each["score"]) for each in manifest["results"]]
    assert scores == [("mended", 1.0), ("mended", 1.0), ("spoiled", 0.0), ("spoiled", 0.0), ("spoiled", 0.0)]
    first = Path(manifest["results"][0]["run_dir"])
    evaluation = json.loads((first / "evaluation_results.json").read_text())
    assert (evaluation["total_score"], evaluation["evaluation"]["total_score"]) == (1.0, 1.0)
    assert evaluation["agent_metrics"]["tool_calls_total"] == 3
    assert "+    return 2 * n" in (first / "artifacts" / "diff.patch").read_text()
    assert "**Overall Score**: 100.00%" in (first / "scoring_results.md").read_text()
    assert "1 passed" in (first / "logs" / "eval.log").read_text()
    assert {path.name for path in (first / "artifacts").iterdir()} == {
        "diff.patch",
        "notes.md",
        "repo_info.json",
        "trajectory.json",
    }
    before = manifest_file.read_bytes()
    again = await run("rollouts", "eval", "shown", "--latest", "--data", data)
    assert (again.code, manifest_file.read_bytes()) == (0, before)
    assert ("ended: submitted 3" in again.out, "pass^2" in again.out) == (True, True), again.out
    summed = await run("rollouts", "summarize", "shown", "--latest", "--data", data, "--json")
    tasks = [(row["model"], row["answered"], row["passed"]) for row in summed.document["tasks"]]
    assert tasks == [("openai/fake", 2, 2), ("openai/fake", 1, 0), ("openai/other", 2, 0)]
    listed = await run("rollouts", "list", "--suite", "shown")
    assert (listed.code, listed.out.count("shown@"), "2 × up to 2" in listed.out) == (0, 1, True), listed.out
    report = await run("report", "openai/fake")
    assert (report.code, "Rollouts" in report.out, "pass^2" in report.out) == (0, True, True), report.out
    listed_rows = (await run("report", "openai/fake", "--json")).document["rows"]
    [reported] = [row for row in listed_rows if row["benchmark"] == "shown"]
    assert (reported["kind"], reported["rollouts"], reported["answered"]) == ("rollouts", 2, 3)
    never = await run("report", "openai/never")
    assert (never.code, "No completed run of openai/never" in never.err) == (4, True)
    missing = await run("rollouts", "summarize", "shown", "--rollout", "never", "--data", data)
    assert missing.code == 4


FETCHED_FILES = {
    "diff.patch": "artifacts/diff.patch",
    "files.tar.gz": "artifacts/files.tar.gz",
    "trajectory.json": "artifacts/trajectory.json",
    "verifier.log": "logs/eval.log",
}


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def layout(stamp: str, ids: list[str]) -> set[str]:
    own = ("artifacts/notes.md", "artifacts/repo_info.json", "evaluation_results.json", "scoring_results.md")
    return {
        f"rollouts/fetched/{stamp}/manifest.json",
        f"rollouts/fetched/{stamp}/runs.txt",
        *(f"rollouts/fetched/{stamp}/task_results/{each}.json" for each in ids),
        *(f"runs/{each}/{name}" for each in ids for name in (*own, *FETCHED_FILES.values())),
    }


async def listed_artifacts(stack: StackHarness, run_id: str, sample: int, rollout: int) -> Sequence[Artifact]:
    request = ListArtifactsRequest(run_id=run_id, sample=sample, rollout=rollout)
    return (await stack.client.artifacts.ListArtifacts(request)).artifacts


async def stored_artifacts(stack: StackHarness, run_id: str, sample: int, rollout: int) -> dict[str, bytes]:
    """Their bytes by name; each has one part."""
    found = {}
    for each in await listed_artifacts(stack, run_id, sample, rollout):
        request = ReadArtifactRequest(
            run_id=run_id, sample=sample, rollout=rollout, execution=each.execution, name=each.name
        )
        found[each.name] = (await stack.client.artifacts.ReadArtifact(request)).content
    return found


async def test_the_folders_of_an_order_are_fetched_whole_and_resumed(
    stack: StackHarness, tmp_path: Path
) -> None:
    """Each file has the bytes that the worker stored. What is there is not fetched again, a cut file is."""
    tasks = harbor_tasks(tmp_path / "tasks", {"mended": MEND, "spoiled": SPOIL})
    ordered = await stack.client.rollouts.SubmitRollouts(rollouts_order("fetched", tasks, rollouts=2))
    run_id, data = ordered.runs[0].run_id, tmp_path / "data"
    await finished(stack, run_id)
    command = CommandLine(stack.client.address, tmp_path / "state")
    fetched = await command("rollouts", "artifacts", ordered.order_id, str(data))
    assert fetched.code == 0, fetched.err
    [manifest_file] = (data / "rollouts" / "fetched").glob("*/manifest.json")
    stamp, manifest = manifest_file.parent.name, json.loads(manifest_file.read_text())
    ids = [f"{stamp}-{number}" for number in range(4)]
    assert [each["run_id"] for each in manifest["results"]] == ids
    assert files_below(data) == layout(stamp, ids)
    for number, (sample, rollout) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        stored = await stored_artifacts(stack, run_id, sample, rollout)
        assert stored.keys() == FETCHED_FILES.keys()
        for name, content in stored.items():
            assert (data / "runs" / ids[number] / FETCHED_FILES[name]).read_bytes() == content
    # As a call that was killed leaves it: no manifest, no result of the last, a part of one of its files.
    manifest_file.unlink()
    (manifest_file.parent / "task_results" / f"{ids[3]}.json").unlink()
    cut, kept = data / "runs" / ids[3] / "artifacts" / "files.tar.gz", data / "runs" / ids[0]
    whole = cut.read_bytes()
    [listed] = [each for each in await listed_artifacts(stack, run_id, 1, 1) if each.name == cut.name]
    part = cut.with_name(f".{cut.name}.{listed.execution}-{listed.stored_at.ToNanoseconds()}")
    cut.unlink()
    part.write_bytes(whole[:100])
    (kept / "logs" / "eval.log").write_text("is not fetched again")
    again = await command("rollouts", "artifacts", ordered.order_id, str(data))
    assert again.code == 0, again.err
    assert files_below(data) == layout(stamp, ids)
    assert cut.read_bytes() == whole
    assert (kept / "logs" / "eval.log").read_text() == "is not fetched again"
    assert json.loads(manifest_file.read_text()) == manifest
    missing = await command("rollouts", "artifacts", "00000000-0000-0000-0000-000000000000", str(data))
    assert missing.code == 4
