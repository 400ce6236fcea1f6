"""`proctor queue`, `limits`, `pause`, `resume` as a script sees them, against a real gateway."""

from proctor.v1 import model_pb2, run_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.stack.command_line import CommandLine
from tests.fakes.thorough_cases import first_cases


def queue_with_one_pending(harness: GatewayHarness) -> None:
    queue = queue_pb2.GetQueueResponse(pending_total=1, limits=harness.scheduler.queue.limits)
    run = queue.pending.add(run_id="r1", user="bob", state=run_pb2.RUN_STATE_PENDING)
    run.order.suite, run.order.model, run.order.priority = "glue", "vllm/starter", run_pb2.PRIORITY_LOW
    run.wait.position, run.wait.blocked_by = 1, "All 3 slots are busy"
    run.wait.estimated_seconds, run.wait.estimated_low_seconds, run.wait.estimated_high_seconds = 60, 30, 90
    worker = queue.workers.add(
        worker_id="w1", pool="local", engine="vllm", concurrency=8, state=model_pb2.WORKER_STATE_READY
    )
    worker.load.running_requests, worker.load.kv_cache_usage = 5, 0.25
    harness.scheduler.queue.queue = queue


async def test_queue_says_who_waits_why_and_for_how_long(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    queue_with_one_pending(harness)
    shown = await proctor("queue", "--page-size", "7")
    assert (shown.code, shown.err) == (0, "")
    words = " ".join(shown.out.split())
    for reported in (
        "vllm/starter",
        "pending: 1",
        "bob, low",
        "about 1:00 (30.0 s to 1:30)",
        "w1",
        "5 running",
        "cache 25%",
    ):
        assert reported in words
    assert [request.page_size for request in harness.scheduler.queue.asked] == [7]
    status = " ".join((await proctor("status")).out.split())
    assert "about 1:00 (30.0 s to 1:30)" in status


async def test_status_and_queue_name_what_nats_refuses(harness: GatewayHarness, proctor: CommandLine) -> None:
    refused = queue_pb2.RefusedStream(name="OUTCOMES", reason="no space left on device")
    queue = queue_pb2.GetQueueResponse(limits=harness.scheduler.queue.limits, refused_streams=[refused])
    harness.scheduler.queue.queue = queue
    for command in ("queue", "status"):
        shown = " ".join((await proctor(command)).out.split())
        assert "NATS refuses OUTCOMES, and runs wait: no space left on device" in shown
    document = (await proctor("status", "--json")).document
    assert document["refused_streams"] == [{"name": "OUTCOMES", "reason": "no space left on device"}]


async def test_status_and_queue_name_a_disk_that_fills_up(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    disk = queue_pb2.FullDisk(name="disk", used_share=0.92, reason="it is 92% full; runs wait")
    queue = queue_pb2.GetQueueResponse(limits=harness.scheduler.queue.limits, full_disks=[disk])
    harness.scheduler.queue.queue = queue
    for command in ("queue", "status"):
        assert "Storage fills up: it is 92% full; runs wait." in (await proctor(command)).out
    assert [each["used_share"] for each in (await proctor("status", "--json")).document["full_disks"]] == [
        0.92
    ]


async def test_a_run_whose_figures_are_computed_does_not_count_to_the_limit(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    queue = queue_pb2.GetQueueResponse(limits=harness.scheduler.queue.limits)
    for is_closing in (False, True):
        run = queue.running.add(run_id=f"r{is_closing:d}", state=run_pb2.RUN_STATE_RUNNING)
        run.progress.is_closing = is_closing
    harness.scheduler.queue.queue = queue
    assert "running: 1 of at most 3, 1 closing" in " ".join((await proctor("queue")).out.split())


async def test_queue_is_one_document_for_scripts(harness: GatewayHarness, proctor: CommandLine) -> None:
    queue_with_one_pending(harness)
    shown = (await proctor("queue", "--json")).document
    assert shown["pending"][0]["wait"] == {
        "position": 1,
        "blocked_by": "All 3 slots are busy",
        "estimated_seconds": 60.0,
        "estimated_low_seconds": 30.0,
        "estimated_high_seconds": 90.0,
    }
    assert shown["limits"]["run_time_limit"] == 10800.0


async def test_empty_queue_says_so(proctor: CommandLine) -> None:
    assert "Nothing runs or waits; at most 3 may run at a time." in (await proctor("queue")).out


async def test_storage_is_shown_with_its_limit_which_operators_change(proctor: CommandLine) -> None:
    shown = " ".join((await proctor("storage")).out.split())
    for row in ("storage of local", "data sets 1.5 MB 3 1,200", "limit 100.0 GB 10,000 200,000,000"):
        assert row in shown
    assert (await proctor("storage", "bob", "--json")).document["user"] == "bob"
    assert (await proctor("limits", "--json")).document["max_stored_bytes_per_project"] == 0
    options = (
        "--max-stored-bytes-per-user",
        "5000000000",
        "--max-stored-files-per-user",
        "7",
        "--max-stored-rows-per-user",
        "8",
        "--max-stored-bytes-per-project",
        "9",
    )
    changed = (await proctor("limits", *options, "--json")).document
    names = ("bytes_per_user", "files_per_user", "rows_per_user", "bytes_per_project")
    assert [changed[f"max_stored_{name}"] for name in names] == [5_000_000_000, 7, 8, 9]
    assert "5.0 GB --max-stored-bytes-per-user" in " ".join((await proctor("limits")).out.split())
    unlimited = (await proctor("limits", "--max-stored-bytes-per-project", "0", "--json")).document
    assert unlimited["max_stored_bytes_per_project"] == 0
    assert "no limit --max-stored-bytes-per-project" in " ".join((await proctor("limits")).out.split())
    back = (await proctor("limits", "--reset", "max-stored-bytes-per-user", "--json")).document
    assert back["max_stored_bytes_per_user"] == 100_000_000_000


async def test_limits_are_shown_and_changed(proctor: CommandLine) -> None:
    assert "1:00 --min-run-time" in " ".join((await proctor("limits")).out.split())
    options = (
        "--max-running-runs",
        "1",
        "--run-time-limit",
        "90",
        "--highest-priorities",
        "ann=high",
        "--highest-priorities",
        "*=low",
    )
    changed = (await proctor("limits", *options, "--json")).document
    assert (changed["max_running_runs"], changed["run_time_limit"]) == (1, 90.0)
    assert "last_change" in changed
    assert changed["max_pending_runs_per_user"] == 10
    assert changed["highest_priorities"] == [
        {"user": "ann", "highest": "high"},
        {"user": "*", "highest": "low"},
    ]
    more = (
        await proctor(
            "limits", "--highest-priorities", "bob=normal", "--highest-priorities", "ann=", "--json"
        )
    ).document
    assert more["highest_priorities"] == [
        {"user": "*", "highest": "low"},
        {"user": "bob", "highest": "normal"},
    ]
    back = (
        await proctor("limits", "--reset", "highest-priorities", "--reset", "run-time-limit", "--json")
    ).document
    assert (back["highest_priorities"], back["run_time_limit"]) == (
        [{"user": "*", "highest": "normal"}],
        10800.0,
    )
    assert "1 --max-running-runs" in " ".join((await proctor("limits")).out.split())


@first_cases(
    2,
    ("option", "value", "said"),
    [
        ("--highest-priorities", "ann", "write USER=NAME, with one of high, normal, low"),
        ("--highest-priorities", "ann=urgent", "write USER=NAME"),
        ("--run-time-limit", "nan", "31536000"),
        ("--run-time-limit", "-1e15", "'--run-time-limit': -1000000000000000.0 is not from 0 to"),
        ("--run-time-limit", "1e13", "31536000"),
        ("--min-run-time", "1e15", "31536000"),
        ("--max-running-runs", "99999999999", "2147483647"),
        ("--max-running-runs", "-99999999999", "'--max-running-runs': -99999999999 is not from 1 to"),
        ("--reset", "max", "it must be one of max-running-runs, max-pending-runs-per-user"),
    ],
)
async def test_bad_limits_are_refused_in_a_sentence(
    proctor: CommandLine, option: str, value: str, said: str
) -> None:
    refused = await proctor("limits", option, value)
    assert refused.code == 2
    assert said in " ".join(refused.err.split())


async def test_run_is_paused_and_resumed(harness: GatewayHarness, proctor: CommandLine) -> None:
    harness.scheduler.put(run_pb2.Run(run_id="r1", state=run_pb2.RUN_STATE_RUNNING))
    assert "Run r1 is paused" in (await proctor("pause", "r1")).out
    resumed = await proctor("resume", "r1", "--json")
    assert resumed.document["run"]["state"] == "pending"
    again = await proctor("resume", "r1", "--json")
    assert (again.code, again.document["error"]["reason"]) == (2, "RUN_NOT_PAUSED")


async def test_worker_that_loads_is_shown_with_its_note(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    queue_with_one_pending(harness)
    worker = harness.scheduler.queue.queue.workers[0]
    worker.state, worker.loading_model = model_pb2.WORKER_STATE_LOADING, "vllm/b"
    worker.note = "the clock of the machine is 4:00:00 ahead of that of NATS"
    [shown] = (await proctor("queue", "--json")).document["workers"]
    assert (shown["state"], shown["note"]) == ("loading", worker.note)
    text = " ".join((await proctor("queue")).out.split())
    assert "loading vllm/b" in text
    assert "switches to" not in text


async def test_names_that_others_chose_are_shown_and_not_obeyed(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    name = "\x1b[31mroot\x9b2J\a\x7f"
    queue_with_one_pending(harness)
    queue = harness.scheduler.queue.queue
    queue.pending[0].user = queue.pending[0].order.suite = queue.pending[0].wait.blocked_by = name
    queue.workers[0].worker_id = queue.workers[0].note = name
    queue.users.add(user=name, pending=1)
    queue.users.add(user="bob")
    harness.scheduler.queue.limits.highest_priorities.add(user=name, highest=run_pb2.PRIORITY_LOW)
    for command in ("queue", "limits", "status"):
        shown = await proctor(command)
        assert "\u241b[31mroot" in shown.out
        assert not set(shown.out) & set("\x1b\x9b\a\x7f")


async def test_run_that_waits_again_says_how_urgent_it_is(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    for command, state in (("resume", run_pb2.RUN_STATE_PAUSED), ("retry", run_pb2.RUN_STATE_FAILED)):
        run = run_pb2.Run(run_id="r1", state=state)
        run.order.priority = run_pb2.PRIORITY_NORMAL
        harness.scheduler.put(run)
        assert ", with priority normal: " in (await proctor(command, "r1")).out


async def test_command_over_the_rate_says_when_to_come_back(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    harness.scheduler.queue.max_requests = 0
    refused = await proctor("queue", "--json")
    assert (refused.code, refused.document["error"]["reason"]) == (2, "TOO_MANY_REQUESTS")
    assert "requests of this minute" in refused.err
