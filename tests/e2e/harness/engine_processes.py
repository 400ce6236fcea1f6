"""The processes of vLLM's engines below the worker of a stack."""

import psutil

from tests.fakes.stack.observed_processes import name_of
from tests.harness.stack_harness import StackHarness


def engines_of(stack: StackHarness) -> list[psutil.Process]:
    children = psutil.Process(stack.stack.child("worker").pid).children(recursive=True)
    return [child for child in children if "EngineCore" in name_of(child)]


def is_left(engine: psutil.Process) -> bool:
    """It is no zombie either, which only waits for its parent."""
    try:
        return bool(engine.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
