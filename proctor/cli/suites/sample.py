"""One sample as a model would be asked, to the last blank."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from proctor.cli.render.terminal import say
from proctor.cli.render.verbatim import quoted, write_verbatim
from proctor.v1 import suite_service_pb2 as suite_pb2


def print_sample(console: Console, shown: suite_pb2.ShowSampleResponse) -> None:
    _print_prompt(console, shown)
    _print_choices(console, shown)
    expected = shown.sample.target.texts
    if expected:
        _print_quoted(console, "expected", expected)
    if shown.sample.target.wrong_texts:
        _print_quoted(console, "known to be wrong", shown.sample.target.wrong_texts)
    if shown.stop:
        _print_quoted(console, "stops at", shown.stop)
    for name, value in _facts(shown).items():
        say(console, Text.assemble((f"{name}: ", "bold"), value))


def _print_prompt(console: Console, shown: suite_pb2.ShowSampleResponse) -> None:
    prompt = shown.sample.prompt
    turns = [(turn.role, turn.content) for turn in prompt.messages] or [("prompt", prompt.text)]
    for role, text in turns:
        console.rule(role, align="left", style="dim")
        write_verbatim(console, text)
    console.rule("end of the prompt", align="left", style="dim")


def _print_choices(console: Console, shown: suite_pb2.ShowSampleResponse) -> None:
    target = shown.sample.target
    right = set(target.right_choices) | ({target.choice} if target.HasField("choice") else set())
    for place, choice in enumerate(shown.sample.choices):
        mark = ("right ", "green") if place in right else "      "
        say(console, Text.assemble(f"{place:>3} ", mark, quoted(choice)))


def _print_quoted(console: Console, name: str, texts: Sequence[str]) -> None:
    say(console, Text.assemble((f"{name}: ", "bold"), ", ".join(quoted(text) for text in texts)))


def _facts(shown: suite_pb2.ShowSampleResponse) -> dict[str, str]:
    uses = [f"{use.name} {use.options_json}".strip() for use in shown.scoring.metrics]
    facts = {"metrics": ", ".join(uses), "filters": shown.scoring.filters_json}
    facts["at most"] = f"{shown.max_tokens} tokens" if shown.max_tokens else ""
    facts["shares its passage with"] = shown.sample.cluster
    stand_in = " (stand-in rows, not the official split)" if shown.is_stand_in else ""
    facts["row from"] = f"{shown.dataset}, {shown.dataset_revision}{stand_in}"
    return {name: value for name, value in facts.items() if value}
