"""Values as words (an undefined figure is a dash), and messages as JSON for scripts."""

from collections.abc import Iterable
from datetime import UTC
from typing import TypeVar, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from proctor.client.errors import Refused
from proctor.v1 import run_pb2, summary_pb2
from proctor.values import priority
from proctor.values.priority import Priority
from proctor.values.run import is_telling_range
from proctor.wire.enums import ProtoEnum, described_word, member_of, value_of, word_of, words_of

NONE = "–"
STATE_STYLES = {
    run_pb2.RUN_STATE_COMPLETED: "green",
    run_pb2.RUN_STATE_FAILED: "red",
    run_pb2.RUN_STATE_CANCELLED: "yellow",
    run_pb2.RUN_STATE_RUNNING: "cyan",
}

V_co = TypeVar("V_co", covariant=True)


# Fields that scripts read by the name of REST.
_REST_NAMES = {f"proctor.v1.{name}.recorded": "completed" for name in ("RunProgress", "TaskProgress")}
JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | bool | None


def option_value(enum: ProtoEnum[V_co], given: str, option: str, unset: str = "") -> V_co:
    """The value that an option names. `unset` stands for the unspecified value; other words raise Refused."""
    known = [*([unset] if unset else []), *words_of(enum)]
    if given != unset and given not in known:
        raise Refused(f"{option} {given}: it must be {one_of(known)}.")
    return value_of(enum, given, unset)


def one_of(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def counted(count: int, noun: str) -> str:
    """1 row, 2,000 rows."""
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def state_word(state: run_pb2.RunState.ValueType) -> str:
    return word_of(run_pb2.RunState, state)


def archive_word(run: run_pb2.Run) -> str:
    """Where its answers are; "" while they are in Postgres."""
    return word_of(run_pb2.ArchiveState, run.archive_state) if run.archive_state else ""


def scoring_word(method: run_pb2.ScoringMethod.ValueType) -> str:
    """Empty where there are no choices to score."""
    return word_of(run_pb2.ScoringMethod, method) if method else ""


def priority_note(run: run_pb2.Run) -> str:
    """The end of a sentence about the run: its priority unless it is high."""
    return priority.priority_note(member_of(Priority, run.order.priority))


def benchmark(run: run_pb2.Run) -> str:
    """The suite of a run, or the name of its data set."""
    return run.order.suite or run.dataset_name or run.order.dataset_id


def labels(of: run_pb2.RunLabels) -> str:
    """The name and the tags: "nightly #prompt-2 #ci"; "" without any."""
    return " ".join(part for part in (of.name, *(f"#{tag}" for tag in of.tags)) if part)


def phase(run: run_pb2.Run) -> str:
    """The phase; for a waiting run the reason."""
    if run.state == run_pb2.RUN_STATE_PENDING and run.HasField("wait"):
        reason = f"waiting, number {run.wait.position} in the queue: {run.wait.blocked_by}"
        # Of a run that starts at once the reason says so.
        start = expected_start(run.wait) if run.wait.estimated_seconds else ""
        return f"{reason}; starts in {start}" if start else reason
    if run.state in (run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED):
        return state_word(run.state)
    return run.progress.phase or state_word(run.state)


def expected_start(wait: run_pb2.RunWait) -> str:
    """Time until the run starts, with its range; empty without an estimate."""
    if not wait.HasField("estimated_seconds"):
        return ""
    low, high = wait.estimated_low_seconds, wait.estimated_high_seconds
    return f"about {_with_range(wait.estimated_seconds, low, high)}"


def speed(progress: run_pb2.RunProgress) -> str:
    """Samples and tokens per second and the time left, as far as they are measured."""
    parts = []
    if progress.HasField("samples_per_second"):
        parts.append(f"{progress.samples_per_second:.1f} samples/s")
    if progress.tokens_per_second:
        parts.append(f"{progress.tokens_per_second:,.0f} tok/s")
    if progress.HasField("eta_seconds") and progress.recorded < progress.total:
        has_range = progress.HasField("eta_low_seconds")
        low, high = (progress.eta_low_seconds, progress.eta_high_seconds) if has_range else (0.0, 0.0)
        parts.append(f"ETA {_with_range(progress.eta_seconds, low, high)}")
    return " · ".join(parts)


def cost(run: run_pb2.Run) -> str:
    """Cost of the recorded answers; empty for a model without a price."""
    has_cost = run.progress.HasField("cost")
    return f"cost {money(run.progress.cost, run.price.currency)}" if has_cost else ""


def priced(amount: float, price: run_pb2.ModelPrice) -> str:
    """An amount with the date of the prices, where they have one."""
    dated = f" (prices of {price.as_of})" if price.as_of else ""
    return f"{money(amount, price.currency)}{dated}"


def money(amount: float, currency: str) -> str:
    return f"{amount:.6g} {currency}"


def failures(run_failures: dict[str, int]) -> str:
    present = sorted((name, count) for name, count in run_failures.items() if count)
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in present)


def duration(seconds: float) -> str:
    """2.4 s, 1:05, 1:01:05."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def elapsed_seconds(run: run_pb2.Run) -> float:
    """Time in state running over all epochs, without waiting and pauses; 0 until the run has finished."""
    if not run.HasField("finished_at"):
        return 0.0
    last = run.finished_at.ToDatetime() - run.admitted_at.ToDatetime()
    ran = last.total_seconds() if run.HasField("admitted_at") else 0.0
    return run.earlier_seconds + run.ran_seconds + ran


def mean_and_half_width(figure: summary_pb2.MetricFigure) -> str:
    if not figure.HasField("mean"):
        return NONE
    if not _has_interval(figure):
        return f"{figure.mean:z.4f}"
    return f"{figure.mean:z.4f} ± {(figure.ci_high - figure.ci_low) / 2:.4f}"


def interval(figure: summary_pb2.MetricFigure) -> str:
    return f"{figure.ci_low:z.4f} to {figure.ci_high:z.4f}" if _has_interval(figure) else NONE


def p_word(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _with_range(seconds: float, low: float, high: float) -> str:
    """Without the range where it is too wide to say anything, or a single time."""
    if duration(low) == duration(high) or not is_telling_range(low, high):
        return duration(seconds)
    return f"{duration(seconds)} ({duration(low)} to {duration(high)})"


def _has_interval(figure: summary_pb2.MetricFigure) -> bool:
    return figure.HasField("ci_low") and figure.HasField("ci_high")


def document(message: Message) -> dict[str, JsonValue]:
    """Its fields by name, unset ones as null."""
    # The stubs have two classes of descriptors, one of them internal to the library.
    fields = cast("Iterable[FieldDescriptor]", message.DESCRIPTOR.fields)
    return {_REST_NAMES.get(field.full_name, field.name): _field(message, field) for field in fields}


def _field(message: Message, field: FieldDescriptor) -> JsonValue:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name["value"]
        return {str(key): _single(item, entry) for key, item in value.items()}
    if field.is_repeated:
        return [_single(item, field) for item in value]
    return _single(value, field)


def _single(value: object, field: FieldDescriptor) -> JsonValue:
    match value:
        case Timestamp():
            return value.ToDatetime(UTC).isoformat()
        case Duration():
            return value.ToTimedelta().total_seconds()
        case Struct():
            return dict(MessageToDict(value))
        case Message():
            return document(value)
        case bytes():
            return value.hex()
        case int() if field.enum_type is not None:
            return described_word(field.enum_type, value)
        case str() | int() | float():
            return value
    raise TypeError(f"{field.full_name} holds a {type(value).__name__}")
