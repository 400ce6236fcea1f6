"""`proctor` alone: where to begin, or what to do with the stack that runs here."""

from collections.abc import Mapping

from proctor.cli.gateway import local_stack
from proctor.cli.render.terminal import Terminal, say
from proctor.cli.runs.run import print_next_commands
from proctor.stack.errors import StackError
from proctor.stack.state import StackState

_WITHOUT_STACK: Mapping[str, str] = {
    "try --model openai/gpt-4o-mini": "a provider's model; set OPENAI_API_KEY",
    "try --model ollama/llama3.2": "a model that Ollama serves here",
    "try": "a small model on vLLM (3 GB)",
    "doctor": "what this machine lacks",
}
_WITH_STACK: Mapping[str, str] = {
    "open": "the web pages in a browser",
    "models": "models that can be evaluated",
    "suites": "benchmarks to evaluate them on",
    "run --suite starter --model MODEL": "evaluate one",
    "runs": "runs so far; `results RUN` has the figures",
    "queue": "what runs and what waits",
}


def show_where_to_begin() -> None:
    terminal = Terminal(is_json=False)
    say(
        terminal.out, "Proctor evaluates language models on benchmarks, on your own data and on coding tasks."
    )
    stack = _serving_stack()
    if stack:
        say(terminal.out, f"A stack serves at http://{stack.gateway_http}. Go on with:")
    else:
        say(terminal.out, "Begin by evaluating a model on this machine:")
    print_next_commands(terminal, {**(_WITH_STACK if stack else _WITHOUT_STACK), "--help": "all commands"})


def _serving_stack() -> StackState | None:
    """None too where the state folder cannot be trusted: `status` and `doctor` say why."""
    try:
        stack = local_stack()
    except StackError:
        return None
    return stack if stack and stack.phase == "running" else None
