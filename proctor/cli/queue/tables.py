"""The queue as text: running, waiting and paused runs, workers, users, limits."""

from textwrap import wrap

from google.protobuf.duration_pb2 import Duration
from rich.console import Console
from rich.text import Text

from proctor.cli.render import words
from proctor.cli.render.table import RUN_ID_WIDTH, Cell, Column, numbers, table, texts, two_lines
from proctor.cli.render.terminal import say
from proctor.v1 import model_pb2, run_pb2, scheduler_service_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2

_RUN = (Column("model, run", "whole"), Column("suite, user"))


def print_queue(console: Console, queue: queue_pb2.GetQueueResponse) -> None:
    max_running = queue.limits.max_running_runs
    if queue.running:
        title = f"running: {len(queue.running)} of at most {max_running}"
        columns = (*_RUN, *texts("done, step", "rate, time left"))
        console.print(table(console, columns, map(_running_cells, queue.running), title))
    if queue.waiting:
        columns = (*numbers("no."), *_RUN, *texts("starts in, blocked by"))
        title = f"waiting: {queue.waiting_total}"
        console.print(table(console, columns, map(_waiting_cells, queue.waiting), title))
    if queue.paused:
        console.print(table(console, _RUN, map(_run_cells, queue.paused), "paused"))
    if not (queue.running or queue.waiting or queue.paused):
        say(console, f"Nothing runs or waits; at most {max_running} may run at a time.")
    columns = (*texts("worker, pool", "model, engine"), *numbers("in flight"), *texts("condition"))
    console.print(table(console, columns, map(_worker_cells, queue.workers), "workers"))
    if len(queue.users) > 1:
        rows = ((each.user, str(each.running), str(each.pending)) for each in queue.users)
        console.print(table(console, (*texts("user"), *numbers("running", "waiting")), rows, "users"))


def print_limits(console: Console, limits: queue_pb2.QueueLimits) -> None:
    rows = [
        ("runs executing at a time", str(limits.max_running_runs), "--max-running"),
        ("waiting runs of a user", str(limits.max_pending_runs_per_user), "--max-pending"),
        ("requests of a user per minute", str(limits.max_requests_per_minute), "--max-requests"),
        ("time that a run may take", _time(limits.run_time_limit), "--time-limit"),
        ("time before a run may be preempted", _time(limits.min_run_time), "--min-run-time"),
    ]
    for each in limits.priorities:
        user = "all others" if each.user == "*" else each.user
        rows.append((f"highest priority of {user}", _priority(each.highest), "--priority"))
    columns = (Column("limit"), *numbers("is"), Column("change with", "whole"))
    console.print(table(console, columns, rows, "limits"))


def _running_cells(run: run_pb2.Run) -> tuple[Cell, ...]:
    progress = run.progress
    share = f"{100 * progress.completed / progress.total:.0f} %" if progress.total else ""
    rate = f"{progress.samples_per_second:.1f}/s" if progress.HasField("samples_per_second") else ""
    left = words.duration(progress.eta_seconds) if progress.HasField("eta_seconds") else ""
    return *_run_cells(run), two_lines(share, progress.current_step), two_lines(rate, left)


def _waiting_cells(run: run_pb2.Run) -> tuple[Cell, ...]:
    start = words.expected_start(run.wait) or "no estimate"
    return str(run.wait.position), *_run_cells(run), two_lines(start, run.wait.blocked_by)


def _run_cells(run: run_pb2.Run) -> tuple[Text, Text]:
    is_high = run.order.priority == run_pb2.PRIORITY_HIGH
    user = run.user if is_high else f"{run.user}, {_priority(run.order.priority)}"
    # Folded here, because rich would squeeze a foldable column below the width of an id.
    model = "\n".join(wrap(run.order.model, RUN_ID_WIDTH))
    return two_lines(model, run.run_id), two_lines(words.subject(run), user)


def _worker_cells(worker: scheduler_service_pb2.WorkerInfo) -> tuple[Cell, ...]:
    is_vllm = worker.engine == "vllm"
    ready = ", ".join(worker.ready_models or [worker.loaded_model])
    condition = worker.condition
    if worker.loading_model:
        verb = "loading" if condition == "loading" else "switches to"
        condition = f"{verb} {worker.loading_model}"
    return (
        two_lines(worker.worker_id, worker.pool),
        two_lines(ready if is_vllm else worker.loaded_model or "any", worker.engine),
        f"{worker.in_flight}/{worker.concurrency}",
        two_lines(condition, _load(worker.load) if worker.HasField("load") else ""),
    )


def _load(load: model_pb2.EngineLoad) -> str:
    shown = (
        f"{load.running_requests} running, {load.waiting_requests} waiting, cache {load.kv_cache_usage:.0%}"
    )
    if not load.prefix_cache_queries:
        return shown
    return f"{shown}, prefix hits {load.prefix_cache_hits / load.prefix_cache_queries:.0%}"


def _time(duration: Duration) -> str:
    return words.duration(duration.ToTimedelta().total_seconds())


def _priority(priority: run_pb2.Priority.ValueType) -> str:
    return words.enum_word(run_pb2.Priority.DESCRIPTOR, priority)
