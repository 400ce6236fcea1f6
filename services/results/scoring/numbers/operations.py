"""Sentences that tell what is computed and leave its result out: "Then we divide the cost by 4"."""

import re

from services.results.scoring.answer_words import has_one_of
from services.results.scoring.numbers.number_tokens import DIGIT
from services.results.scoring.numbers.written_numbers import WrittenNumber, read_number

_VERB = (
    "(?:add|sum|subtract|deduct|multiply|divide|combine|calculate|compute|determine|find|convert|apply|solve"
    "|round|compare|double|take|set|express|figure|consider|start|identify)"
)
_DOING = (
    "(?:adding|summing|subtracting|deducting|multiplying|dividing|combining|calculating|computing"
    r"|converting|applying|solving|rounding|comparing|doubling|this(?: \w+)? (?:calculation|equation|value"
    "|sum|difference|product|step)|(?:this|that) (?:will )?(?:gives?|leaves?) (?:us|him|her|them|you))"
)
_DONE = (
    "(?:added|summed|subtracted|deducted|multiplied|divided|combined|calculated|computed|determined|found"
    "|converted|applied|solved|rounded)"
)
_OPERATION = re.compile(
    rf"""(?: \b(?:we|you|i|let(?:'s|\sus|\sme))(?:'ll|'d)? \s (?:\w+\s){{0,3}}? (?:{_VERB}|{_DONE})\b
        | \A\W*(?:(?:first|next|then|now|finally|lastly|and|so|therefore|also|step\s\d+\W)[,:]?\s+)*
          (?:to\s[^,.\n]{{3,120}},\s+(?:we\s)?)?{_VERB}\s(?!out\b)
        | (?:,|\band)\s(?:and\s|then\s|finally\s){{0,2}}
          (?:add|sum|subtract|multiply|divide|solve|find\sout|determine|calculate)\b
        | \b(?:is|are|be|was)\s(?:then\s)?{_DONE}\s(?:by|using|as)\b | \b(?:found|obtained)\sby\b
        | \b(?:is|be|equals)\sthe\s(?:sum|difference|product|quotient)\sof\b
        | \b(?:plus|multiplied\sby|divided\sby)\b
        | (?P<doing>(?:\A\W*(?:(?:then|now|finally|so|next),?\s)?|,\s){_DOING}\b) )""",
    re.IGNORECASE | re.VERBOSE,
)
_WORDS = (
    *("dd", "sum", "ubtract", "deduct", "ultipl", "ivid", "combin", "alculat", "omput", "etermin", "find"),
    *("found", "onver", "appl", "olv", "ound", "ompar", "oubl", "take", "set", "xpress"),
    *("his ", "hat ", "igure", "onsider", "start", "dentif", "iffer", "product", "quotient", "plus"),
)
# Behind the operation: what comes out of it. Words of time and place between the two lead elsewhere.
_RESULT = re.compile(
    r"""[=≈→⇒] | :\s*[-$€£]{0,2}\d | \bround\w*\s(?:(?:up|down)\s)?to\s[$€£]?\d
        | \bbrings?\b[^.\d]*\bto\s[$€£]?\d
        | \b(?: giv(?:es?|ing) | gets? | got | getting | yield(?:s|ing)? | equal(?:s|ing)? | equal\sto
              | result(?:s|ing)?\sin | is | are | was | were | be | have | has | had | leav(?:es?|ing)
              | becom(?:es?|ing) | com(?:es|ing)\sto | mak(?:es?|ing) | total(?:s|ing|ed|\sof)
              | obtain(?:s|ing)?
              | find | found | see | so | thus | therefore | hence | simplif(?:y|ies|ying)\sto | about )
          (?:\s(?!(?:to|by|from|for|in|with|per|after|over|than|plus)\b)[a-z']+){0,6}?\s[-$€£~]{0,3}\d""",
    re.IGNORECASE | re.VERBOSE,
)
_WHICH_IS = re.compile(r"\bwhich (?:is|are|was|were)\b", re.IGNORECASE)
_AFTER_COMMA = re.compile(r"[^,]*,\s[^,]*\d")
_COMES_OUT = re.compile(
    r"(?:\bto (?:get|obtain)|, which (?:equals|is(?: equal to)?|gives|makes|comes to|results in)"
    r"|, giving|, getting"
    r"|\bto find(?: out)? that [^.,=\d]*)(?: us| you| a| an| total| of| result){0,4} "
    r"(?P<value>-?[$€£]?\d[\d,]*(?:\.\d+)?%?(?: ?[a-z/]+){0,4})\W*\Z",
    re.IGNORECASE,
)
# "We found 15 solutions" and "you should take 2 tablets": no operands, other than in "we find 20% of it".
_IS_OBJECT = re.compile(
    r"(?:(?:(?<!to\s)(?<!can\s)(?<!must\s)(?<!let's\s)(?:find|calculate|compute|determine)|found"
    r"|(?:calculated|computed|determined)(?:\s(?:as|to\sbe))?)\s(?:(?:a|the)\stotal\s(?:of|as)\s|the\s\w+\sas\s)?"
    r"|\b(?:you|she|he|they|i)(?:'d)?\s(?:(?:can|could|may|must|should|will|would|need\sto|needs\sto|ha(?:ve|s)\sto)\s)?"
    r"(?:take|start\swith|add|find)\s)"
    r"[-$€£]{0,2}\d[\d,.]*(?![\d,.]*\s?%)(?!/\d)"
    r"(?!\s(?:of|times|plus|minus|and|from|to|by|away|off|per\s?cent|percent)\b)\D*\Z"
    r"|\bround\s(?:\S+\s)?(?:(?:up|down|off)\s)?to\s[$€£]?\d[\d.,]*(?:\s[a-z]+)?\W*\Z"
    r"|\bdouble\s(?:\w+\s){0,2}to\s[$€£]?\d\S*(?:\s[a-z]+)?\W*\Z",
    re.IGNORECASE,
)
# Behind a number: "$60, found by multiplying hours by the rate".
_WAY = re.compile(
    r"(?:, (?:found|obtained|calculated|computed|derived) by [^=:]*|\s?\([^()\d=]*\))(?=\W*\Z)",
    re.IGNORECASE,
)
_PURPOSE = re.compile(r"\bto (?:find|determine|calculate|compute|see|know)\b[^,.:=]*", re.IGNORECASE)


