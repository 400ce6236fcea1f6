"""`make run`: starts the stack, evaluates a model, and shows the figures."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.cli.gateway import Session, api_key, program_name
from proctor.cli.render.terminal import Terminal, report_error, say
from proctor.cli.runs.follow import Ask, cancel, detach
from proctor.cli.runs.order import OrderOptions, order_of, refuse_out_of_range
from proctor.cli.runs.run import submit_and_follow
from proctor.client.errors import ClientError
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.stack.errors import RunningStackDiffers, StackError
from proctor.stack.local_stack import LocalStack, running_stack
from proctor.stack.options import default_state_dir, options_from_environment, starter_model_dir
from proctor.stack.pools import STARTER_MODEL, ChosenModel, base_url_of, choose_model, pools_for
from proctor.stack.state import StackState, read_stack_state
from proctor.stack.vllm import ensure_vllm_environment
from proctor.v1 import run_pb2
from proctor.values.providers.pool import Pool
from proctor.values.providers.pools_file import parse_pools

# As a shell reports a command that the signal ended.
TERMINATED = 128 + signal.SIGTERM


def refuse_what_differs(stack: StackState, model: ChosenModel, environ: Mapping[str, str]) -> None:
    """Accepts a model that is in no pool of the stack: the scheduler decides, by the live workers."""
    pools = parse_pools(Path(stack.environment["PROCTOR_POOLS_FILE"]).read_text(encoding="utf-8")).pools
    if model.source:
        wanted = str(starter_model_dir(environ)) if model.source == STARTER_MODEL else model.source
        _compare(model.name, wanted, _sources(pools, model.name))
    else:
        _compare(model.name, base_url_of(model.provider, environ), _servers(pools, model.provider))
    data, running = environ.get("PROCTOR_DATA_DIR", ""), stack.environment.get("PROCTOR_DATA_DIR", "")
    if _normalized(data and str(Path(data).absolute())) != _normalized(running):
        unset = "not set"
        raise RunningStackDiffers(what="PROCTOR_DATA_DIR", wanted=data or unset, running=running or unset)


def _compare(what: str, wanted: str, running: Iterable[str]) -> None:
    others = list(running)
    if others and _normalized(wanted) not in map(_normalized, others):
        raise RunningStackDiffers(what=what, wanted=wanted, running=others[0])


def _sources(pools: Iterable[Pool], name: str) -> list[str]:
    return [model.path for pool in pools for model in pool.models if model.name == name]


def _servers(pools: Iterable[Pool], provider: str) -> list[str]:
    return [pool.base_url for pool in pools if pool.provider and pool.provider.name == provider]


def _normalized(text: str) -> str:
    """Equal for two spellings of one folder; hub ids and addresses are unchanged."""
    is_folder = text.startswith(("/", ".", "~"))
    return str(Path(text).expanduser().resolve()) if is_folder else text.rstrip("/")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A model and the order for it."""

    model: ChosenModel
    order: run_pb2.RunOrder
    terminal: Terminal


def main() -> int:
    options = _parse(sys.argv[1:])
    terminal = Terminal(options.json)
    try:
        model = choose_model(options.model or STARTER_MODEL)
        order = order_of(_order(options, model))
        refuse_out_of_range(order)
        if model.source and not os.environ.get("PROCTOR_VLLM_PYTHON"):
            # A model that a server answers for needs no vLLM here.
            ensure_vllm_environment(terminal.progress.print)
        return asyncio.run(_terminable(Evaluation(model, order, terminal)))
    except (StackError, ClientError) as error:
        return report_error(terminal, error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED


async def _terminable(evaluation: Evaluation) -> ExitCode:
    """SIGTERM stops everything in order, like Ctrl-C."""
    task = asyncio.current_task()
    assert task is not None
    # SIGHUP: the terminal was closed.
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    state_dir = default_state_dir(os.environ, Path.cwd())
    stack = read_stack_state(state_dir)
    if stack and stack.phase == "running":
        refuse_what_differs(stack, evaluation.model, os.environ)
        evaluation.terminal.progress.print(f"Using the stack that runs on {state_dir}.")
        return await _evaluate(evaluation, stack.gateway_grpc, detach)
    return await _evaluate_on_own_stack(evaluation)


async def _evaluate_on_own_stack(evaluation: Evaluation) -> ExitCode:
    report = evaluation.terminal.progress.print
    pools = pools_for([evaluation.model], os.environ, report)
    report("Starting Postgres, NATS, the four services and the model…")
    async with running_stack(options_from_environment(os.environ, pools), report) as stack:
        # The run would not survive this stack, so an interrupt cancels it.
        code = await _evaluate(evaluation, stack.gateway_grpc, cancel)
        if evaluation.terminal.can_ask:
            await _keep_serving(stack, evaluation.terminal)
        else:
            report("The stack stops now; `make up` starts it again with its data.")
        return code


async def _evaluate(evaluation: Evaluation, gateway: str, on_interrupt: Ask) -> ExitCode:
    async with ProctorClient(gateway, api_key=api_key()) as client:
        session = Session(client, evaluation.terminal)
        return await submit_and_follow(session, evaluation.order, on_interrupt=on_interrupt)


async def _keep_serving(stack: LocalStack, terminal: Terminal) -> None:
    say(
        terminal.progress,
        f"The stack keeps serving: http://{stack.gateway_http}, gRPC {stack.gateway_grpc}. "
        f"Other terminals can use `{program_name()} …`. Ctrl-C stops it.",
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
        terminal.progress.print("Stopping…")
    finally:
        stopped.cancel()
        broken.cancel()


def _order(options: argparse.Namespace, model: ChosenModel) -> OrderOptions:
    own = ("suite", "task", "limit", "num_fewshot", "temperature", "param")
    return OrderOptions(model.name, **{name: getattr(options, name) for name in own})


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make run", description="Evaluate a model on this machine.")
    parser.add_argument("--suite", default="starter", help="SUITE=…")
    parser.add_argument("--model", help=f"MODEL=…: {STARTER_MODEL}, a model folder, a hub id, openai/NAME")
    parser.add_argument("--limit", type=int, help="LIMIT=…: first rows of each task")
    parser.add_argument("--task", action="append", default=[], help="a task of the suite; repeatable")
    parser.add_argument("--num-fewshot", type=int, help="examples in each prompt")
    parser.add_argument("--temperature", type=float, help="0 to 2")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="any other one")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
