"""The reasoning of an answer, apart from its text."""

from dataclasses import replace

from proctor.values.outcome import Answer
from proctor.values.reasoning.separate import may_have_reasoning, separate_reasoning

# The model had no more tokens: what it would have said next is missing.
CUT = "length"


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
