"""What the sentence of an error says where no code says it, and its form in ours: short, without secrets."""

import re
from collections.abc import Sequence

from services.worker.engines.parsed_json import count_of

_TOO_LONG = re.compile(
    r"context[ _](length|window|size|limit)|maximum (context|model|input|prompt) length"
    r"|too many (input )?tokens|(prompt|input) (is )?too long|max_model_len|longer than the maximum"
    r"|input token count.* exceeds|(prompt|input)( length)? (\(\S{1,20}\) )?exceeds"
    r"|exceeded model token limit|range of input length|inputs`? must have less than"
    r"|inputs`? tokens \+ `?max_new_tokens|max_num_tokens|reduce the length of the (messages|prompt|input)"
    r"|输入.{0,20}(过长|超长)",
    re.IGNORECASE,
)
# OpenAI reports by 429 a request that is larger than all that a minute allows.
_OVER_LIMIT = re.compile(r"request too large\b|input or output tokens must be reduced", re.IGNORECASE)
# Only what no rate limit says: such an account is refused until it is paid for.
_NO_CREDIT_TEXT = (
    r"insufficient (\w+ )?(credit|balance|fund)s?\b|(balance|credit) is too low|in arrears|余额不足|欠费"
    r"|account\b.{0,80} (is|has been|was) suspended"
)
_NO_CREDIT = re.compile(_NO_CREDIT_TEXT, re.IGNORECASE)
# Some servers refuse a key by 403, others a prompt.
_FILTERED = re.compile(
    r"flagged|moderation|usage guidelines|safety (check|filter|system)|content (filter|policy|violat)",
    re.IGNORECASE,
)
_NAMED_STATUS = re.compile(
    r"(?:^|\b(?:error|status|http|code)\W{0,3}(?:code\W{0,3})?)([45][0-9]{2})\b", re.IGNORECASE
)
_PATTERNS: Sequence[tuple[int, str]] = (
    (402, _NO_CREDIT_TEXT),
    (402, r"insufficient (\w+ )?quota|payment required|(out of|not enough|more|no( \w+)?) (credit|fund)s?\b"),
    (401, r"(invalid|incorrect|wrong|missing|expired|no) (api|auth\w*|access)[ _-]?(key|token)"),
    (401, r"unauthori[sz]ed|not authenticated|unauthenticated|not logged in"),
    (401, r"authentication (is )?(required|failed)"),
    (401, r"(could not|failed to|cannot) (validate|verify|authenticate)\b.{0,40}(credential|key|token|user)"),
    (401, r"\b(key|token)\b( is)? (invalid|expired)"),
    (403, r"\b(access|permission)s? (is |was )?denied\b|\bforbidden\b"),
    (403, r"not (allowed|permitted|authori[sz]ed) to\b"),
    (429, r"rate[ _-]?limit|too many requests|quota (has been |was )?(exceeded|exhausted)"),
    (404, r"\bmodel\b.{0,80}\b(not (found|exist)|does(n't| not) exist|unknown)|no such model"),
    (503, r"\b(service|server|model)\b.{0,30}\b(unavailable|overloaded|at capacity|busy)\b"),
    (504, r"\b(gateway|request|upstream) time(d[ -])?[ -]?out\b"),
    (400, r"(unsupported|unknown|unrecogni[sz]ed|invalid) (request|parameter|argument|value|field)"),
)
_STATUSES = tuple((status, re.compile(pattern, re.IGNORECASE)) for status, pattern in _PATTERNS)
# Keys of providers by their first letters, and what follows the name of a scheme or a user in a URL.
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|nvapi|ghp|r8|pplx|fw)[-_](?=[\w*-]*\d)[\w*-]{10,}|\bAIza[\w-]{20,}"
    r"|\beyJ[\w-]{10,}(?:\.[\w-]+)+|(?i:(?<=\bbearer )|(?<=\bbasic ))(?=\S*\d)[\w+/=.~-]{12,}"
    r"|(?<=://)[^\s/@]+(?=@)"
)
_MAX_CHARACTERS = 300


def is_too_long(message: str) -> bool:
    return _TOO_LONG.search(message) is not None


def is_over_rate_limit(message: str) -> bool:
    """Whether the request is larger than the limit itself, so that it is refused however long one waits."""
    return _OVER_LIMIT.search(message) is not None


def has_no_credit(message: str) -> bool:
    """Whether the account has nothing left to pay with, whatever the status says."""
    return _NO_CREDIT.search(message) is not None


def is_filtered(message: str) -> bool:
    return _FILTERED.search(message) is not None


def status_in_text(message: str) -> int | None:
    """The status that the sentence names or stands for."""
    if named := _NAMED_STATUS.search(message):
        return count_of(int(named[1]))
    if is_too_long(message):
        return 400
    if is_filtered(message):
        return 403
    return next((status for status, pattern in _STATUSES if pattern.search(message)), None)


def short_text(text: str) -> str:
    """One line without keys, cut to a length that leaves out pages of HTML."""
    line = _SECRET.sub("***", " ".join(text.split()))
    return line if len(line) <= _MAX_CHARACTERS else line[: _MAX_CHARACTERS - 1] + "…"
