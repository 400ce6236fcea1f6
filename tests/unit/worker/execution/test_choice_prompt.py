"""How a choice is put to a model that answers in words."""

import pytest

from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import RequestRefused
from services.worker.execution.choice_prompt import constrained_sampling, instructed_prompt, option_texts

CHOICES = (" negative", " positive")
QUESTION = "Review: {it} is fine.\nSentiment:"
INSTRUCTED = (
    "Reply with the text of exactly one of these options, and nothing else:\n- negative\n- positive\n\n"
    "Review: {it} is fine.\nSentiment:"
)


def chat(*contents: str) -> Prompt:
    return Prompt(messages=tuple(ChatMessage("user", content) for content in contents))


def test_options_are_named_before_a_text() -> None:
    assert instructed_prompt(Prompt(QUESTION), CHOICES) == Prompt(INSTRUCTED)


def test_options_are_named_in_the_last_turn_of_a_chat() -> None:
    assert instructed_prompt(chat("Hello.", QUESTION), CHOICES) == chat("Hello.", INSTRUCTED)


def test_letters_are_asked_for_as_letters() -> None:
    asked = instructed_prompt(chat("Which one?\nA. Rome\nB. Oslo"), (" A", " B", " C"))
    assert asked == chat(
        "Reply with the letter of exactly one option, A, B or C, and nothing else.\n\n"
        "Which one?\nA. Rome\nB. Oslo"
    )


def test_braces_of_a_choice_are_only_text() -> None:
    prompt = instructed_prompt(Prompt("{prompt}"), (" {options}", " {}"))
    assert prompt.as_text.endswith("\n- {options}\n- {}\n\n{prompt}")


def test_choices_that_a_reply_cannot_distinguish_are_refused() -> None:
    with pytest.raises(RequestRefused, match="Two of the choices read 'yes'"):
        option_texts((" no", " yes", "yes "))
    with pytest.raises(RequestRefused, match="has no text"):
        option_texts((" no", "  "))


def test_only_the_choices_are_allowed_as_continuations_or_replies() -> None:
    sampling = Sampling(max_tokens=256, temperature=0.5)
    continued = constrained_sampling(sampling, Prompt(QUESTION), CHOICES)
    assert (continued.allowed_texts, continued.temperature) == (CHOICES, 0.5)
    replied = constrained_sampling(sampling, chat(QUESTION), CHOICES)
    assert replied.allowed_texts == ("negative", "positive")


def test_no_choice_is_cut_short_whatever_was_ordered() -> None:
    sampling = constrained_sampling(Sampling(max_tokens=1, stop=("\n",)), Prompt("?"), ("ä" * 100, "b"))
    assert sampling.max_tokens is not None
    assert sampling.max_tokens >= 200
    assert sampling.stop == ()
