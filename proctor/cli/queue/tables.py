"""The queue for people: what runs, what waits, why and for how long, the workers and the limits."""

from collections.abc import Iterable
from textwrap import wrap

from google.protobuf.duration_pb2 import Duration
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.render import words as run_words
from proctor.cli.render.documents import enum_word
from proctor.cli.render.table import RUN_ID_WIDTH, compact_table, two_lines
from proctor.cli.render.terminal import say
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2, scheduler_service_pb2


def print_queue(console: Console, queue: queue_pb2.GetQueueResponse) -> None:
    most = queue.limits.max_running_runs
    if queue.running:
        console.print(
            _running_table(console, queue.running, f"running: {len(queue.running)} of at most {most}")
        )
    if queue.waiting:
        console.print(_waiting_table(console, queue.waiting, f"waiting: {queue.waiting_total}"))
    if queue.paused:
        console.print(_paused_table(console, queue.paused))
    if not (queue.running or queue.waiting or queue.paused):
        say(console, f"Nothing runs or waits; at most {most} may run at a time.")
    console.print(workers_table(console, queue.workers))
    if len(queue.users) > 1:
        console.print(_users_table(console, queue.users))


def workers_table(console: Console, workers: Iterable[scheduler_service_pb2.WorkerInfo]) -> Table:
    table = compact_table(console, "workers")
    table.add_column("worker, pool", overflow="fold")
    table.add_column("model, engine", overflow="fold")
    table.add_column("in flight", justify="right")
    table.add_column("condition", overflow="fold")
    for worker in workers:
        table.add_row(
            two_lines(worker.worker_id, worker.pool),
            two_lines(_models(worker), worker.engine),
            f"{worker.in_flight}/{worker.concurrency}",
            two_lines(_condition(worker), _load(worker)),
        )
    return table


def limits_table(console: Console, limits: queue_pb2.QueueLimits) -> Table:
    table = compact_table(console, "limits")
    table.add_column("limit")
    table.add_column("is", justify="right")
    table.add_column("change with")
    rows = (
        ("runs running at a time", str(limits.max_running_runs), "--max-running"),
        ("waiting runs of a user", str(limits.max_pending_runs_per_user), "--max-pending"),
        ("requests of a user in a minute", str(limits.max_requests_per_minute), "--max-requests"),
        ("time that a run may take", _time(limits.run_time_limit), "--time-limit"),
        ("time that a run keeps its place", _time(limits.min_run_time), "--min-run-time"),
    )
    for row in rows:
        table.add_row(*row)
    for each in limits.priorities:
        who = "everybody else" if each.user == "*" else each.user
        table.add_row(f"highest priority of {who}", _priority(each), "--priority")
    return table


def _running_table(console: Console, runs: Iterable[run_pb2.Run], title: str) -> Table:
    table = compact_table(console, title)
    table.add_column("model, run", no_wrap=True)
    for column in ("suite, user", "done, step", "pace, to go"):
        table.add_column(column, overflow="fold")
    for run in runs:
        progress = run.progress
        share = f"{100 * progress.completed / progress.total:.0f} %" if progress.total else ""
        rate = f"{progress.samples_per_second:.1f}/s" if progress.HasField("samples_per_second") else ""
        table.add_row(
            *_who(run),
            two_lines(share, progress.current_step),
            two_lines(
                rate, run_words.duration(progress.eta_seconds) if progress.HasField("eta_seconds") else ""
            ),
        )
    return table


def _waiting_table(console: Console, runs: Iterable[run_pb2.Run], title: str) -> Table:
    table = compact_table(console, title)
    table.add_column("no.", justify="right")
    table.add_column("model, run", no_wrap=True)
    table.add_column("suite, user", overflow="fold")
    table.add_column("starts in, held by", overflow="fold")
    for run in runs:
        turn = run_words.turn(run.wait) or "nothing tells when"
        table.add_row(str(run.wait.position), *_who(run), two_lines(turn, run.wait.blocked_by))
    return table


def _paused_table(console: Console, runs: Iterable[run_pb2.Run]) -> Table:
    table = compact_table(console, "paused")
    table.add_column("model, run", no_wrap=True)
    table.add_column("suite, user", overflow="fold")
    for run in runs:
        table.add_row(*_who(run))
    return table


def _users_table(console: Console, users: Iterable[queue_pb2.UserRunCounts]) -> Table:
    table = compact_table(console, "users")
    table.add_column("user", overflow="fold")
    table.add_column("running", justify="right")
    table.add_column("waiting", justify="right")
    for each in users:
        table.add_row(each.user, str(each.running), str(each.pending))
    return table


def _who(run: run_pb2.Run) -> tuple[Text, Text]:
    priority = enum_word(run.order.DESCRIPTOR.fields_by_name["priority"], run.order.priority)
    user = run.user if priority == "high" else f"{run.user}, {priority}"
    # Folded here: a column that may be folded is squeezed below the width of an id.
    model = "\n".join(wrap(run.order.model, RUN_ID_WIDTH))
    return two_lines(model, run.run_id), two_lines(run_words.subject(run), user)


def _models(worker: scheduler_service_pb2.WorkerInfo) -> str:
    if worker.engine != "vllm":
        return worker.loaded_model or "any"
    return ", ".join(worker.ready_models or [worker.loaded_model])


def _condition(worker: scheduler_service_pb2.WorkerInfo) -> str:
    if not worker.loading_model:
        return worker.condition
    is_loading = worker.condition == "loading"
    return f"{'loading' if is_loading else 'turns to'} {worker.loading_model}"


def _load(worker: scheduler_service_pb2.WorkerInfo) -> str:
    if not worker.HasField("load"):
        return ""
    load = worker.load
    parts = [f"{load.running_requests} asked, {load.waiting_requests} wait, cache {load.kv_cache_usage:.0%}"]
    if load.prefix_cache_queries:
        parts.append(f"prefix hits {load.prefix_cache_hits / load.prefix_cache_queries:.0%}")
    return ", ".join(parts)


def _time(duration: Duration) -> str:
    return run_words.duration(duration.ToTimedelta().total_seconds())


def _priority(each: queue_pb2.UserPriority) -> str:
    return enum_word(each.DESCRIPTOR.fields_by_name["highest"], each.highest)
