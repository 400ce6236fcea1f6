"""What was asked and expected, as a person reads it."""

from services.results.samples.sample_set import Prompt
from services.results.scores.answer import Target


def prompt_as_text(prompt: Prompt) -> str:
    """What was asked, for reading."""
    if prompt.text is not None:
        return prompt.text
    return "\n\n".join(f"{turn.role}: {turn.content}" for turn in prompt.messages)


def target_as_text(target: Target, target_delimiter: str) -> str:
    """What was expected, for reading."""
    if target.choice is not None and 0 <= target.choice < len(target.choices):
        return target.choices[target.choice].removeprefix(target_delimiter)
    if target.right_choices:
        right = [target.choices[choice] for choice in target.right_choices if choice < len(target.choices)]
        return " | ".join(text.removeprefix(target_delimiter) for text in right)
    return " | ".join(target.texts)