def result_of_operation(sentence: str) -> WrittenNumber | None:
    """What an operation is said to come to: "we divide $2,640 by 24 to get $110"."""
    if not has_one_of(sentence, _WORDS):
        return None
    found = _COMES_OUT.search(sentence)
    operation = _OPERATION.search(sentence, 0, found.start()) if found else None
    if found is None or operation is None or not DIGIT.search(sentence, operation.end(), found.start()):
        return None
    return read_number(found["value"])


def without_way(sentence: str) -> str:
    """Without how the number of a sentence was computed, where that is told behind it."""
    shorter = _WAY.sub("", sentence)
    return shorter if shorter != sentence and DIGIT.search(shorter) else sentence


def leaves_result_out(sentence: str) -> bool:
    """Whether the last thing that a sentence tells is an operation, with no number that comes out of it."""
    if not has_one_of(sentence, _WORDS):
        return False
    operations = [*_OPERATION.finditer(sentence)]
    if not operations or _IS_OBJECT.search(sentence):
        return False
    last = operations[-1]
    behind = _PURPOSE.sub("", sentence[last.end() :])
    if not DIGIT.search(behind):
        return True
    if last["doing"] and _AFTER_COMMA.match(behind):
        return False
    # "By the number of rooms, which is 80": an operand.
    operand = _WHICH_IS.search(behind)
    if operand and not DIGIT.search(behind, 0, operand.start()):
        behind = behind[operand.end() :]
    return not _RESULT.search(behind)
