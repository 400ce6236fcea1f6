"""How a choice is put to a model that answers in words: its options are named before the prompt.

The instruction is no part of the sample (decision 0007): the same sample may be scored by log-likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.worker.engines.engine import Prompt, RequestRefused, Sampling

INSTRUCTION = "Reply with the text of exactly one of these options, and nothing else:\n{options}\n\n{prompt}"
# Stored with the run as `choice_instruction`; another text gets another number.
INSTRUCTION_VERSION = "1"

# A token is at least one byte of a text; the rest is for the end and for what an engine wraps around it.
_TOKENS_AROUND_TEXT = 64


def option_texts(choices: Sequence[str]) -> tuple[str, ...]:
    """The choices without the white space that joins them to the prompt; refused where two become one."""
    texts = tuple(choice.strip() for choice in choices)
    if not all(texts):
        raise RequestRefused("One of the choices has no text, so no model can reply with it.")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise RequestRefused(
            f"Two of the choices read {twice!r}, so a reply cannot tell them apart; score by loglikelihood."
        )
    return texts


def instructed_prompt(prompt: Prompt, choices: Sequence[str]) -> Prompt:
    """The prompt behind the instruction; of a chat, its last turn."""
    options = "\n".join(f"- {text}" for text in option_texts(choices))
    if not prompt.is_chat:
        return Prompt(text=INSTRUCTION.format(options=options, prompt=prompt.text))
    *earlier, last = prompt.messages
    content = INSTRUCTION.format(options=options, prompt=last.content)
    return Prompt(messages=(*earlier, replace(last, content=content)))


def constrained_sampling(sampling: Sampling, prompt: Prompt, choices: Sequence[str]) -> Sampling:
    """Only the choices can be said: as they continue a text, or as a reply; and none of them is cut short."""
    allowed = option_texts(choices) if prompt.is_chat else tuple(choices)
    longest = max(len(text.encode()) for text in allowed)
    return replace(
        sampling,
        allowed_texts=allowed,
        max_tokens=sampling.max_tokens and max(sampling.max_tokens, longest + _TOKENS_AROUND_TEXT),
        stop=(),
    )
