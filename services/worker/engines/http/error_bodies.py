"""Reads errors in the many forms of servers and proxies: their sentence, and the status they stand for."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from types import MappingProxyType

import orjson

from proctor.values.plain import Json
from services.worker.engines.http.error_texts import short_text, status_in_text
from services.worker.engines.parsed_json import count_of, object_of, objects_of, text_of

_STATUS_TEXT = re.compile(r"\s*[45][0-9]{2}\s*")
_STATUS_NAMES = (
    *("code", "status", "status_code", "statusCode", "http_code", "type", "error_type", "reason"),
    *("__type", "title"),
)
_SENTENCE_NAMES = (
    "message",
    "msg",
    "detail",
    "error",
    "errors",
    "error_message",
    "error_description",
    "error_msg",
    "status_msg",
    "fault",
    "faultstring",
    "errorMessage",
    "title",
    "body",
    "reason",
    "description",
)
# Errors are nested in errors by each proxy on the way.
_MAX_DEPTH = 6
_MAX_LISTED = 5
_NOT_LETTERS = re.compile(r"[^a-z]+")
_ENDINGS = re.compile(r"(error|exception)+$")
# Any of them holds an answer or a list, so that the rest of the document is no error.
_ANSWER_NAMES = ("choices", "candidates", "data", "models", "content", "response")
_BARE_NAMES = (
    "detail",
    "errors",
    "message",
    "msg",
    "base_resp",
    "error_msg",
    "error_message",
    "errorMessage",
    "fault",
    "title",
)
# They say whether all is well, and nothing else does.
_NAMES_OF_SUCCESS = ("success", "ok")
_FAILED = frozenset({"error", "fail", "failed", "failure"})
_OF_ERRORS_ONLY = ("detail", "fault")


def word_letters(word: object) -> str:
    """A word for a kind of error, however a server writes it: `RateLimitError` is `rate_limit_error`."""
    return _ENDINGS.sub("", _NOT_LETTERS.sub("", text_of(word).lower()))


_OWN_WORDS: Mapping[int, tuple[str, ...]] = {
    400: (
        "invalid_request",
        "invalid_argument",
        "invalid_parameter",
        "invalid_value",
        "failed_precondition",
        "out_of_range",
        "validation",
        "context_length_exceeded",
        "string_above_max_length",
        "unsupported_parameter",
        "unsupported_value",
        "unknown_parameter",
        "content_filter",
        "content_policy_violation",
        "ResponsibleAIPolicyViolation",
    ),
    401: ("authentication", "invalid_api_key", "invalid_authentication", "unauthenticated"),
    402: (
        "billing",
        "billing_not_active",
        "insufficient_quota",
        "insufficient_credits",
        "insufficient_balance",
        "insufficient_funds",
    ),
    403: ("permission", "permission_denied", "access_denied"),
    404: ("model_not_found", "unknown_model"),
    413: ("request_too_large",),
    429: (
        "rate_limit",
        "rate_limited",
        "rate_limit_exceeded",
        "rate_limit_reached",
        "resource_exhausted",
        "throttling",
    ),
    500: ("api", "server", "internal"),
    503: ("unavailable", "engine_overloaded", "model_overloaded"),
    504: ("timeout", "deadline_exceeded"),
    529: ("overloaded",),
}
# The names of HTTP, and the kinds of OpenAI, Anthropic, Google, vLLM and AWS.
_STATUSES: Mapping[str, int] = MappingProxyType(
    {word_letters(each.phrase): each.value for each in HTTPStatus if each >= 400}
    | {word_letters(word): status for status, words in _OWN_WORDS.items() for word in words}
)


class AnswerError(Exception):
    """An error in the place of an answer; `status` is the HTTP status that it stands for.

    `is_midway` is set where it came in the middle of a stream.
    """

    def __init__(self, status: int, body: bytes, *, is_midway: bool) -> None:
        super().__init__(f"the server answered with the error {status}")
        self.status = status
        self.body = body
        self.is_midway = is_midway


def refuse_error(document: Json) -> None:
    """Raises AnswerError for a document that came with 200 and is an error, or has one in a choice."""
    document = _in_lower_case(document)
    if error := _marked_error(document) or _bare_error(document):
        raise AnswerError(status_of_error(error), orjson.dumps(error), is_midway=False)


def refuse_error_event(event: Json, *, is_named: bool = False) -> None:
    """Raises AnswerError for an error in a stream; `is_named`: the stream calls the event one."""
    if error := (event if is_named else _marked_error(event)):
        raise AnswerError(status_of_error(error), orjson.dumps(error), is_midway=True)


def _in_lower_case(document: Json) -> Json:
    """Names as most servers write them: AWS and Azure begin with capitals, as in `Message`."""
    for name in _ANSWER_NAMES:
        if document.get(name):
            return document
    lowered = {f"{name[:1].lower()}{name[1:]}": value for name, value in document.items()}
    error = lowered.get("error")
    return {**lowered, "error": _in_lower_case(error)} if isinstance(error, dict) else lowered


def _marked_error(document: Json) -> Json | None:
    """The document itself, or that of the first choice with an error; None where there is none."""
    if document.get("error") or "error" in (document.get("object"), document.get("type")):
        return document
    choices = document.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("error"):
            return {"error": choice["error"]}
    return None


def _bare_error(document: Json) -> Json | None:
    """A document that only says something; None where it may hold an answer."""
    # A loop: with millions of answers a generator would show.
    for name in _ANSWER_NAMES:
        if document.get(name):
            return None
    # An answer of Ollama has a message too, which is an object.
    bare = any(isinstance(document.get(name), str | list) and document[name] for name in _BARE_NAMES)
    bare = bare or any(object_of(document.get(name)) for name in _OF_ERRORS_ONLY)
    bare = bare or any(parse_status(document.get(name)) for name in _STATUS_NAMES)
    bare = bare or any(document.get(name) is False for name in _NAMES_OF_SUCCESS)
    bare = bare or text_of(document.get("status")).lower() in _FAILED
    return document if bare or object_of(document.get("base_resp")).get("status_code") else None


def status_of_error(document: Json) -> int:
    """The status that it names, else the one of its words or of its sentence; 500 where nothing says it."""
    values = [holder.get(name) for holder in _holders(document) for name in _STATUS_NAMES]
    named = next((status for value in values if (status := parse_status(value))), None)
    known = next((_STATUSES[word] for value in values if (word := word_letters(value)) in _STATUSES), None)
    sentence = _sentence(document)
    said = _STATUSES.get(word_letters(sentence)) or status_in_text(sentence)
    return named or known or said or (422 if _is_of_fields(document) else 500)


def _is_of_fields(document: Json) -> bool:
    """Whether FastAPI says which fields of the request are wrong."""
    return any(isinstance(each.get("loc"), list) for each in objects_of(document.get("detail")))


def parse_status(code: object) -> int | None:
    """The HTTP status that an error names, as a number or in digits."""
    status = count_of(int(code) if isinstance(code, str) and _STATUS_TEXT.fullmatch(code) else code)
    return status if 400 <= status < 600 else None


def error_words(fields: Json) -> frozenset[str]:
    """The letters of its codes and types, and of those that a proxy passes on."""
    holders = (fields, *_holders(upstream_error(fields)))
    return frozenset(word_letters(holder.get(name)) for holder in holders for name in ("code", "type"))


def _holders(document: Json) -> Iterator[Json]:
    """From the innermost: the error, the document around it, and what a proxy passes on."""
    error = object_of(document.get("error")) or object_of(document.get("detail"))
    yield object_of(error.get("error"))
    yield error
    yield document
    yield from objects_of(document.get("errors"))
    if upstream := upstream_error(error):
        yield from _holders(upstream)


def upstream_error(fields: Json) -> Json:
    """The error of the server behind a proxy, as OpenRouter passes it on; a plain text is its message."""
    raw = object_of(fields.get("metadata")).get("raw")
    if isinstance(raw, str):
        try:
            raw = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return {"message": raw}
    return {"message": raw} if isinstance(raw, str) else object_of(raw)


def parse_error_body(body: bytes) -> tuple[Json, str]:
    """The fields of the error itself, and its sentence in short.

    Of a list, as Google sends it, the first item; a body that is no JSON is the sentence.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}, short_text(body.decode("utf-8", "replace"))
    if isinstance(document, list):
        document = next(iter(objects_of(document)), None)
    outer = _in_lower_case(object_of(document))
    error = outer.get("error", outer)
    fields = error if isinstance(error, dict) else {name: outer[name] for name in outer if name != "error"}
    return fields, short_text(_sentence(outer))


