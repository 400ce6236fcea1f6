"""Work in threads ends when no caller waits for it any more."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from services.common.errors import WorkCancelled
from services.common.threads.cancellable_threads import CancellableThreads
from services.scheduler.suites.add_suite import CheckSuite
from services.scheduler.suites.errors import ShowingTooSlow
from services.scheduler.suites.file_suite_cache import FileSuiteCache
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.show_sample import SampleRequest, ShowSample
from services.scheduler.suites.templates.prompt_template import compile_template
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites
from tests.fakes.suites.suite_documents import TASK, document
from tests.fakes.suites.toy_suites import SUITE, ToyCatalogue, ToyRows


@dataclass
class HeldRows:
    """From the third row on they are read only when they are let go."""

    is_reached: Event = field(default_factory=Event)
    let_go: Event = field(default_factory=Event)
    read: int = 0

    def on_row(self) -> None:
        self.read += 1
        if self.read >= 3:
            self.is_reached.set()
            assert self.let_go.wait(10)


async def test_rows_that_no_caller_waits_for_are_read_no_further() -> None:
    held, threads = HeldRows(), CancellableThreads(1)
    showing = ShowSample(ToyCatalogue(), ToyRows(1000, on_row=held.on_row), FileSuiteCache, threads)
    shown = asyncio.create_task(showing.show(SampleRequest(SUITE, "choose", 900), "ann"))
    assert await asyncio.to_thread(held.is_reached.wait, 10)
    shown.cancel()
    with pytest.raises(asyncio.CancelledError):
        await shown
    held.let_go.set()
    await threads.run(lambda: None)
    assert held.read == 3


async def test_samples_of_one_user_take_one_thread_and_no_more() -> None:
    held, threads = HeldRows(), CancellableThreads(2)
    slow = ShowSample(ToyCatalogue(), ToyRows(1000, on_row=held.on_row), FileSuiteCache, threads)
    quick = ShowSample(ToyCatalogue(), ToyRows(1000), FileSuiteCache, threads)
    many = [asyncio.create_task(slow.show(SampleRequest(SUITE, "choose", 5), "ann")) for _ in range(4)]
    assert await asyncio.to_thread(held.is_reached.wait, 10)
    shown = await quick.show(SampleRequest(SUITE, "choose", 5), "bob")
    assert shown.sample.position == 5
    assert not any(task.done() for task in many)
    held.let_go.set()
    assert {(await task).sample.position for task in many} == {5}


async def test_a_sample_that_takes_too_long_is_refused_with_the_limit() -> None:
    held, brief = HeldRows(), CancellableThreads(1, 0.05)
    showing = ShowSample(ToyCatalogue(), ToyRows(1000, on_row=held.on_row), FileSuiteCache, brief)
    with pytest.raises(ShowingTooSlow) as refused:
        await showing.show(SampleRequest(SUITE, "choose", 900), "ann")
    assert refused.value.facts == {"task": "choose", "doc_id": 900, "seconds": "0.05"}
    held.let_go.set()


async def test_a_document_that_takes_too_long_to_read_has_this_problem(tmp_path: Path) -> None:
    is_over = Event()

    def read_when_it_is_over(*given: Any, **named: Any) -> Any:
        assert is_over.wait(60)
        return read_document(*given, **named)

    checking = CheckSuite(read_when_it_is_over, YamlInstalledSuites(tmp_path), CancellableThreads(1, 0.0))
    reading = await checking.check(document(TASK), "ann")
    is_over.set()
    assert reading.suite is None
    assert [fault.problem for fault in reading.faults] == [
        "it takes more than 0 s to read; make its templates smaller"
    ]


async def test_no_template_is_compiled_or_rendered_without_a_caller() -> None:
    threads, is_running, let_go = CancellableThreads(1), Event(), Event()
    template = compile_template("{{ 1 }}")
    stopped: list[bool] = []

    def work() -> None:
        is_running.set()
        assert let_go.wait(10)
        stopped.append(_is_stopped(lambda: template.value({})))
        stopped.append(_is_stopped(lambda: compile_template("{{ 2 }}")))

    running = asyncio.create_task(threads.run(work))
    assert await asyncio.to_thread(is_running.wait, 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    let_go.set()
    await threads.run(lambda: None)
    assert stopped == [True, True]


def _is_stopped(work: Callable[[], object]) -> bool:
    try:
        work()
    except WorkCancelled:
        return True
    return False
