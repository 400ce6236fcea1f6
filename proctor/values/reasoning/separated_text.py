"""A model's text, separated."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SeparatedText:
    """`is_ended` False: the text ends within the reasoning, and `answer` is empty."""

    reasoning: str
    answer: str
    is_ended: bool = True


def separated(reasoning: list[str], answer: str | None) -> SeparatedText:
    """`answer` None: it never began."""
    apart = "\n\n".join(stripped for part in reasoning if (stripped := part.strip()))
    return SeparatedText(apart, "" if answer is None else without_margins(answer), answer is not None)


def without_margins(answer: str) -> str:
    """Without the space behind the mark, and without blank lines; a line of its own keeps its indentation."""
    answer = answer.rstrip()
    body = answer.lstrip()
    margin = answer[: len(answer) - len(body)]
    return margin.rpartition("\n")[2] + body if "\n" in margin else body
