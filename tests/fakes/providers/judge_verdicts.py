"""The judge of the tests: gives verdicts by a rule, over what its prompt quotes."""

import re

_QUOTED = re.compile(
    r"\[\[(question|target|answer|first|second) (\w+)\]\]\n(.*?)\n\[\[end of \1 \2\]\]", re.DOTALL
)
UNDECIDED = "HARD"


def verdict_reply(prompt: str) -> str | None:
    """Yes where the answer has the target, if any; none where the question is hard. None for other prompts.

    It repeats the answer before its verdict, as judges do.
    """
    if "Verdict: LABEL" not in prompt:
        return None
    if "[[first " in prompt:
        return _preference(prompt)
    quoted = {name: text for name, _, text in _QUOTED.findall(prompt)}
    if UNDECIDED in quoted["question"]:
        return f"The answer says {quoted['answer']!r}. I cannot decide."
    is_right = quoted.get("target", "") in quoted["answer"]
    return f"The answer says {quoted['answer']!r}.\nVerdict: {'yes' if is_right else 'no'}"


def _preference(prompt: str) -> str:
    """The answer that names no `fake`; a tie of equal ones; the first one where the question is hard."""
    quoted = {name: text for name, _, text in _QUOTED.findall(prompt)}
    if UNDECIDED in quoted["question"]:
        return "Verdict: first"
    if quoted["first"] == quoted["second"]:
        return "Verdict: tie"
    return f"Verdict: {'second' if 'fake' in quoted['first'] else 'first'}"
