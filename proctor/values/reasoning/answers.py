"""The reasoning of an answer, apart from its text."""

from collections.abc import Sequence
from dataclasses import replace

from proctor.values.outcome import Answer
from proctor.values.reasoning.separate import may_have_reasoning, separate_reasoning

# The model had no more tokens: what it would have said next is missing.
CUT = "length"
_STOPPED = "stop"


def with_reasoning_apart(answer: Answer) -> Answer:
    """The answer with the reasoning in its text beside what the server sent apart from it.

    A text without reasoning stays as it is.
    """
    if not may_have_reasoning(answer.text):
        return answer
    separated = separate_reasoning(answer.text, is_cut=answer.finish_reason == CUT)
    if separated.answer is answer.text:
        return answer
    parts = (answer.reasoning, separated.reasoning)
    return replace(answer, text=separated.answer, reasoning="\n\n".join(part for part in parts if part))


def ended_at_stop(answer: Answer, stops: Sequence[str]) -> Answer:
    """Up to the first stop behind the reasoning and the first word of the answer; the reasoning stays."""
    if not any(stop and stop in answer.text for stop in stops):
        return answer
    said = with_reasoning_apart(answer).text
    # Reasoning before the answer ends in blank lines, also where the server has taken it out of the text.
    first_word = len(said) - len(said.lstrip())
    found = [at for stop in stops if stop and (at := said.find(stop, first_word)) >= 0]
    begin = answer.text.rfind(said)
    if not found or begin < 0:
        return answer
    return replace(answer, text=answer.text[: begin + min(found)], finish_reason=_STOPPED)
