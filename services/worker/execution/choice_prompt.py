"""Puts a question to a model that replies in text: an instruction names the options before the prompt.

The instruction is not part of the sample (decision 0007): the same sample may be scored by log-likelihood.
"""

from collections.abc import Sequence
from dataclasses import replace

from proctor.values.sample import Prompt
from proctor.values.scoring import with_choice_instruction
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import RequestRefused

# A token is at least one byte of a text; the rest is for the end token and an engine's additions.
_TOKENS_AROUND_TEXT = 64


def option_texts(choices: Sequence[str]) -> tuple[str, ...]:
    """The choices without the white space that joins them to the prompt; refused where two become equal."""
    texts = tuple(choice.strip() for choice in choices)
    if not all(texts):
        raise RequestRefused("One of the choices has no text, so no model can reply with it.")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise RequestRefused(
            f"Two of the choices read {twice!r}, so a reply cannot name one of them; score by loglikelihood."
        )
    return texts


def instructed_prompt(prompt: Prompt, choices: Sequence[str]) -> Prompt:
    """Puts the instruction before the prompt; in a chat, before the text of its last message."""
    texts = option_texts(choices)
    if not prompt.is_chat:
        return Prompt(text=with_choice_instruction(prompt.as_text, texts))
    *earlier, last = prompt.messages
    content = with_choice_instruction(last.content, texts)
    return Prompt(messages=(*earlier, replace(last, content=content)))


def constrained_sampling(sampling: Sampling, prompt: Prompt, choices: Sequence[str]) -> Sampling:
    """Allows only the choices, as continuations or as replies, and enough tokens for the longest."""
    allowed = option_texts(choices) if prompt.is_chat else tuple(choices)
    longest = max(len(text.encode()) for text in allowed)
    return replace(
        sampling,
        allowed_texts=allowed,
        # Unset stays unset: the engine then decides by the context.
        max_tokens=sampling.max_tokens and max(sampling.max_tokens, longest + _TOKENS_AROUND_TEXT),
        # A stop text inside a choice would cut it, and the reply would be none of the choices.
        stop=(),
    )
