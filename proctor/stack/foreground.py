"""Runs a stack until Ctrl-C, SIGTERM or the end of its terminal."""

import asyncio
import contextlib
import os
import signal

from proctor.stack.local_stack import LocalStack, running_stack
from proctor.stack.options import StackOptions
from proctor.stack.supervision.child import Report

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def serve_until_stopped(options: StackOptions, report: Report = print) -> None:
    """Also stops a start that is still under way; raises StackError when the stack cannot start."""
    serving = asyncio.create_task(_serve(options, report), name="serve the stack")
    stop_on_signals(serving, report)
    await asyncio.wait([serving])
    if not serving.cancelled():
        serving.result()


def stop_on_signals(task: asyncio.Task[None], report: Report = print) -> None:
    """The first signal cancels the task, which stops in order; a second one leaves at once.

    Leaving at once leaves nothing behind: the children get their death signal from the kernel.
    """
    asked: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(number)
        task.cancel()
        # After a SIGHUP the terminal is gone, and what prints to it fails.
        with contextlib.suppress(OSError):
            report("Stopping, workers first; a second signal leaves at once.")

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal, number)


async def _serve(options: StackOptions, report: Report) -> None:
    async with running_stack(options, report) as stack:
        report(describe(stack))
        await stack.wait()


def describe(stack: LocalStack) -> str:
    where = f"http://{stack.gateway_http}, gRPC {stack.gateway_grpc}" if stack.gateway_http else "its stores"
    return f"The stack serves {where}; logs: {stack.options.state_dir / 'logs'}; Ctrl-C stops it."
