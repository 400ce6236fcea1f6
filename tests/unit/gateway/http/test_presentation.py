"""Messages become bodies field by field."""

from datetime import UTC, datetime

from pydantic import BaseModel

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.http.presentation import present


class Load(BaseModel):
    running_requests: int


class Worker(BaseModel):
    worker_id: str
    provider: str | None
    samples_in_flight: int
    cannot_load: dict[str, str]
    ready_models: list[str]
    seen_at: datetime | None
    load: Load | None
    # No field of the message: its default stays.
    remark: str = "none"


class Workers(BaseModel):
    workers: list[Worker]


class Batch(BaseModel):
    state: str
    created_at: int
    completed_at: int | None
    model: str | None


class Progress(BaseModel):
    cost: float | None
    samples_per_second: float | None


def test_unset_fields_are_null_or_empty() -> None:
    worker = present(Worker, scheduler_pb2.WorkerInfo(worker_id="w"))
    assert worker == Worker(
        worker_id="w",
        provider=None,
        samples_in_flight=0,
        cannot_load={},
        ready_models=[],
        seen_at=None,
        load=None,
    )


def test_lists_maps_messages_and_times_are_converted() -> None:
    message = scheduler_pb2.WorkerInfo(cannot_load={"m": "too large"}, ready_models=["a", "b"])
    message.seen_at.FromSeconds(1_700_000_000)
    message.load.running_requests = 3
    [worker] = present(Workers, scheduler_pb2.ListWorkersResponse(workers=[message])).workers
    assert (worker.cannot_load, worker.ready_models) == ({"m": "too large"}, ["a", "b"])
    assert worker.seen_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert worker.load == Load(running_requests=3)


def test_given_values_take_precedence() -> None:
    worker = present(Worker, scheduler_pb2.WorkerInfo(worker_id="w"), worker_id="x", remark="given")
    assert (worker.worker_id, worker.remark) == ("x", "given")


def test_times_are_seconds_where_a_body_has_numbers() -> None:
    message = batch_pb2.Batch(state=batch_pb2.BATCH_STATE_IN_PROGRESS)
    message.created_at.FromSeconds(7)
    batch = present(Batch, message)
    assert batch == Batch(state="in_progress", created_at=7, completed_at=None, model=None)


def test_zero_of_an_optional_number_is_zero() -> None:
    assert present(Progress, run_pb2.RunProgress(cost=0.0)) == Progress(cost=0.0, samples_per_second=None)
