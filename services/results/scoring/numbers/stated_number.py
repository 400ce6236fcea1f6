"""Finds the part of an answer that states its number, and reads it.

In this order: the last box, `#### N`, an answer in JSON, the last "the answer is N" or "Answer: N" (also in
other languages), and else the conclusion, which is the last sentence with a number. Courtesies, notes and
checks after it are passed by. An answer that states something else than one number is unread.
"""

import re
from collections.abc import Iterator

from services.results.scoring.answer_text import BOXED
from services.results.scoring.numbers.number_forms import in_one_form
from services.results.scoring.numbers.written_numbers import WrittenNumber, has_number, read_number

_HASHES = re.compile(r"^\s*####[ \t]*(?=\S*[^\n]*\d)(?P<claim>[^\n]+)", re.MULTILINE)
_FIELD = re.compile(
    r'"(?:final[_ ]?)?(?:answer|result|solution)"\s*:\s*(?P<claim>"(?:[^"\\]|\\.)*"|[-+.\w]+)', re.IGNORECASE
)
_IS = (
    r"(?:\s*(?:is|are|was|equals|[=:⇒→]|comes to|[-\u2013\u2014](?=\s)|(?:would|will|must|should) be)"
    r"(?:\s*(?:=|:))?)"
)
_STATEMENT = re.compile(
    rf"""
    (?<!\w) (?: (?:final|correct|right|exact|numerical|numeric|overall)\s+ )*
        (?: answer | ans | result | solution | final\s+value )
        (?:\s+(?:to|of|for|in)\s[^.:=\n]{{0,80}}?)? {_IS} \s*
  | (?:最终|最後|正确|正確)? (?:答案|答え|答|结果|結果|解答) (?:应该|應該)? \s* (?:是|為|为|は|[:：=]) \s*
  | (?:정답|답|결과) (?:은|는|이|가)? \s* [:：]? \s*
  | (?:la\s+)? (?:respuesta|réponse|risposta|resposta)
        (?:\s+(?:final|correcta|finale|corretta|correta))? \s* (?:es|est|è|é|:|=) \s*
  | (?:die\s+)? (?:antwort|lösung) \s* (?:ist|lautet|:|=) \s*
  | (?:het\s+)? antwoord \s* (?:is|:|=) \s*
  | ответ \s* (?:[:=—-]|равен|это)? \s*
  | (?:الإجابة|الجواب|النتيجة) \s* (?:الصحيحة\s*)? (?:هي|هو|:|=)? \s*
  | (?:उत्तर|जवाब) \s* (?:है|:|=)? \s*
  | (?:cevap|yanıt|sonuç) \s* [:=]? \s*
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DENIED = re.compile(r"\s*(?:not|no|isn't|n't)\b", re.IGNORECASE)
# Behind these comes why, or where the number comes from.
_REASON = re.compile(
    r"""[,;(]?\s* (?<!\w) (?: because | since | as\s(?:there|the|we|it|each|shown) | given | where | which
        | who | so\sthat | not | rather\sthan | instead\sof | if | when | unless | assuming
        | weil | parce\sque | porque ) (?!\w)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_REMARK = re.compile(r"(?<=\S)\s*(?<!\w)[(（][^()（）\n]*[)）]|(?<=\d )[(][^()\n]*[)]")
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!i\.e\.)(?<!e\.g\.)(?<!approx\.)[\s\"')\]]+(?=\S)|\n+|(?<=[。！？])"
)
_LEADS_ON = re.compile(
    r"""(?<!\w) (?: so | therefore | thus | hence | altogether | makes? | gives? | gets? | got | equals?
        | totals? | leaves | leaving | is | are | was | were | be | ist | est | es | è | é )(?!\w)
        | :(?=\s) | [⇒→∴] | 因此 | 所以 | 一共 | 总共 | 共 | 合計 | 是 | は""",
    re.IGNORECASE | re.VERBOSE,
)
_ASIDE = re.compile(
    r"""\W* (?: let\sme\sknow | feel\sfree | (?:i\s)?hope | please | if\syou | happy\sto | thank
        | (?:i|we)(?:'ve|\shave)?\s(?:\w+\s)?(?:double[- ]?)?(?:check|verif|confirm|us)\w*
        | (?:to\s)?(?:check|verif)\w*
        | (?:confidence|certainty|probability|sources?|reference|note|explanation|reasoning|hint|ps|p\.s\.) \b
        | this\s(?:assumes|uses) )""",
    re.IGNORECASE | re.VERBOSE,
)
_LIST_MARK = re.compile(r"^[ \t]*(?P<number>\d{1,2})[.)][ \t]+(?=\S)", re.MULTILINE)
_ITEM = "\N{BULLET}"
_BULLET = re.compile(r"^[ \t]*[-*•·][ \t]+(?=[^\n]*[^\W\d_]{2})", re.MULTILINE)
_BOLD = re.compile(r"\*\*([^*\n]{1,60})\*\*")
_WORD = re.compile(r"[^\W\d_]{2}")
_FACTORIAL = re.compile(r"\d!(?!\w)")
# Several values with names, as "Ann: 12".
_ENTRY = re.compile(r"^\W*(?P<label>[^\n:]{1,40}):\s*(?P<value>\S{0,3}\d\S*(?:\s\w+)?)[ \t]*$", re.MULTILINE)
_SUM = re.compile(
    r"total|sum|answer|result|all|overall|altogether|difference|profit|left|remain", re.IGNORECASE
)
# A longer sentence is the repeats of a model that has lost itself.
_MAX_SENTENCE = 2000


def stated_number(text: str) -> WrittenNumber | None:
    """Reads the final answer of a model. None where it states none, or not plainly one."""
    boxed = [found[1] for found in BOXED.finditer(text)]
    if boxed:
        return None if _FACTORIAL.search(boxed[-1]) else read_number(in_one_form(boxed[-1]))
    plain = in_one_form(text)
    for pattern in (_HASHES, _FIELD):
        found = [one["claim"] for one in pattern.finditer(plain)]
        if found:
            return _claimed(found[-1].strip('"'))
    plain = _BULLET.sub("", _without_list_marks(plain))
    claims, is_denied = _claims(plain)
    for claim in claims:
        return _claimed(claim)
    return (
        None
        if is_denied or (_FACTORIAL.search(plain) and not _WORD.search(plain))
        else _concluded(plain, text)
    )


def _claims(text: str) -> tuple[list[str], bool]:
    """What is said to be the answer, the last one first, and whether something is said not to be it."""
    claims, is_denied = [], False
    for found in _STATEMENT.finditer(text):
        rest = text[found.end() : found.end() + _MAX_SENTENCE].lstrip(" \t*_:=")
        claim = next((line for line in rest.splitlines() if line.strip()), "")
        claim = _SENTENCE_END.split(claim, maxsplit=1)[0]
        if _DENIED.match(claim):
            is_denied = True
        elif claim.rstrip().endswith("?"):
            continue
        elif has_number(claim):
            claims.append(claim)
    return claims[::-1], is_denied


def _claimed(claim: str) -> WrittenNumber | None:
    """The number of a claim without its reason and its remarks."""
    for candidate in _candidates(claim):
        if has_number(candidate):
            return read_number(candidate)
    return None


def _candidates(claim: str) -> Iterator[str]:
    without_remarks = _REMARK.sub("", claim)
    for text in (without_remarks, claim):
        yield _REASON.split(text, maxsplit=1)[0]
    yield claim


def _concluded(plain: str, text: str) -> WrittenNumber | None:
    """The number of the last sentence that has one."""
    if _has_several_entries(plain):
        return None
    for whole in _sentences_from_the_end(plain):
        is_aside = _ASIDE.match(whole) or whole.rstrip().endswith("?")
        if is_aside or len(whole) > _MAX_SENTENCE or not has_number(whole):
            continue
        without_remarks = _REMARK.sub("", whole)
        sentence = without_remarks if has_number(without_remarks) else whole
        leads = [found.end() for found in _LEADS_ON.finditer(_REASON.split(sentence, maxsplit=1)[0])]
        # A step of a list concludes nothing by itself.
        if sentence.lstrip().startswith(_ITEM) and not leads and "=" not in sentence:
            return None
        starts = [0, *leads]
        for start in reversed(starts):
            if has_number(sentence[start:]):
                read = _claimed(sentence[start:])
                break
        else:
            read = None
        return read or _emphasised(sentence, text)
    return None


def _has_several_entries(text: str) -> bool:
    """A list of named values without a sum at its end: which of them is the answer is not said."""
    entries = [*_ENTRY.finditer(text)]
    is_at_the_end = bool(entries) and not text[entries[-1].end() :].strip()
    if len(entries) < 2 or not is_at_the_end or _SUM.search(entries[-1]["label"]):
        return False
    last = [read_number(entry["value"]) for entry in entries[-2:]]
    return last[0] is not None and last[1] is not None and last[0].value != last[1].value


def _emphasised(sentence: str, text: str) -> WrittenNumber | None:
    """The number in bold at the start or the end of the sentence."""
    for bold in _BOLD.findall(text):
        form = in_one_form(bold).strip()
        if sentence.strip().startswith(form) or sentence.strip(" .!\n").endswith(form):
            read = read_number(form)
            if read is not None:
                return read
    return None


def _sentences_from_the_end(text: str) -> Iterator[str]:
    ends = [0, *(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]
    for start, end in zip(reversed(ends[:-1]), reversed(ends[1:]), strict=True):
        if text[start:end].strip():
            yield text[start:end]


def _without_list_marks(text: str) -> str:
    """The marks of a list that counts from 1; "14. It is so" keeps its number."""
    expected = 1

    def removed(found: re.Match[str]) -> str:
        nonlocal expected
        if int(found["number"]) not in (1, expected):
            return found[0]
        expected = int(found["number"]) + 1
        return _ITEM

    return _LIST_MARK.sub(removed, text) if _LIST_MARK.search(text) else text
