"""`proctor queue` and `limits`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from textwrap import wrap
from typing import Annotated, TypeVar

import typer
from google.protobuf.duration_pb2 import Duration
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from proctor.cli.gateway import Session
from proctor.cli.render import words
from proctor.cli.render.table import RUN_ID_WIDTH, Cell, Column, numbers, table, texts, two_lines
from proctor.cli.render.terminal import say
from proctor.cli.render.words import JsonValue, document, option_value
from proctor.client.errors import Refused
from proctor.v1 import model_pb2, run_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.plain import INT32_MAX
from proctor.values.run import MAX_TIME_LIMIT_SECONDS
from proctor.wire.enums import shown_word, word_of, words_of
from proctor.wire.rollout_orders import answering_model

_PRIORITY_HELP = "The highest priority of USER, or of all others for *; USER= removes USER from the list."
# The widest ranges of the contract; the scheduler checks the limit itself.
_INT64_MAX = 2**63 - 1
N = TypeVar("N", int, float)
# Names of limits, as in the options.
_LIMITS = [field.name.replace("_", "-") for field in queue_pb2.QueueLimits.DESCRIPTOR.fields]


def _number(minimum: int, maximum: int = _INT64_MAX) -> Callable[[str], int]:
    """Reads an option. Ranges of typer in the help would leave no room for the names of limits."""

    def read(given: str) -> int:
        if not given.removeprefix("-").isdecimal():
            raise typer.BadParameter(f"{given} is not a whole number.")
        return _within(int(given), minimum, maximum)

    return read


def _seconds(given: str) -> float:
    try:
        return _within(float(given), 0, MAX_TIME_LIMIT_SECONDS)
    except ValueError:
        raise typer.BadParameter(f"{given} is not a number.") from None


def _within(number: N, minimum: int, maximum: int) -> N:
    if not minimum <= number <= maximum:
        raise typer.BadParameter(f"{number} is not from {minimum} to {maximum}.")
    return number


_RUN = (Column("model, run", "whole"), Column("benchmark, user"))


async def queue(
    session: Session,
    *,
    page_size: Annotated[
        int, typer.Option(min=1, max=500, help="Maximum number of pending and paused runs.")
    ] = 100,
) -> None:
    """Show the running runs, the pending ones with reason and expected start, and the workers."""
    request = queue_pb2.GetQueueRequest(page_size=page_size)
    session.terminal.show(await session.client.queue.GetQueue(request), print_queue)


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Limits to change; what is not given stays."""

    max_running_runs: Annotated[
        int | None,
        typer.Option(parser=_number(1, INT32_MAX), metavar="N", help="Runs that execute at a time."),
    ] = None
    max_pending_runs_per_user: Annotated[
        int | None,
        typer.Option(parser=_number(1, INT32_MAX), metavar="N", help="Pending and paused runs of a user."),
    ] = None
    max_requests_per_minute: Annotated[
        int | None,
        typer.Option(
            parser=_number(1, INT32_MAX),
            metavar="N",
            help="Orders, uploads and changes of a user per minute.",
        ),
    ] = None
    run_time_limit: Annotated[
        float | None, typer.Option(parser=_seconds, metavar="SECONDS", help="Seconds that a run may execute.")
    ] = None
    min_run_time: Annotated[
        float | None,
        typer.Option(
            parser=_seconds,
            metavar="SECONDS",
            help="Seconds, at least 5, that a run executes before a run of equal priority may preempt it.",
        ),
    ] = None
    highest_priorities: Annotated[
        list[str] | None, typer.Option(metavar="USER=NAME", help=_PRIORITY_HELP)
    ] = None
    max_stored_bytes_per_user: Annotated[
        int | None, typer.Option(parser=_number(1), metavar="N", help="Bytes that a user may store.")
    ] = None
    max_stored_files_per_user: Annotated[
        int | None,
        typer.Option(
            parser=_number(1),
            metavar="N",
            help="Data sets, files, batch outputs, versions of suites, sets of tasks "
            "and runs with artifacts that a user may store.",
        ),
    ] = None
    max_stored_rows_per_user: Annotated[
        int | None, typer.Option(parser=_number(1), metavar="N", help="Rows that a user may store.")
    ] = None
    max_stored_bytes_per_project: Annotated[
        int | None,
        typer.Option(parser=_number(0), metavar="N", help="Bytes that a project may store. 0: no limit."),
    ] = None
    reset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Return a limit to its setting: {', '.join(_LIMITS)}."),
    ] = None


