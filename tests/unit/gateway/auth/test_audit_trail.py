"""Records of the gateway: what is stored at once, what waits, and how few rows a flood makes."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from proctor.v1 import audit_pb2
from proctor.v1.access_service_pb2 import AddAuditRecordsRequest
from proctor.v1.artifact_service_pb2 import ReadArtifactRequest
from proctor.v1.export_service_pb2 import ExportGoldenAnswersRequest
from proctor.values.names.user import Caller
from services.common.errors import DependencyUnavailable
from services.gateway.auth.admission import SIGN_IN
from services.gateway.auth.audit_trail import MAX_DIFFERENT, AuditTrail, Deed
from services.gateway.auth.recorded_calls import deed_of_message, deed_of_route, is_recorded
from tests.fakes.scheduler.surroundings import SetClock

ANN = Caller("ann", key_id="a" * 16, address="203.0.113.7")
EXPORT = Deed("export", "run", "r-1")
DONE, ADMITTED, REFUSED = (
    audit_pb2.AUDIT_OUTCOME_DONE,
    audit_pb2.AUDIT_OUTCOME_ADMITTED,
    audit_pb2.AUDIT_OUTCOME_REFUSED,
)
RUN = "0a4b7f3e-7d36-4f0e-9f5a-6a0d6f1f6c55"


@dataclass
class Records:
    """In the place of the scheduler."""

    added: list[audit_pb2.AuditRecord] = field(default_factory=list)
    is_away: bool = False

    @property
    def access(self) -> "Records":
        return self

    async def AddAuditRecords(self, request: AddAuditRecordsRequest) -> None:  # noqa: N802  # the contract's
        if self.is_away:
            raise DependencyUnavailable(dependency="scheduler")
        self.added += request.records

    @property
    def shown(self) -> list[tuple[str, str, Any, int]]:
        return [(each.user, each.action, each.outcome, each.times) for each in self.added]


@dataclass
class Gateway:
    records: Records
    clock: SetClock
    trail: AuditTrail

    async def minute(self) -> None:
        self.clock.seconds += 60
        await self.trail.flush()


@pytest.fixture
def gateway() -> Gateway:
    records, clock = Records(), SetClock()
    scheduler: Any = records
    return Gateway(records, clock, AuditTrail(scheduler, clock))


async def test_read_is_recorded_before_it_goes_on_and_not_without(gateway: Gateway) -> None:
    await gateway.trail.admit(EXPORT, ANN, is_read=True)
    [record] = gateway.records.added
    assert (record.user, record.key_id, record.address) == (ANN.name, ANN.key_id, ANN.address)
    assert (record.kind, record.object_id, record.outcome) == ("run", "r-1", ADMITTED)
    gateway.records.is_away = True
    with pytest.raises(DependencyUnavailable):
        await gateway.trail.admit(Deed("export", "run", "r-2"), ANN, is_read=True)
    # That there was no record is not forgotten.
    gateway.records.is_away = False
    await gateway.trail.admit(Deed("export", "run", "r-2"), ANN, is_read=True)
    assert [each.object_id for each in gateway.records.added] == ["r-1", "r-2"]


async def test_equal_reads_of_a_minute_share_a_record_and_changes_do_not(gateway: Gateway) -> None:
    await gateway.trail.flush()
    for _ in range(5):
        await gateway.trail.admit(EXPORT, ANN, is_read=True)
    await gateway.minute()
    assert gateway.records.shown == [("ann", "export", ADMITTED, 1), ("ann", "export", ADMITTED, 4)]
    for _ in range(2):
        await gateway.trail.admit(Deed("mark", "answers", "r-1"), ANN, is_read=False)
    assert gateway.records.shown[2:] == [("ann", "mark", ADMITTED, 1)] * 2


async def test_sign_in_while_the_scheduler_is_away_is_recorded_once_it_is_back(gateway: Gateway) -> None:
    gateway.records.is_away = True
    await gateway.trail.note_done(SIGN_IN, ANN)
    await gateway.trail.flush()
    gateway.records.is_away = False
    await gateway.trail.flush()
    await gateway.trail.flush()
    assert gateway.records.shown == [("ann", "sign in", DONE, 1)]


async def test_equal_refusals_of_a_minute_share_two_records(gateway: Gateway) -> None:
    await gateway.trail.flush()
    for _ in range(3):
        gateway.trail.note_refusal(Deed("set", "limits"), ANN)
    await gateway.trail.flush()
    for _ in range(4):
        gateway.trail.note_refusal(Deed("set", "limits"), ANN)
    await gateway.trail.flush()
    assert gateway.records.shown == [("ann", "set", REFUSED, 3)]
    await gateway.minute()
    assert gateway.records.shown[1:] == [("ann", "set", REFUSED, 4)]


async def test_flood_of_wrong_keys_makes_few_records_and_loses_no_number(gateway: Gateway) -> None:
    await gateway.trail.flush()
    for number in range(100_000):
        gateway.trail.note_refusal(SIGN_IN, None, key_id=f"{number:016}", address=f"2001:db8::{number:x}")
        if number % 1000 == 0:
            await gateway.trail.flush()
    await gateway.minute()
    assert len(gateway.records.added) <= MAX_DIFFERENT + 2
    assert sum(each.times for each in gateway.records.added) == 100_000


async def test_flood_of_one_takes_no_name_away_from_refusals_of_others(gateway: Gateway) -> None:
    await gateway.trail.flush()
    for number in range(MAX_DIFFERENT + 5):
        gateway.trail.note_refusal(SIGN_IN, None, address=f"2001:db8::{number:x}")
        gateway.trail.note_refusal(Deed("delete", "run", f"r-{number}"), ANN)
    gateway.trail.note_refusal(Deed("set", "limits"), Caller("bob"))
    await gateway.trail.flush()
    assert ("bob", "set", REFUSED, 1) in gateway.records.shown
    # Not the runs of the last ones, but who asked.
    assert ("ann", "delete", REFUSED, 5) in gateway.records.shown


async def test_no_text_of_a_path_breaks_a_record(gateway: Gateway) -> None:
    await gateway.trail.admit(Deed("read", "file", "a\x00\ud800" + "x" * 9000), ANN, is_read=True)
    assert 500 < len(gateway.records.added[0].object_id) < 600


@pytest.mark.parametrize(
    ("method", "path", "parameters", "query", "deed"),
    [
        ("ExportRun", "/results/{job_id}/export", {"job_id": RUN}, "", Deed("export", "run", RUN)),
        (
            "MarkAnswers",
            "/admin/benchmarks/{benchmark_id}/golden",
            {"benchmark_id": f"bm_{RUN.replace('-', '')}"},
            "",
            Deed("mark", "answers", RUN),
        ),
        (
            "ListOutcomes",
            "/runs/{job_id}/results/export.{form}",
            {"job_id": RUN, "form": "csv"},
            "",
            Deed("export", "outcomes", RUN, "csv"),
        ),
        (
            "ListSideBySide",
            "/compare/export.{form}",
            {},
            "ids=a&key=secret&ids=b",
            Deed("export", "side by side", "a,b"),
        ),
        ("ListRuns", "/runs/export.{form}", {}, "run=a&tag=t&run=b", Deed("export", "runs", "a,b")),
        (
            "ListOutcomes",
            "/admin/benchmarks/{benchmark_id}/results",
            {"benchmark_id": "x"},
            "format=jsonl",
            Deed("export", "outcomes", "x"),
        ),
    ],
)
def test_deeds_of_routes_name_their_run_and_nothing_else_of_the_address(
    method: str, path: str, parameters: dict[str, object], query: str, deed: Deed
) -> None:
    assert is_recorded(method, path, query)
    assert deed_of_route(method, path, parameters, query) == deed


def test_page_of_answers_is_no_export() -> None:
    assert not is_recorded("ListOutcomes", "/admin/benchmarks/{benchmark_id}/results", "format=json&limit=5")
    assert not is_recorded("ListRuns", "/runs", "")


def test_deeds_of_messages_name_their_object_and_its_part() -> None:
    read = ReadArtifactRequest(run_id=RUN, sample=3, rollout=1, execution="e", name="log.txt")
    assert deed_of_message("ReadArtifact", read) == Deed("read", "artifact", RUN, "3/1/e/log.txt")
    golden = ExportGoldenAnswersRequest(run_ids=["a", "b"])
    assert deed_of_message("ExportGoldenAnswers", golden) == Deed("export", "golden answers", "a,b")
    assert deed_of_message("SetLimits", None) == Deed("set", "limits")
