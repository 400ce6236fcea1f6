"""Orders of more runs than may wait follow by themselves; who breaks off reads how to go on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.gateway import Session
from proctor.cli.render.terminal import Terminal
from proctor.cli.rollouts.config import read_config
from proctor.cli.rollouts.folders import RolloutFolders
from proctor.cli.rollouts.run import Ordering, _follow
from proctor.client.errors import Refused
from proctor.v1 import rollout_service_pb2, run_pb2
from tests.harness.rollout_tasks import harbor_folder

MODELS, LIMIT = 29, 10


class Queue:
    """Takes orders while so many runs wait; some of them begin at each call that is refused."""

    address = "nowhere:1"

    def __init__(self) -> None:
        self.rollouts = self
        self.waiting = 0
        self.ordered: list[str] = []
        self.is_full = asyncio.Event()

    async def SubmitRollouts(  # noqa: N802  # as in the contract
        self, order: rollout_service_pb2.SubmitRolloutsRequest
    ) -> rollout_service_pb2.SubmitRolloutsResponse:
        if self.waiting + len(order.models) > LIMIT:
            if self.waiting:
                self.is_full.set()
            self.waiting = max(0, self.waiting - 3)
            raise Refused("Queue is full.", "QUEUE_FULL", {"limit": str(LIMIT)})
        self.waiting += len(order.models)
        self.ordered += order.models
        runs = [run_pb2.Run(run_id=model, order=run_pb2.RunOrder(model=model)) for model in order.models]
        response = rollout_service_pb2.SubmitRolloutsResponse(runs=runs, task_ids=["a"])
        response.order_id = order.request_id
        return response

    async def watch_run(self, _: str) -> AsyncIterator[run_pb2.Run]:
        await asyncio.Event().wait()
        yield run_pb2.Run()


def ordering(folder: Path, queue: Any) -> Ordering:
    harbor_folder(folder / "a")
    entry = '[[tasks]]\nprepared_dir = "a"\nmodel = "openai/m{}"\n'
    config = folder / "many.toml"
    config.write_text("".join(entry.format(number) for number in range(MODELS)))
    read = read_config(config)
    folders = RolloutFolders(folder / "data", "many", "20260101__00-00-00", str(config))
    session = Session(queue, Terminal(is_json=False))
    tasks = rollout_service_pb2.UploadTasksResponse(tasks_digest="digest", task_ids=["a"])
    return Ordering(session, read, tasks, None, folders, pause_seconds=0.0)


async def test_runs_beyond_those_that_may_wait_follow_by_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = Queue()
    making = ordering(tmp_path, queue)
    runs = [run async for run in making.runs()]
    assert queue.ordered == [run.model for run in runs] == [f"openai/m{number}" for number in range(MODELS)]
    assert [run.first for run in runs] == list(range(MODELS))
    said = capsys.readouterr().out
    assert said.count("[rollouts] 10 of your runs wait already; the rest follows") == 1


async def test_another_refusal_ends_the_order(tmp_path: Path) -> None:
    class Refusing(Queue):
        async def SubmitRollouts(self, order: Any) -> Any:  # noqa: N802  # as in the contract
            raise Refused(f"{order.suite} is no name.")

    making = ordering(tmp_path, Refusing())
    with pytest.raises(Refused, match="many is no name"):
        await anext(making.runs())


async def test_who_breaks_off_reads_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queue = Queue()
    making = ordering(tmp_path, queue)
    making.pause_seconds = 3600.0
    following = asyncio.create_task(_follow(making.session, making.folders, 1, making.runs(), MODELS))
    async with asyncio.timeout(60):
        await queue.is_full.wait()
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    said = capsys.readouterr().err
    assert "proctor rollouts eval many --rollout 20260101__00-00-00 --data " in said
    assert "19 of 29 rollouts were not ordered." in said
