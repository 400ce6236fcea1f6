"""Requests of one sampling share all but their prompt, and those of others share nothing."""

from dataclasses import replace

from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import RequestRefused
from services.worker.engines.openai.api import OpenAIApi

CHAT = Prompt(messages=(ChatMessage("user", "Hello"),))
TEXT = Prompt(text="Hello")


def test_prompts_of_one_sampling_have_its_fields_and_their_own_prompt() -> None:
    api, sampling = OpenAIApi(), Sampling(max_tokens=7, stop=("END",))
    fields = {"model": "m", "max_tokens": 7, "temperature": 0.0, "stop": ("END",)}
    for content in ("Hello", "Goodbye"):
        prompt = Prompt(messages=(ChatMessage("user", content),))
        turn = {"role": "user", "content": content}
        assert api.generation("m", prompt, sampling).body == {**fields, "messages": [turn]}
    assert api.generation("m", TEXT, sampling).body == {**fields, "prompt": "Hello"}


def test_each_sampling_and_model_has_fields_of_its_own() -> None:
    api, sampling = OpenAIApi(), Sampling(max_tokens=7)
    for number in range(1500):
        # Gone before the next one is made, which may then have its identity.
        body = api.generation("m", CHAT, replace(sampling, max_tokens=number)).body
        assert (body["model"], body["max_tokens"]) == ("m", number)
        body = api.generation("n", CHAT, sampling).body
        assert (body["model"], body["max_tokens"]) == ("n", 7)


def test_a_refused_limit_is_sent_by_no_later_request_of_the_same_sampling() -> None:
    api, sampling = OpenAIApi(), Sampling(max_tokens=7)
    first, second = api.generation("m", CHAT, sampling), api.generation("m", CHAT, sampling)
    refusal = RequestRefused("Unsupported parameter", refused_fields=frozenset({"max_tokens"}))
    assert first.learn is not None
    assert first.learn(refusal)
    assert api.generation("m", CHAT, sampling).body["max_completion_tokens"] == 7
    # It was sent before the refusal was known.
    assert second.body["max_tokens"] == 7
    assert second.learn is not None
    assert second.learn(refusal)
