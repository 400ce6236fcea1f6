"""The work of `proctor try`: starts the stack, evaluates a model, shows the figures and goes on serving."""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from proctor.cli.gateway import Session, api_key
from proctor.cli.program import program_name
from proctor.cli.render.terminal import Terminal, report_error, say
from proctor.cli.runs.follow import Ask, cancel, detach
from proctor.cli.runs.order import OrderOptions, order_of, refuse_out_of_range
from proctor.cli.runs.run import print_next_commands, submit_and_follow
from proctor.cli.stack.start import StackRequest
from proctor.cli.trial.running_stack import refuse_what_differs
from proctor.cli.trial.unfinished_run import UnfinishedRun
from proctor.client.errors import ClientError, NotFound
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.stack.defaults import default_state_dir
from proctor.stack.errors import StackError
from proctor.stack.local_stack import LocalStack, running_stack
from proctor.stack.pools import ChosenModel, asks_any_server, choose_model
from proctor.stack.state import StackState, read_stack_state
from proctor.stack.vllm.environment import ensure_vllm_environment
from proctor.stack.vllm.hub_model import refuse_missing
from proctor.stack.vllm.worker_source import worker_source
from proctor.v1 import run_pb2

_NOT_SERVED = frozenset({"UNKNOWN_MODEL", "UNKNOWN_PROVIDER"})
# As a shell reports a command that the signal ended.
TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True, slots=True)
class Trial:
    """A model and the order for it. `is_serving`: a stack that is started here goes on until Ctrl-C."""

    model: ChosenModel
    order: run_pb2.RunOrder
    stack: StackRequest
    is_serving: bool
    terminal: Terminal

    def report(self, sentence: str) -> None:
        say(self.terminal.progress, sentence)


def try_out(options: OrderOptions, stack: StackRequest, terminal: Terminal, *, is_serving: bool) -> int:
    """`options.model` is what a person calls it: also a folder. Returns the exit code."""
    try:
        model = choose_model(options.model)
        order = order_of(options)
        order.model = model.name
        refuse_out_of_range(order)
        if options.scoring_method == "auto" and asks_any_server(model, os.environ):
            # Every server writes an answer, and most score no given text.
            order.scoring_method = run_pb2.SCORING_METHOD_GENERATE
        trial = Trial(model, order, stack, is_serving, terminal)
        if model.is_of_hub:
            refuse_missing(model.source, os.environ)
        if model.source and not os.environ.get("PROCTOR_VLLM_PYTHON"):
            # A model that a server answers for needs no vLLM here.
            ensure_vllm_environment(worker_source(os.environ), trial.report)
        return asyncio.run(_terminable(trial))
    except (StackError, ClientError) as error:
        return report_error(terminal, error)
    except KeyboardInterrupt:
        say(terminal.progress, "Stopped before the run began; the same command goes on from here.")
        return ExitCode.INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED


async def _terminable(trial: Trial) -> ExitCode:
    """SIGTERM stops everything in order, like Ctrl-C."""
    task = asyncio.current_task()
    assert task is not None
    # SIGHUP: the terminal was closed.
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    state_dir = default_state_dir(os.environ, Path.cwd())
    stack = read_stack_state(state_dir)
    if stack and stack.phase == "running":
        refuse_what_differs(stack, trial.model, os.environ)
        return await _evaluate_on_running_stack(trial, stack, state_dir)
    return await _evaluate_on_own_stack(trial, state_dir)


async def _evaluate_on_running_stack(trial: Trial, stack: StackState, state_dir: Path) -> ExitCode:
    trial.report(f"Using the stack that runs on {state_dir}.")
    try:
        return await _evaluate(trial, stack.gateway_grpc, state_dir, detach)
    except NotFound as error:
        if error.reason not in _NOT_SERVED:
            raise
        cure = f"It was started for other models: stop it with `{program_name()} down`, then try again."
        raise NotFound(f"{error.message} {cure}", error.reason, error.facts) from error


async def _evaluate_on_own_stack(trial: Trial, state_dir: Path) -> ExitCode:
    options = trial.stack.options(trial.terminal)
    trial.report(f"Starting Postgres, NATS and the services; their data stay in {state_dir}…")
    async with running_stack(options, trial.report) as stack:
        # Nobody would see the end of a run that goes on, so an interrupt cancels it.
        code = await _evaluate(trial, stack.gateway_grpc, state_dir, cancel)
        if trial.is_serving:
            await _keep_serving(stack, trial)
        else:
            up = " ".join((program_name(), "up", *trial.stack.arguments()))
            trial.report(f"The stack stops now; `{up}` starts it again with its data.")
        return code


async def _evaluate(trial: Trial, gateway: str, state_dir: Path, on_interrupt: Ask) -> ExitCode:
    unfinished = UnfinishedRun(state_dir)
    if unfinished.known_request_id(trial.order):
        trial.report("This order was stopped before its end: its run goes on.")
    async with ProctorClient(gateway, api_key=api_key(gateway)) as client:
        code = await submit_and_follow(
            Session(client, trial.terminal),
            trial.order,
            request_id=unfinished.request_id(trial.order),
            on_interrupt=on_interrupt,
        )
    if code is not ExitCode.INTERRUPTED:
        unfinished.forget()
    if code is ExitCode.OK and not trial.terminal.is_json:
        print_next_commands(trial.terminal, _next_commands(trial.order))
    return code


def _next_commands(order: run_pb2.RunOrder) -> dict[str, str]:
    return {
        f"run --suite glue --model {order.model} --limit 100": "a benchmark, with rows from the hub",
        "suites": "the other benchmarks",
        "open": "the web pages",
    }


async def _keep_serving(stack: LocalStack, trial: Trial) -> None:
    trial.report(
        f"The stack keeps serving: http://{stack.gateway_http}, gRPC {stack.gateway_grpc}. "
        f"Other terminals can use `{program_name()} …`. Ctrl-C stops it; the data stay."
    )
    stop = asyncio.Event()
    # From here on Ctrl-C ends the waiting and not the program: the stack is stopped in order.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    stopped = asyncio.create_task(stop.wait(), name="Ctrl-C")
    broken = asyncio.create_task(stack.wait(), name="the stack")
    try:
        await asyncio.wait({stopped, broken}, return_when=asyncio.FIRST_COMPLETED)
        if broken.done():
            # Raises what ended the stack.
            broken.result()
        trial.report("Stopping…")
    finally:
        stopped.cancel()
        broken.cancel()
