"""Follows a run to its end on a display, through outages of the gateway and Ctrl-C."""

import asyncio
from dataclasses import dataclass

from proctor import client_errors
from proctor.cli import interrupts
from proctor.cli.interrupts import Ask, Choice, Interrupts
from proctor.cli.run_displays import RunDisplay, display_for
from proctor.cli.terminal import Terminal
from proctor.client import ProctorClient, Reconnect
from proctor.v1 import run_pb2


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who watches: a display and the answer to a Ctrl-C."""

    display: RunDisplay
    ask: Ask


def viewer_for(terminal: Terminal, unasked: Ask = interrupts.detach) -> Viewer:
    """`unasked` answers where nobody can be asked."""
    ask = interrupts.ask_on(terminal.progress) if terminal.can_ask else unasked
    return Viewer(display_for(terminal.progress), ask)


async def follow_run(client: ProctorClient, run_id: str, viewer: Viewer) -> run_pb2.Run | None:
    """The run in its final state, None when the viewer detached."""
    watch = asyncio.create_task(_watch(client, run_id, viewer.display), name=f"watch {run_id}")
    try:
        with interrupts.listening() as pending:
            while await _interrupted(watch, pending):
                viewer.display.pause()
                choice = await viewer.ask(pending)
                if choice is Choice.DETACH:
                    return None
                if choice is Choice.CANCEL:
                    await _cancel(client, run_id)
                viewer.display.resume()
        return await watch
    finally:
        watch.cancel()
        await asyncio.wait({watch})
        viewer.display.close()


async def _interrupted(watch: asyncio.Task[run_pb2.Run], pending: Interrupts) -> bool:
    """True for a Ctrl-C, False when the run has ended first."""
    interrupt = asyncio.create_task(pending.wait(), name="Ctrl-C")
    try:
        await asyncio.wait({watch, interrupt}, return_when=asyncio.FIRST_COMPLETED)
        return not watch.done()
    finally:
        interrupt.cancel()


async def _watch(client: ProctorClient, run_id: str, display: RunDisplay) -> run_pb2.Run:
    policy = Reconnect(on_lost=lambda: display.note("The connection was lost; looking for the run again…"))
    run = run_pb2.Run()
    async for run in client.watch_run(run_id, policy):
        display.show(run)
    return run


async def _cancel(client: ProctorClient, run_id: str) -> None:
    try:
        await client.cancel_run(run_id)
    except client_errors.Refused as error:
        # It ended while we asked: the watch is about to say how.
        if error.reason != "RUN_ALREADY_FINISHED":
            raise
