"""Reading what an OpenAI-compatible server answers."""

from typing import Any

import pytest

from proctor.values.outcome import Answer, ChoiceScore
from services.worker.engines.errors import EngineFailure, ProviderFailed, RequestRefused, UnsupportedRequest
from services.worker.engines.openai.responses import (
    read_answer,
    read_choice_score,
)


def chat_document(message: object, finish_reason: str = "stop") -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish_reason}]}


def echoed(values: list[float | None], tops: list[dict[str, float] | None]) -> dict[str, Any]:
    return {
        "logprobs": {"text_offset": [0, 3, 6, 9], "token_logprobs": values, "top_logprobs": tops},
    }


def answer_in(document: dict[str, Any], *, is_chat: bool) -> Answer:
    answer, _ = read_answer(document, is_chat=is_chat)
    return answer


def test_empty_answer_is_an_answer() -> None:
    answer = answer_in(chat_document({"content": ""}), is_chat=True)
    assert (answer.text, answer.finish_reason) == ("", "stop")


def test_answer_without_text_is_an_empty_answer() -> None:
    assert answer_in(chat_document({"content": None}), is_chat=True).text == ""


@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "text", "text": "Ber"}, {"type": "text", "text": "gen"}],
        ["Bergen"],
        {"type": "text", "text": "Bergen"},
        [{"type": "output_text", "text": "Bergen", "annotations": []}],
        [{"type": "text", "text": {"value": "Bergen", "annotations": []}}],
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Oslo?"}]},
            {"type": "text", "text": "Bergen"},
        ],
        [{"type": "reasoning", "text": "Oslo?"}, None, {"type": "text", "text": "Bergen"}],
    ],
)
def test_a_content_of_parts_is_their_text_without_reasoning(parts: object) -> None:
    assert answer_in(chat_document({"content": parts}), is_chat=True).text == "Bergen"


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Bergen", "reasoning_content": "Oslo?", "reasoning": "Oslo?"},
        {"content": "Bergen", "reasoning_content": None, "reasoning": "Oslo?"},
        {"content": "Bergen", "reasoning": {"summary": [{"type": "summary_text", "text": "Oslo?"}]}},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Oslo?"}]}, "Bergen"]},
        {"content": [{"type": "reasoning_content", "reasoning_content": {"text": "Oslo?"}}, "Bergen"]},
        {"content": [{"type": "thinking", "thinking": "Os"}, {"type": "thinking", "text": "lo?"}, "Bergen"]},
        {
            "content": "Bergen",
            "reasoning": None,
            "reasoning_details": [
                {"type": "reasoning.summary", "summary": "Os"},
                {"type": "reasoning.text", "text": "lo?"},
                {"type": "reasoning.encrypted", "data": "gAAA"},
            ],
        },
        {
            "content": "Bergen",
            "thinking_blocks": [{"type": "thinking", "thinking": "Oslo?", "signature": "s"}],
        },
        {"content": "Bergen", "thinking": "Oslo?"},
    ],
)
def test_reasoning_is_apart_from_the_answer(message: dict[str, Any]) -> None:
    answer = answer_in(chat_document(message), is_chat=True)
    assert (answer.text, answer.reasoning) == ("Bergen", "Oslo?")


@pytest.mark.parametrize("odd", [7, True, [None, 3], {"effort": "high"}, [[[[[["deep"]]]]]]])
def test_odd_reasoning_is_none(odd: object) -> None:
    assert answer_in(chat_document({"content": "Bergen", "reasoning": odd}), is_chat=True).reasoning == ""


def test_reasoning_that_ran_out_leaves_an_empty_answer() -> None:
    document = chat_document({"content": None, "reasoning": "Oslo?"}, "length")
    assert answer_in(document, is_chat=True) == Answer("", "length", reasoning="Oslo?")


def test_the_answer_is_the_choice_with_the_first_index() -> None:
    first, second = ({"index": index, "text": text} for index, text in enumerate(("Bergen", "Oslo")))
    assert answer_in({"choices": [second, first]}, is_chat=False).text == "Bergen"


@pytest.mark.parametrize("reason", ["content_filter", "sensitive", "SAFETY", "guardrail_intervened"])
@pytest.mark.parametrize("text", [None, "", "To build one, first"])
def test_withheld_answer_is_a_refusal_whatever_text_precedes(text: str | None, reason: str) -> None:
    with pytest.raises(RequestRefused):
        answer_in(chat_document({"content": text}, reason), is_chat=True)


@pytest.mark.parametrize(
    "reason",
    [
        "error",
        "ERROR",
        "abort",
        "aborted",
        "timeout",
        "canceled",
        "cancelled",
        "network_error",
        "insufficient_system_resource",
    ],
)
@pytest.mark.parametrize("content", [None, "", "To build one, first"])
def test_an_answer_that_the_server_broke_off_is_no_answer(reason: str, content: str | None) -> None:
    with pytest.raises(ProviderFailed, match=rf"broke off its answer \({reason}\)"):
        answer_in(chat_document({"content": content}, reason), is_chat=True)


