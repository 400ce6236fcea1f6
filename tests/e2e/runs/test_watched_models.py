"""Each model of a list becomes a run, once however often a watch looks, and is held to a reference."""

import asyncio
import json
import os
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from proctor.cli.gateway import Session
from proctor.cli.render.terminal import Terminal
from proctor.cli.runs.trend import read_trend
from proctor.cli.runs.watch_models import WatchOptions, watch_models
from proctor.v1 import run_pb2
from tests.e2e.harness.entry_points import proctor
from tests.e2e.harness.run_ends import ended
from tests.fakes.eventually import eventually
from tests.fakes.notices.receivers import http_receiver
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHER = "openai/other"
WATCH = f'watch-models "openai/*" --suite {SUITE} --name frontier --against {MODEL} --limit 5 --json'

# The fake server says the name of its model.
WHOAMI = {
    "task": "whoami",
    "version": "1",
    "dataset": {"file": "rows.jsonl"},
    "output_type": "generate_until",
    "doc_to_text": "{{at}}: KEY=WHO",
    "doc_to_target": "who",
    "filter_list": [
        {
            "name": "who",
            "filter": [
                {"function": "regex", "regex_pattern": r"The answer is (\w+)\."},
                {"function": "take_first"},
            ],
        }
    ],
    "metric_list": [{"metric": "exact_match"}],
    "metadata": {"license": "Apache-2.0"},
}


async def test_models_of_a_list_are_run_once_and_gated_against_the_reference(stack: StackHarness) -> None:
    first = await proctor(stack, WATCH)
    assert first.code == 0, first.err
    runs = {one["model"]: one["run_id"] for one in first.document["watched"]}
    assert runs.keys() == {MODEL, OTHER}
    for run_id in runs.values():
        run = await ended(stack, run_id)
        assert (run.state, run.order.priority) == (run_pb2.RUN_STATE_COMPLETED, run_pb2.PRIORITY_LOW)
        assert (run.labels.name, list(run.labels.tags)) == ("frontier", ["watch"])
    # Another process, as of cron: it finds the runs of the first one.
    again = await proctor(stack, WATCH)
    watched = {one["model"]: one for one in again.document["watched"]}
    assert {model: one["run_id"] for model, one in watched.items()} == runs
    assert watched[MODEL]["verdict"] is None
    assert watched[OTHER]["verdict"] in ("pass", "fail", "inconclusive")
    assert again.code == (1 if watched[OTHER]["verdict"] == "fail" else 0)


async def test_drop_is_told_though_the_watch_has_ended(stack: StackHarness, tmp_path: Path) -> None:
    (tmp_path / "whoami.yaml").write_text(json.dumps(WHOAMI))
    rows = [{"at": number, "who": "fake"} for number in range(40)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    added = await proctor(stack, f"suites add {tmp_path / 'whoami.yaml'}")
    assert added.code == 0, added
    async with http_receiver() as receiver:
        target = await proctor(stack, f"notices add webhook {receiver.url} --on gate_failed --json")
        assert target.code == 0, target
        line = f"watch-models {OTHER} --suite whoami --name drops --against {MODEL} --margin 1pt --json"
        watched = (await proctor(stack, line)).document["watched"]
        run_ids = {one["model"]: one["run_id"] for one in watched}

        async def is_told() -> bool:
            return bool(receiver.bodies)

        await eventually(is_told, "the drop is told", 60)
        [told] = [json.loads(body)["data"] for body in receiver.bodies]
        assert (told["run_id"], told["base_run_id"]) == (run_ids[OTHER], run_ids[MODEL])
        assert (told["verdict"], told["name"], told["model"]) == ("fail", "drops", OTHER)
        assert "Worse than its base by more than 1 point: whoami 1 → 0" in told["text"]
        assert (await proctor(stack, line)).code == 1
        target_id = target.document["target"]["target_id"]
        assert (await proctor(stack, f"notices delete {target_id}")).code == 0


async def test_what_cannot_be_ordered_is_said_and_tried_again(stack: StackHarness) -> None:
    line = "watch-models openai/fake --suite absent --name nothing --json"
    for _ in range(2):
        end = await proctor(stack, line)
        [one] = end.document["watched"]
        assert (end.code, one["run_id"], one["verdict"]) == (0, None, None)
        assert one["problem"].startswith("Invalid benchmark suite")
    assert (await proctor(stack, "watch-models --suite x --name ' '")).code == 2


async def test_each_complete_checkpoint_of_a_folder_is_run_and_has_its_place_in_a_trend(
    stack: StackHarness, tmp_path: Path
) -> None:
    # The fake server knows two models.
    line = (
        f"watch-models --checkpoints {tmp_path} --model-form openai/{{name}} --suite {SUITE} --limit 5 "
        f"--against {MODEL} --json"
    )
    for name in ("other", "fake"):
        write(tmp_path / name, "config.json", "model.safetensors", age=timedelta(minutes=2))
    # It is written still.
    write(tmp_path / "step-1200", "config.json", "model.safetensors", age=timedelta())
    runs: list[str] = []
    for watch in ("training", "again"):
        watched = (await proctor(stack, f"{line} --name {watch}")).document["watched"]
        assert [one["model"] for one in watched] == [MODEL, OTHER]
        for one in watched:
            runs.append(one["run_id"])
            run = await ended(stack, one["run_id"])
            assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    gated = (await proctor(stack, f"{line} --name training")).document
    assert gated["watched"][1]["verdict"] in ("pass", "fail", "inconclusive"), gated
    # Two checkpoints are no series; runs of them are.
    assert gated["trends"] == []
    trend = await read_trend(stack.client, runs)
    assert (list(trend.run_ids), trend.scores) == (runs, [1.0] * 4)
    # All answers are alike.
    assert trend.change
    assert (trend.change.difference, trend.change.is_shown) == (0.0, False)
    assert (await proctor(stack, f"watch-models --checkpoints {tmp_path} --suite x --name y")).code == 2


async def test_watch_outlives_a_folder_that_is_away_for_a_while(
    stack: StackHarness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, printed = tmp_path / "runs", ""

    def has_said(words: str) -> bool:
        nonlocal printed
        printed += capsys.readouterr().out
        return words in " ".join(printed.split())

    write(folder / "other", "config.json", "model.safetensors", age=timedelta(minutes=2))
    # A hundredth of a minute is 0.6 s.
    options = WatchOptions([SUITE], "away", checkpoints=str(folder), model_form="openai/{name}", every=0.01)
    watching = asyncio.create_task(watch_models(Session(stack.client, Terminal(is_json=False)), options))
    await eventually(lambda: has_said(OTHER), "the first look has ordered")
    folder.rename(tmp_path / "away")
    await eventually(lambda: has_said("Not looked; tried again:"), "the watch says why it did not look")
    (tmp_path / "away").rename(folder)
    write(folder / "fake", "config.json", "model.safetensors", age=timedelta(minutes=2))
    await eventually(lambda: has_said(MODEL), "it looks again")
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


def write(folder: Path, *names: str, age: timedelta) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("x")
        at = time.time() - age.total_seconds()
        os.utime(folder / name, (at, at))
