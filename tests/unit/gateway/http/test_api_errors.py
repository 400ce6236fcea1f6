"""Errors name runs, and positions in lists, in the terms of the API that was called."""

import uuid

import pytest

from services.common.errors import ErrorKind, RemoteError
from services.gateway.http.error_handlers import problem_of

RUN, OTHER, STRANGE = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
DIGITS, OTHER_DIGITS = (uuid.UUID(run).hex for run in (RUN, OTHER))


def reported(path: str, message: str, reason: str = "RUN_STILL_ACTIVE", **facts: str) -> str:
    return problem_of(RemoteError(ErrorKind.CONFLICT, reason, message, facts), path).detail


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/admin/benchmarks/bm_1/cancel", f"bm_{DIGITS}"),
        ("/admin/datasets/ds_1", f"bm_{DIGITS}"),
        ("/v1/files/file-1", f"bm_{DIGITS}"),
        ("/v1/batches/batch_1/cancel", f"batch_{DIGITS}"),
        ("/v1/batches", f"batch_{DIGITS}"),
        ("/api/v1/benchmarking/cancel/1", RUN),
        ("/v1x", RUN),
    ],
)
def test_a_run_has_the_id_of_its_api(path: str, shown: str) -> None:
    assert reported(path, f"Run {RUN} is running.", run_id=RUN) == f"Run {shown} is running."


def test_all_runs_of_a_sentence_are_named_so_and_nothing_else_is() -> None:
    sentence = f"Runs {RUN} and {OTHER} have no sample of {STRANGE} in common."
    assert reported("/admin/benchmarks/side-by-side", sentence, first=RUN, second=OTHER) == (
        f"Runs bm_{DIGITS} and bm_{OTHER_DIGITS} have no sample of {STRANGE} in common."
    )
    several = reported("/admin/benchmarks/golden/export", f"None in {RUN}, {OTHER}.", runs=f"{RUN}, {OTHER}")
    assert several == f"None in bm_{DIGITS}, bm_{OTHER_DIGITS}."


def test_an_unknown_run_is_named_by_its_id_in_the_api() -> None:
    path = "/admin/benchmarks/bm_1"
    assert reported(path, "", "RUN_NOT_FOUND", run_id=RUN) == f"Benchmark job bm_{DIGITS} not found"


@pytest.mark.parametrize(("dataset_id", "shown"), [("ds_1", f"bm_{DIGITS}"), ("", RUN)])
def test_a_key_that_stands_for_a_run_over_a_suite_names_it_as_it_is(dataset_id: str, shown: str) -> None:
    facts = {"run_id": RUN, "dataset_id": dataset_id}
    sentence = f"This is of another order, run {RUN}."
    detail = reported("/admin/benchmarks/run", sentence, "REQUEST_ID_TAKEN", **facts)
    assert detail == f"This is of another order, run {shown}."


@pytest.mark.parametrize("path", ["/admin/benchmarks", "/admin/datasets", "/api/v1/benchmarking/results"])
def test_a_position_in_a_list_is_a_cursor(path: str) -> None:
    sentence = "page_token is not one that this list gave. Start again without it."
    detail = reported(path, sentence, "INVALID_PAGE_TOKEN", page_token="x")
    assert detail == "cursor is not one that this list gave. Start again without it."
