"""The conclusion of an answer: the number of its last sentence that has one."""

import re
from collections.abc import Iterator

from services.results.scoring.answer_words import COURTESY, has_one_of
from services.results.scoring.numbers.claims import (
    claimed,
    may_turn,
    summed,
    without_purpose,
    without_reason,
    without_remarks,
)
from services.results.scoring.numbers.counts import count_of_things, without_rounded
from services.results.scoring.numbers.entries import has_several_entries
from services.results.scoring.numbers.guesses import is_guessed
from services.results.scoring.numbers.named_things import is_of_a_name
from services.results.scoring.numbers.number_forms import in_one_form
from services.results.scoring.numbers.number_tokens import DIGIT, has_number
from services.results.scoring.numbers.operations import leaves_result_out, result_of_operation, without_way
from services.results.scoring.numbers.written_numbers import WrittenNumber, read_number

# Neither "i.e. 12" nor the factorial in "4! = 24".
# It begins with one character of a few, so that it is searched fast.
_ASCII_END = (
    r"[\s\"')\]](?:(?<=[.!?].)(?<!i\.e\..)(?<!e\.g\..)(?<!approx\..)(?<!\bno\..(?=\d))(?<!\bNo\..(?=\d))"
    r"(?!(?<=\d!\s)\s*[=/×*+÷-])[\s\"')\]]*(?=\S)|(?<=\n)\n*)"
)
_SENTENCE_END = re.compile(_ASCII_END, re.DOTALL)
_ANY_SENTENCE_END = re.compile(rf"{_ASCII_END}|(?<=[。！？])", re.DOTALL)
_LEADS_ON = re.compile(
    r"""(?<!\w) (?: so | therefore | thus | hence | altogether | (?<!to\s)makes? | gives? | got
        | obtain(?:s|ed)? | yields? | result(?:s|ing)?\sin
        | (?<!to\s)gets?(?!\s+(?:to|there|here|home|back|in|out|up)\b) | equals?
        | totals? | leaves | leaving | is | are | was | were | (?<!to\s)be
        | ist | est | es | è | é )(?!\w)
        # "18 tiles are needed for 36 square feet": what the count is for.
        (?!(?:(?<=\bare)|(?<=\bwere)|(?<=\bis))\s(?:needed|required|used|sold|shared|split|divided|made|filled|enough)
          \s(?:for|among|between|by|in|into|from|to|with)\s(?:the\s)?\d)
        | (?<!\d\s):(?=\s) | [⇒→∴] | 因此 | 所以 | 一共 | 总共 | 共 | 合計 | 是 | は""",
    re.IGNORECASE | re.VERBOSE,
)
# Beside courtesies: checks, and remarks on the answer.
_REMARK = re.compile(
    r"""\W* (?: indeed
        | (?:(?:i|we)(?:'ve|\shave|\scan)?|let\s?(?:'s|us|me))\s
          (?:\w+\s)?(?:double[- ]?)?(?:check|verif|confirm|us)\w*
        | (?:to\s)?(?:check|verif)\w* | (?:by\s)?(?:substitut|plugging)\w*
        | (?:confidence|certainty|probability|sources?|reference|note|explanation|reasoning|hint|ps|p\.s\.) \b
        | this\s(?:assumes|uses) )""",
    re.IGNORECASE | re.VERBOSE,
)
_PUTS_IN = re.compile(
    r"\W*(?:by )?(?:substitut|plugging)\w*[^\n]*"
    r"\b(?:gets?|gives|find|have|obtain|yields) (?:that )?[^\W\d_]\w{0,2} ?=",
    re.IGNORECASE,
)
_NUMBER_WORD = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty)\b",
    re.IGNORECASE,
)
_NONE_LEFT = re.compile(r"\b(?:no|none|zero|nothing)\b[^.\n]{0,80}\b(?:left|remain\w*)\b", re.IGNORECASE)
_SO_NONE = re.compile(
    r"\b(?:so|thus|hence|therefore)\b[^.\d\n]{0,80}\b(?:no|none|nothing)\b[^.\d\n]{0,80}\b(?:left|remain\w*)\b\D*\Z",
    re.IGNORECASE,
)
# No conclusion is drawn, or one is denied.
_REFUSES = re.compile(
    r"""(?<!\bwho\s)(?<!\w\sthat\s)\b(?: cannot | can(?:'t|\snot) | could(?:n't|\snot)
        | (?:not|n't)\s(?:\w+\s)?(?:enough|possible|sufficient|know)
        | would\sneed\s(?:\d+\s)?(?:more|to\sknow|additional\sinf|further)
        | i\sneed\s(?:\d+\s)?more\s(?:pieces?\sof\s)?(?:inf|data|details|context)\w*
        | here\s(?:are|is)\s(?:the\s|some\s)?\d+\s(?:\w+\s)?(?:ways|steps|reasons|options|tips|examples|things
          |methods|approaches|ideas|facts|points)
        | please\s(?:provide|clarify|share) | sorry
        | (?:the|this)\s(?:question|problem|task|exercise)\s(?:has|asks|contains|consists|says|states|mentions
          |requires|gives)
        | (?<=\A)undefined | (?:expression|limit|value|answer|result|slope|it)\sis\sundefined
          (?!\s(?:is|are)\b)
        | (?:there\s(?:is|are)\s|\A\W*)no\s(?:real\s|integer\s|valid\s)?(?:answer|solution)s?
          (?![^\n]*\b(?:so|thus|hence|therefore)\b)
        | \A\W*division\sby
        | insufficient | unable | impossible | undetermined | unknown | incorrect | wrong | as\san\sai )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NONE_EXISTS = re.compile(
    r"\b(?:limit|answer|solution|value|number|integer|maximum|minimum|it) does(?: not|n't) exist\b"
    r"(?![^\n]*\b(?:so|thus|hence|therefore)\b)",
    re.IGNORECASE,
)
_WORDS_OF_REFUSALS = (
    *(
        "need",
        "please",
        "sorry",
        "can",
        "could",
        "not",
        "n't",
        "sufficient",
        "unable",
        "possible",
        "undetermined",
        "unknown",
    ),
    *("incorrect", "wrong", "as an", "question", "problem", "task", "exercise", "here are"),
    *("undefined", "no answer", "solution", "division"),
)
_DENIES = re.compile(
    r"\b(?:is|was|(?<!\bthat )(?<!\bwho )(?<!\bwhich )(?:are|were))(?:\snot|n't)\b", re.IGNORECASE
)
_DIGITS = re.compile(r"\d[\d.,]*")
_DENIES_NUMBER = re.compile(
    r"\A\W*(?:\w+ly )?(?:not|no|nicht|non|não|pas|niet|nie)\s(?=\S?\d)"
    r"|(?:['’](?:s|re)|\b(?:is|are|was|were))\s(?:\w+ly\s)?(?:not|never|hardly)\s\S?\d|(?:\bno\ses|\bnon\sè|\bnão\sé"
    r"|\bn'est\spas|\bist\snicht|\bis\sniet|\bnie\sjest|\bне"
    r"|不是|并非|並非)\s?\S?\d|\d\S{0,8}?\s?(?:ではない|ではありません|じゃない|(?:이|가)\s?아니|değil)",
    re.IGNORECASE,
)
# Behind the last number: "18. No." and "18. Hmm, or 20?"
_WAVERS = re.compile(
    r"\W*(?:(?:no|nope|wrong|incorrect)\W*\Z|(?:hmm+|or|wait|maybe|perhaps)\b[^\n]*\d[^\n]*\?\W*\Z)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"(?:while|whereas|or)\b")
# Of things that are counted: "= 40 girls are not in it".
_SAYS_OF_WHAT = re.compile(r"= ?\S{0,2}\d[\d,.]*%? (?:[a-z]+ ){1,5}(?:are|were)(?= not\b)", re.IGNORECASE)
# Two facts in one sentence: the width is 5 and the length is 6.
_FACT = re.compile(r"\b(?:is|are|was|were|gets|has|receives|pays|needs)\b[^.]*\d", re.IGNORECASE)
_AND = re.compile(r"\band\b", re.IGNORECASE)
ITEM = "\N{BULLET}"
_COMPUTES = re.compile(r"[\d)\w%]\s*[+*/×x÷\u2013-]\s*[$€£]?\s?[\d(.]|\d%? of |\d! ")
_VARIABLE = re.compile(r"(?<![\w'])\d*[b-z]\s?[-+*/]\s?\d|\d\s?[-+*/]\s?\d*[b-z](?![\w'])")
_SUMS_UP = re.compile(r"\b(?:so|thus|therefore|hence|total|altogether)\b", re.IGNORECASE)
# "Ann needs 5 and Bob needs 7, so they need 12".
_SO = re.compile(r"[,;] (?:and )?(?:so|thus|therefore|hence)\b", re.IGNORECASE)
_RESULT = re.compile(r"\s*[-$€£(]{0,3}\d[\d,.]*(?:/\d+)?")
_STATES = (
    r"\b(?:is|are|was|were|has|have|had|and|or|but|so|plus|more|less|leav\w+|left|mak\w+|giv\w+|get\w*"
    r"|which|then)\b"
)
_OF_WHAT = re.compile(
    r"\b(?:in|of|from|for|after|during|over|per|within|by|on|at)(?:\s(?:the|all|these|those|his|her|their))?"
    r"(?:\s(?:first|last|final|next|other|remaining))?\s\$?\Z"
    # "= 5 hours to read 120 pages": no verb follows that would state another one.
    rf"|\b(?:to [a-z]+|for|before|that the|(?:by|from) [a-z]+ing)\b(?:(?!{_STATES})[^,.;:=\d])*\Z"
)
# "As each costs $3, the total is $60": what follows it concludes.
_REASON_FIRST = re.compile(
    r"\W*(?:as|since|because|given)\b(?:(?!\b(?:cannot|can't|not|unknown)\b)[^,\n=]|,(?=\d))*,\s+"
    r"(?!(?:and|but|or)\b)(?=[^,\n]*\d)",
    re.IGNORECASE,
)
_ROUNDED = re.compile(
    r"(?:,? (?:which|this|that) (?:is |can be |must be )?round(?:s|ed)|\d rounds"
    r"|\bwe (?:(?:must|can|should|need to|have to) )?round(?: it| this| that| \$?\d[\d.,]*)?)"
    r"(?: up| down| off)? to"
    r"(?: approximately| about)? (?P<value>[$€£]?-?\d[\d,]*(?:\.\d+)?%?"
    r"(?: (?!decimal|place|digit|sig|d\.?p|s\.?f)[a-z]+)?)\W*\Z",
    re.IGNORECASE,
)
_FIRST_OF_ALL = re.compile(r"\W*\d[\d.,]*%?(?: [a-z]+)?[.!]?\W*", re.IGNORECASE)
# "By adding 5 and 7, she gets 12": what follows it comes out.
_DOING_FIRST = re.compile(
    r"\W*(?:by |after |when )?(?:adding|subtracting|deducting|multiplying|dividing|combining|converting)\b"
    r"[^,\n=]*,\s+(?!(?:and|then|plus)\b|\S?\d+(?:,| and\b))(?=[^,\n]*\d)",
    re.IGNORECASE,
)
_REASON_ON_NEXT_LINE = re.compile(r"(?<=,)\n(?=(?:since|because|as|which|given)\b)")
# "She finishes in 6th place": no count beside it is the answer.
_PLACED = re.compile(r"\b\d+(?:st|nd|rd|th)\b (?:place|position|spot|rank)\b", re.IGNORECASE)
# The same in another unit: 160 toys in 10 hours, or 16 an hour.
_RESTATES = re.compile(r", (?:or|which|and|so)\b[^.\n]*\d")
_BOLD = re.compile(r"\*\*([^*\n]{1,60})\*\*")
# What only seems so: "You might think it's 7, but it's 8".
_SEEMS = re.compile(
    r"\b(?:you|one|some|many|people|students) (?:might|may|could|would|often) (?:(?:first|initially"
    r"|be tempted to) )?"
    r"(?:think|say|guess|expect|assume|answer)\b[^.;!?\n]{0,80}?,? but (?=\S)",
    re.IGNORECASE,
)
_WORDS_OF_SEEMING = ("think", "say", "guess", "expect", "assume", "answer")
# An equation beside its solution, as in "so 2x = 16 and x = 8".
_SOLVED = re.compile(
    r"(?:\b(?:so|and|thus|therefore|hence|then|gives|get|yields|that)"
    r"|[⇒→,])\s(?P<name>[a-z]) ?= ?(?P<value>-?\d[\d.,/]*\d|-?\d)[.\s]*\Z"
)
_OF_VARIABLE = re.compile(r"(?<![\w.])[a-z] ?= ?-?\d")
_OTHER_VARIABLE = re.compile(r"(?<![A-Za-z'])[b-z](?![A-Za-z'])")
MAX_SENTENCE = 2000  # A longer one is the repeats of a model that has lost itself.


def concluded(plain: str, text: str) -> WrittenNumber | None:
    """`plain` is the text in one form. None where the last sentence with a number states not plainly one."""
    if has_several_entries(plain):
        return None
    plain = _REASON_ON_NEXT_LINE.sub(" ", plain)
    for whole in _sentences_from_the_end(plain):
        if len(whole) > MAX_SENTENCE:
            continue
        if _is_in_words(whole) or _may_be_a_result(whole) or _WAVERS.match(whole) or _GOES_ON.match(whole):
            return None
        told = without_way(whole)
        if leaves_result_out(told):
            return _above(plain)
        is_aside = COURTESY.match(whole) or _REMARK.match(whole) or whole.rstrip().endswith("?")
        if not is_aside and has_number(whole):
            sentence = without_remarks(told)
            if " but " in sentence and has_one_of(sentence, _WORDS_OF_SEEMING):
                sentence = _SEEMS.sub("", sentence)
            solved = _solved(sentence) if sentence.count("=") > 1 else None
            if solved is not None:
                return solved
            return _concluding(sentence) or _emphasised(sentence, text)
    return None


def _above(text: str) -> WrittenNumber | None:
    """The number that an answer begins with, where only its computation follows: "$12. We add 4 to 8"."""
    first = first_sentence(text)
    if not _FIRST_OF_ALL.fullmatch(first) or not leaves_result_out(
        first_sentence(text[len(first) :].lstrip())
    ):
        return None
    return claimed(first)


def _solved(sentence: str) -> WrittenNumber | None:
    """The value of the one variable that a sentence solves for."""
    found = _SOLVED.search(sentence)
    if found is None or _OF_VARIABLE.search(sentence, 0, found.start()):
        return None
    names = {*_OTHER_VARIABLE.findall(re.sub(r"(?<=\d)(?=[a-z]\b)", " ", sentence))}
    return read_number(found["value"]) if names == {found["name"]} else None


def _is_in_words(sentence: str) -> bool:
    """Whether a sentence concludes with a number in words: "It is taller, so it took three days"."""
    if DIGIT.search(sentence):
        return _SO_NONE.search(sentence) is not None
    return (
        bool(_SUMS_UP.search(sentence) and _NUMBER_WORD.search(sentence))
        or _NONE_LEFT.search(sentence) is not None
    )


def _may_be_a_result(sentence: str) -> bool:
    """Whether a value that is put in gives a check or a result: "Substituting, we get b = 96"."""
    return _PUTS_IN.match(sentence) is not None and has_number(sentence)


def _concluding(sentence: str) -> WrittenNumber | None:
    if "th " in sentence and _PLACED.search(sentence):
        return None
    outcome = count_of_things(sentence) or _rounded(sentence) or result_of_operation(sentence)
    if outcome is not None:
        return outcome
    sentence = without_purpose(sentence)
    head = without_reason(sentence)
    reason = _DOING_FIRST.match(sentence)
    if reason is None and not DIGIT.search(head):
        reason = _REASON_FIRST.match(sentence)
    return _concluding(sentence[reason.end() :]) if reason else _of_head(sentence, head)


def _rounded(sentence: str) -> WrittenNumber | None:
    found = _ROUNDED.search(sentence) if "round" in sentence else None
    return read_number(found["value"]) if found else None


def _of_head(sentence: str, head: str) -> WrittenNumber | None:
    """`head`: the sentence without its reason."""
    if "/" in head:
        sentence, head = without_rounded(sentence), without_rounded(head)
    if _draws_none(sentence, head):
        return None
    if _has_two_facts(head):
        last = _AND.split(sentence)[-1]
        concluding = _SO.search(last)
        summed_up = computed(sentence) if _SUMS_UP.search(last) else None
        return summed_up or (
            _of_head(last[concluding.end() :], last[concluding.end() :]) if concluding else None
        )
    result = computed(sentence)
    if result is not None and head == sentence and not may_turn(sentence):
        # Other numbers of the sentence agree with it, or are not plain.
        return result
    total = summed(head)
    if total is not None and result is None:
        return total
    leads = [found.end() for found in _LEADS_ON.finditer(head)]
    # A step of a list concludes nothing by itself.
    if sentence.lstrip().startswith(ITEM) and not leads and "=" not in sentence:
        return None
    start = next((start for start in reversed(leads) if has_number(sentence[start:])), 0)
    claim = None if is_of_a_name(sentence, start) else claimed(sentence[start:])
    if claim is None or result is None:
        return claim or result
    return claim if claim.value == result.value else None


def computed(sentence: str) -> WrittenNumber | None:
    """The result of the computation that a sentence ends with: "in 5 days he has 30 - 12 = 18 eggs"."""
    if "=" not in sentence:
        return None
    left, _, right = sentence.rpartition("=")
    first = _RESULT.match(right)
    if (
        not first
        or not _COMPUTES.search(left)
        or _is_relation(left)
        or _is_unsolved(left)
        or _AND.search(left.partition("=")[2])
    ):
        return None
    later = DIGIT.search(right, first.end())
    result = right[: later.start()] if later else right
    if later and result.endswith((" or ", " or $")):
        return None
    if later and _RESTATES.search(right, later.end()):
        return None
    # Another number only says of what, or in what time: "9 points in the 40 minutes".
    return read_number(result) if later is None or _OF_WHAT.search(result) else None


def _is_unsolved(left: str) -> bool:
    """Whether the equation holds a variable: "n + 5 = 12"; a formula has more sides."""
    return "=" not in left and _VARIABLE.search(left) is not None


def _is_relation(left: str) -> bool:
    return left.endswith(("<", ">", "!", ":"))


def denies_number(sentence: str) -> bool:
    """Whether its only number is said not to be it, in one of several languages."""
    return _DENIES_NUMBER.search(sentence) is not None and len(_DIGITS.findall(sentence)) == 1


def _draws_none(sentence: str, head: str) -> bool:
    if denies_number(sentence) or ("exist" in sentence and _NONE_EXISTS.search(sentence)):
        return True
    folded = sentence.casefold()
    if is_guessed(folded, sentence):
        return True
    if not has_one_of(folded, _WORDS_OF_REFUSALS):
        return False
    if not DIGIT.search(head) and _REFUSES.search(re.split(r"\d", sentence)[-1]):
        # Behind a reason that comes first: "Given 20 apples, I cannot say".
        return True
    denied = _SAYS_OF_WHAT.sub("", sentence) if "=" in sentence else sentence
    # "Could not" is no reason, which begins behind the head.
    return bool(_REFUSES.search(sentence[: len(head) + len(" not")]) or _DENIES.search(denied))


def _has_two_facts(sentence: str) -> bool:
    return "and" in sentence.casefold() and sum(bool(_FACT.search(part)) for part in _AND.split(sentence)) > 1


def _emphasised(sentence: str, text: str) -> WrittenNumber | None:
    """The number in bold at the start or the end of the sentence."""
    for bold in _BOLD.findall(text):
        form = in_one_form(bold).strip()
        if sentence.strip().startswith(form) or sentence.strip(" .!\n").endswith(form):
            read = read_number(form)
            if read is not None and not is_of_a_name(sentence):
                return read
    return None


def first_sentence(text: str) -> str:
    return _pattern_of_ends(text).split(text, maxsplit=1)[0]


def _pattern_of_ends(text: str) -> re.Pattern[str]:
    return _SENTENCE_END if text.isascii() else _ANY_SENTENCE_END


def _sentences_from_the_end(text: str) -> Iterator[str]:
    ends = [0, *(found.end() for found in _pattern_of_ends(text).finditer(text)), len(text)]
    for start, end in zip(reversed(ends[:-1]), reversed(ends[1:]), strict=True):
        if text[start:end].strip():
            yield text[start:end]
