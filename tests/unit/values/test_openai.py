"""A completion has the fields of the OpenAI protocol, whichever part of Proctor makes it."""

from proctor.values import openai
from proctor.values.usage import TokenUsage


def test_a_chat_completion_and_a_text_completion() -> None:
    head = openai.CompletionHead("7", created=1, model="org/model")
    usage = TokenUsage(10, 5, 4, 2)
    body = openai.completion(head, [openai.choice("Yes", "stop")], usage)
    assert (body["id"], body["object"]) == ("chatcmpl-7", "chat.completion")
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "Yes", "refusal": None}
    assert body["usage"]["total_tokens"] == 15
    text = openai.completion(
        openai.CompletionHead("7", 1, "org/model", is_chat=False),
        [openai.choice("Yes", "", is_chat=False)],
        usage,
    )
    assert (text["id"], text["object"]) == ("cmpl-7", "text_completion")
    assert text["choices"] == [{"index": 0, "text": "Yes", "logprobs": None, "finish_reason": None}]