async def limits(session: Session, options: LimitOptions) -> None:
    """Show the limits of the whole system, or change them at once, without a restart."""
    changes = queue_pb2.QueueLimits(
        max_running_runs=options.max_running_runs,
        max_pending_runs_per_user=options.max_pending_runs_per_user,
        max_requests_per_minute=options.max_requests_per_minute,
        max_stored_bytes_per_user=options.max_stored_bytes_per_user,
        max_stored_files_per_user=options.max_stored_files_per_user,
        max_stored_rows_per_user=options.max_stored_rows_per_user,
        max_stored_bytes_per_project=options.max_stored_bytes_per_project,
    )
    for field, seconds in (
        (changes.run_time_limit, options.run_time_limit),
        (changes.min_run_time, options.min_run_time),
    ):
        if seconds is not None:
            field.FromTimedelta(timedelta(seconds=seconds))
    to_reset = [_limit_field(each) for each in options.reset or ()]
    if options.highest_priorities:
        present = (await session.client.queue.GetLimits(queue_pb2.GetLimitsRequest())).limits
        changes.highest_priorities.extend(
            _changed_priorities(present.highest_priorities, options.highest_priorities)
        )
    if changes.ListFields() or to_reset:
        await session.client.queue.SetLimits(queue_pb2.SetLimitsRequest(limits=changes, reset=to_reset))
    shown = await session.client.queue.GetLimits(queue_pb2.GetLimitsRequest())
    if session.terminal.is_json:
        session.terminal.emit(_limits_document(shown))
    else:
        print_limits(session.terminal.out, shown)


def _limits_document(shown: queue_pb2.GetLimitsResponse) -> JsonValue:
    """The limits by name, as REST shows them, with the last change beside them; null if there was none."""
    last = document(shown.last_change) if shown.HasField("last_change") else None
    return {**document(shown.limits), "last_change": last}


def _limit_field(text: str) -> str:
    if text not in _LIMITS:
        raise Refused(f"--reset {text}: it must be one of {', '.join(_LIMITS)}.")
    return text.replace("-", "_")


def _changed_priorities(
    present: Iterable[queue_pb2.UserPriority], changes: Iterable[str]
) -> list[queue_pb2.UserPriority]:
    """The whole list, because only the whole list can be changed, and an empty one changes nothing."""
    highest_of = {each.user: each.highest for each in present}
    for text in changes:
        user, _, name = text.rpartition("=")
        known = words_of(run_pb2.Priority)
        if not user or (name and name not in known):
            form = f"write USER=NAME, with one of {', '.join(known)}, or USER= to remove USER"
            raise Refused(f"--highest-priorities {text}: {form}.")
        highest_of.pop(user, None)
        if name:
            highest_of[user] = option_value(run_pb2.Priority, name, "--highest-priorities")
    highest_of = highest_of or {"*": run_pb2.PRIORITY_HIGH}
    return [queue_pb2.UserPriority(user=user, highest=highest) for user, highest in highest_of.items()]


def _running_title(running: Sequence[run_pb2.Run], maximum: int) -> str:
    """A run whose figures are computed has no slot any more, so it does not count to the limit."""
    closing = sum(run.progress.is_closing for run in running)
    title = f"running: {len(running) - closing} of at most {maximum}"
    return f"{title}, {closing} closing" if closing else title


def print_queue(console: Console, queue: queue_pb2.GetQueueResponse) -> None:
    max_running = queue.limits.max_running_runs
    for stream in queue.refused_streams:
        say(console, f"NATS refuses {stream.name}, and runs wait: {stream.reason}", style="red")
    for disk in queue.full_disks:
        say(console, f"Storage fills up: {disk.reason}.", style="red")
    if queue.running:
        title = _running_title(queue.running, max_running)
        columns = (*_RUN, *texts("done, phase", "speed, time left"))
        console.print(table(console, columns, map(_running_cells, queue.running), title))
    if queue.pending:
        columns = (*numbers("no."), *_RUN, *texts("starts in, blocked by"))
        title = f"pending: {queue.pending_total}"
        console.print(table(console, columns, map(_pending_cells, queue.pending), title))
    if queue.paused:
        console.print(table(console, _RUN, map(_run_cells, queue.paused), "paused"))
    if not (queue.running or queue.pending or queue.paused):
        say(console, f"Nothing runs or waits; at most {max_running} may run at a time.")
    columns = (*texts("worker, pool", "model, engine"), *numbers("in flight"), *texts("state"))
    console.print(table(console, columns, map(_worker_cells, queue.workers), "workers"))
    if len(queue.users) > 1:
        rows = ((each.user, str(each.running), str(each.pending)) for each in queue.users)
        console.print(table(console, (*texts("user"), *numbers("running", "pending")), rows, "users"))


