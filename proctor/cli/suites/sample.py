"""One sample as a model would be asked, with every space."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from proctor.cli.render.terminal import say
from proctor.cli.render.verbatim import quoted, write_verbatim
from proctor.v1 import suite_service_pb2 as suite_pb2


def print_sample(console: Console, shown: suite_pb2.ShowSampleResponse) -> None:
    prompt, target = shown.sample.prompt, shown.sample.target
    turns = [(turn.role, turn.content) for turn in prompt.messages] or [("prompt", prompt.text)]
    for role, text in turns:
        console.rule(role, align="left", style="dim")
        write_verbatim(console, text)
    console.rule("end of the prompt", align="left", style="dim")
    right = set(target.right_choices) | ({target.choice} if target.HasField("choice") else set())
    for index, choice in enumerate(shown.sample.choices):
        mark = ("right ", "green") if index in right else "      "
        say(console, Text.assemble(f"{index:>3} ", mark, quoted(choice)))
    for name, value in _facts(shown):
        if value:
            say(console, Text.assemble((f"{name}: ", "bold"), value))


def _facts(shown: suite_pb2.ShowSampleResponse) -> Iterator[tuple[str, str]]:
    target = shown.sample.target
    yield "expected", _all_quoted(target.texts)
    yield "known to be wrong", _all_quoted(target.wrong_texts)
    yield "stops at", _all_quoted(shown.stop)
    yield "metrics", ", ".join(f"{use.name} {use.options_json}".strip() for use in shown.scoring.metrics)
    yield "filters", shown.scoring.filters_json
    yield "at most", f"{shown.max_tokens} tokens" if shown.max_tokens else ""
    yield "shares its passage with", shown.sample.cluster
    stand_in = " (stand-in rows, not the official split)" if shown.is_stand_in else ""
    yield "row from", f"{shown.dataset}, {shown.dataset_revision}{stand_in}"


def _all_quoted(texts: Sequence[str]) -> str:
    return ", ".join(map(quoted, texts))
