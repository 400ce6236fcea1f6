"""Templates are rendered beside the event loop, and one that takes too long holds up no other."""

import asyncio
import threading

import pytest

from services.worker.engines.vllm.template_threads import TemplateThreads
from tests.fakes.eventually import eventually


async def test_a_template_is_rendered_in_a_thread_of_its_own() -> None:
    threads = TemplateThreads(10.0)
    assert (await threads.render(lambda: threading.current_thread().name)).startswith("chat-template")


async def test_a_template_that_takes_too_long_is_left_and_the_next_one_is_rendered() -> None:
    threads, may_end = TemplateThreads(0.05), threading.Event()

    def hang() -> str:
        may_end.wait(30)
        return ""

    try:
        with pytest.raises(TimeoutError):
            await threads.render(hang)
        assert await threads.render(lambda: "text") == "text"
    finally:
        may_end.set()


async def test_the_wait_for_a_thread_is_no_time_of_the_template() -> None:
    threads, may_end = TemplateThreads(0.05), threading.Event()

    def hang() -> str:
        may_end.wait(30)
        return ""

    try:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await threads.render(hang)
        waiting = []

        async def render() -> None:
            waiting.append("waits")
            waiting.append(await threads.render(lambda: "text"))

        task = asyncio.create_task(render(), name="render")
        await eventually(lambda: waiting == ["waits"], "it waits for a thread")
        may_end.set()
        await eventually(lambda: waiting == ["waits", "text"], "it was rendered")
        await task
    finally:
        may_end.set()


async def test_an_error_of_the_template_is_raised() -> None:
    def fail() -> str:
        raise ValueError("no such field")

    with pytest.raises(ValueError, match="no such field"):
        await TemplateThreads(10.0).render(fail)