def print_limits(console: Console, shown: queue_pb2.GetLimitsResponse) -> None:
    limits = shown.limits
    rows = [
        ("runs executing at a time", str(limits.max_running_runs), "--max-running-runs"),
        (
            "pending and paused runs of a user",
            str(limits.max_pending_runs_per_user),
            "--max-pending-runs-per-user",
        ),
        (
            "orders, uploads and changes of a user per minute",
            str(limits.max_requests_per_minute),
            "--max-requests-per-minute",
        ),
        ("time that a run may execute", _time(limits.run_time_limit), "--run-time-limit"),
        ("time before equal priority may preempt a run", _time(limits.min_run_time), "--min-run-time"),
        ("storage of a user", decimal(limits.max_stored_bytes_per_user), "--max-stored-bytes-per-user"),
        ("stored files of a user", f"{limits.max_stored_files_per_user:,}", "--max-stored-files-per-user"),
        ("stored rows of a user", f"{limits.max_stored_rows_per_user:,}", "--max-stored-rows-per-user"),
        (
            "storage of a project",
            _size_limit(limits.max_stored_bytes_per_project),
            "--max-stored-bytes-per-project",
        ),
    ]
    for each in limits.highest_priorities:
        user = "all others" if each.user == "*" else each.user
        rows.append((f"highest priority of {user}", _priority(each.highest), "--highest-priorities"))
    columns = (Column("limit"), *numbers("is"), Column("change with", "whole"))
    console.print(table(console, columns, rows, "limits"))
    if shown.HasField("last_change"):
        last = shown.last_change
        when = last.changed_at.ToDatetime().strftime("%Y-%m-%d %H:%M")
        say(console, f"Last changed by {last.user}, {when} UTC: {last.detail}", style="dim")


def _running_cells(run: run_pb2.Run) -> tuple[Cell, ...]:
    progress = run.progress
    share = f"{100 * progress.recorded / progress.total:.0f} %" if progress.total else ""
    speed = f"{progress.samples_per_second:.1f}/s" if progress.HasField("samples_per_second") else ""
    left = words.duration(progress.eta_seconds) if progress.HasField("eta_seconds") else ""
    return *_run_cells(run), two_lines(share, progress.phase), two_lines(speed, left)


def _pending_cells(run: run_pb2.Run) -> tuple[Cell, ...]:
    start = words.expected_start(run.wait) or "no estimate"
    return str(run.wait.position), *_run_cells(run), two_lines(start, run.wait.blocked_by)


def _run_cells(run: run_pb2.Run) -> tuple[Text, Text]:
    is_high = run.order.priority == run_pb2.PRIORITY_HIGH
    user = run.user if is_high else f"{run.user}, {_priority(run.order.priority)}"
    # Folded here, because rich would squeeze a foldable column below the width of an id.
    model = "\n".join(wrap(answering_model(run.order), RUN_ID_WIDTH))
    return two_lines(model, run.run_id), two_lines(words.benchmark(run), user)


def _worker_cells(worker: scheduler_pb2.WorkerInfo) -> tuple[Cell, ...]:
    is_vllm = worker.engine == "vllm"
    ready = ", ".join(worker.ready_models or [worker.loaded_model])
    return (
        two_lines(worker.worker_id, worker.pool),
        two_lines(ready if is_vllm else worker.loaded_model or "any", worker.engine),
        f"{worker.samples_in_flight}/{worker.concurrency}",
        two_lines(_state(worker), _load(worker.load) if worker.HasField("load") else ""),
    )


def _state(worker: scheduler_pb2.WorkerInfo) -> str:
    state = shown_word(model_pb2.WorkerState, worker.state)
    if worker.loading_model:
        is_loading = worker.state == model_pb2.WORKER_STATE_LOADING
        state = f"{'loading' if is_loading else 'switches to'} {worker.loading_model}"
    return "; ".join(filter(None, (state, worker.note)))


def _load(load: model_pb2.EngineLoad) -> str:
    shown = (
        f"{load.running_requests} running, {load.waiting_requests} waiting, cache {load.kv_cache_usage:.0%}"
    )
    if not load.prefix_cache_queries:
        return shown
    return f"{shown}, prefix hits {load.prefix_cache_hits / load.prefix_cache_queries:.0%}"


def _size_limit(size_bytes: int) -> str:
    return decimal(size_bytes) if size_bytes else "no limit"


def _time(duration: Duration) -> str:
    return words.duration(duration.ToTimedelta().total_seconds())


def _priority(priority: run_pb2.Priority.ValueType) -> str:
    return word_of(run_pb2.Priority, priority)