def test_a_reason_in_an_object_is_read_like_a_word() -> None:
    ended = {"message": {"content": "Bergen"}, "finish_reason": {"type": "length", "length": 16}}
    assert answer_in({"choices": [ended]}, is_chat=True).finish_reason == "length"
    aborted = {"message": {"content": ""}, "finish_reason": {"type": "abort", "message": "Aborted"}}
    with pytest.raises(ProviderFailed, match="abort"):
        answer_in({"choices": [aborted]}, is_chat=True)


def test_one_of_several_texts_that_was_broken_off_is_no_answer() -> None:
    choices = [
        {"index": 0, "text": "42", "finish_reason": "stop"},
        {"index": 1, "text": "", "finish_reason": "abort"},
    ]
    with pytest.raises(ProviderFailed):
        answer_in({"choices": choices}, is_chat=False)


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("stop", "stop"),
        ("eos_token", "stop"),
        ("COMPLETE", "stop"),
        ("STOP", "stop"),
        ("LENGTH", "length"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("repetition", "repetition"),
        ("tool_calls", "tool_calls"),
    ],
)
def test_words_of_other_servers_for_an_end_are_those_of_the_protocol(said: str, known: str) -> None:
    assert answer_in(chat_document({"content": "42"}, said), is_chat=True).finish_reason == known


def test_scores_of_a_request_that_was_broken_off_are_none() -> None:
    with pytest.raises(ProviderFailed):
        read_choice_score({**echoed([None, -1.0], [None, None]), "finish_reason": "error"}, range(3, 9))


def test_finish_reason_is_cut_to_fit_a_message() -> None:
    assert (
        len(answer_in(chat_document({"content": "42"}, "x" * 10_000_000), is_chat=True).finish_reason) == 64
    )


@pytest.mark.parametrize(
    "document", [{}, {"choices": []}, {"choices": [None]}, chat_document(None), chat_document({"content": 3})]
)
def test_document_without_an_answer_may_be_asked_for_again(document: dict[str, Any]) -> None:
    with pytest.raises(ProviderFailed):
        answer_in(document, is_chat=True)


def test_half_a_message_is_no_empty_answer() -> None:
    with pytest.raises(ProviderFailed):
        answer_in(chat_document({"content": None}, ""), is_chat=True)


@pytest.mark.parametrize("choice", [{"index": 0}, {"index": 0, "text": None, "finish_reason": "stop"}])
def test_completion_without_text_is_no_empty_answer(choice: dict[str, Any]) -> None:
    with pytest.raises(ProviderFailed):
        answer_in({"choices": [choice]}, is_chat=False)


@pytest.mark.parametrize("odd", [3, ["stop"], {"reason": "stop"}])
def test_odd_finish_reason_is_none(odd: object) -> None:
    document = {"choices": [{"text": "42", "finish_reason": odd}]}
    assert answer_in(document, is_chat=False).finish_reason == ""


def test_score_sums_the_tokens_that_begin_inside_the_choice() -> None:
    choice = echoed([None, -1.0, -2.0, -4.0], [None, {"a": -1.0}, {"b": -2.0}, {"c": -4.0}])
    assert read_choice_score(choice, range(3, 9)) == ChoiceScore(-3.0, is_greedy=True, token_count=2)


def test_score_is_not_greedy_when_another_token_is_likelier() -> None:
    choice = echoed([None, -1.0, -2.0, -4.0], [None, {"a": -1.0}, {"b": -0.5}, None])
    assert not read_choice_score(choice, range(3, 9)).is_greedy


def test_server_without_logprobs_is_distinguished_from_a_bad_answer() -> None:
    with pytest.raises(UnsupportedRequest):
        read_choice_score({"logprobs": None}, range(3))


@pytest.mark.parametrize("tops", [[["a", -1.0]] * 4, {"a": -1.0}, "none"])
def test_odd_top_logprobs_are_a_failure(tops: Any) -> None:
    with pytest.raises(ProviderFailed):
        read_choice_score(echoed([None, -1.0, -2.0, -4.0], tops), range(3, 9))


@pytest.mark.parametrize("odd", [12.5, 1, True, False, "-1.0"])
def test_what_is_no_log_probability_is_a_failure(odd: Any) -> None:
    with pytest.raises(ProviderFailed, match="log-probabilit"):
        read_choice_score(echoed([None, -1.0, odd, -4.0], [None] * 4), range(3, 9))


def test_log_probability_may_be_rounded_a_little_above_nothing() -> None:
    assert read_choice_score(echoed([None, 1e-7, 0, -4.0], [None] * 4), range(3, 9)).token_count == 2


@pytest.mark.parametrize(
    ("span", "failure"), [(range(3), ProviderFailed), (range(20, 30), UnsupportedRequest)]
)
def test_logprobs_that_do_not_cover_the_choice_are_a_failure(
    span: range, failure: type[EngineFailure]
) -> None:
    with pytest.raises(failure):
        read_choice_score(echoed([None, -1.0, -2.0, -4.0], [None, None, None, None]), span)