def _sentence(value: object, depth: int = 0) -> str:
    if isinstance(value, str):
        return _passed_on(value, depth) or value.strip()
    if depth >= _MAX_DEPTH:
        return ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_sentence(each, depth + 1) for each in value[:_MAX_LISTED])))
    if not isinstance(value, dict):
        return ""
    if isinstance(value.get("loc"), list) and isinstance(value.get("msg"), str):
        return _field_sentence(value["loc"], value["msg"])
    said = [found for name in _SENTENCE_NAMES if (found := _sentence(value.get(name), depth + 1))]
    own = said[0] if said else _sentence(value.get("base_resp"), depth + 1)
    # Spring and FastAPI name the kind as the error and say the reason beside it.
    kind = _sentence(value.get("error")) if isinstance(value.get("error"), str) else ""
    own = f"{kind}: {own}" if kind and kind not in own else own
    return _with_upstream(own, value, depth)


def _passed_on(text: str, depth: int) -> str:
    """The sentence of a document that a proxy has put into its own error as a text; empty for other texts."""
    if depth >= _MAX_DEPTH or not text.lstrip().startswith(("{", "[")):
        return ""
    try:
        return _sentence(orjson.loads(text), depth + 1)
    except orjson.JSONDecodeError:
        return ""


def _field_sentence(place: list[object], said: str) -> str:
    """Of FastAPI's check of a request: "top_p: Input should be less than or equal to 1"."""
    names = ".".join(str(part) for part in place if part != "body")
    return f"{names}: {said}" if names else said


def _with_upstream(own: str, fields: Json, depth: int) -> str:
    passed_on = _sentence(upstream_error(fields), depth + 1)
    if not passed_on or passed_on in own:
        return own
    provider = text_of(object_of(fields.get("metadata")).get("provider_name"))
    return f"{own} ({provider}: {passed_on})" if provider else f"{own}: {passed_on}" if own else passed_on
