"""Sentences that state an answer, in the languages in which models are asked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.results.scoring.answer_words import REACH, begins_a_word, has_one_of, one_of, stated_abroad

_BEST = frozenset(
    {"final", "correct", "right", "best", "single", "overall", "most", "appropriate", "likely", "accurate"}
    | {
        "suitable",
        "only",
        "good",
        "predicted",
        "selected",
        "chosen",
        "safest",
        "strongest",
        "closest",
        "nearest",
    }
    | {"clearest", "likeliest", "soundest", "recommended", "intended", "ideal", "optimal", "preferred"}
)
_DETERMINERS = frozenset({"the", "my", "this", "its", "our", "a"})
_BEST_WORDS = f"(?:(?:{'|'.join(sorted(_BEST))}) ){{0,4}}"
_NOUN = (
    "(?:ans(?:wer)?|option|choice|label|response|classification|category|sentiment|relation|relationship|letter"
    "|selection|exception|guess|pick|verdict|prediction|solution|result|decision)"
)
# Before a colon these name a field of the question.
_SUBJECT = "(?:statement|hypothesis|claim|sentence|review|tone|one)"
_SURELY = (
    "(?: (?:clearly|definitely|therefore|thus|hence|then|indeed|probably|grammatically|(?:most )?likely"
    "|an? (?:clear|definite|resounding|firm|strong|simple)))?"
)
_IS = f" (?:is|must be|should be|would be|will be|has to be|would have to be){_SURELY}(?: (?:one|that) of)?"
IT_IS = (
    "(?:it is|it's|this is|it must be|it has to be|that is|that's|(?:that|it) would be) "
    "(?:(?:clearly|definitely|most likely) )?"
)
SO = one_of(
    "(?:and )?so|thus|therefore|hence|finally|overall|in conclusion|in summary|conclusion",
    r"(?:based on|according to|given) [^,.:;?!\n]{1,60}",
)
_ASIDE = "(?:, (?:then|therefore|thus|of course|in this case|as expected|clearly),)"
# No other words: "the answer to avoid", "the option to eliminate".
_OF_WHAT = one_of(
    "(?:to|for|of) (?:the|this|your|that) (?:(?:above|given|following|multiple[- ]choice) )?"
    "(?:question|problem|passage|review|text|statement|sentence|movie|film|tweet)",
    "between (?:the|these)(?: (?:two|premise|hypothesis|sentences?|statements?|and|the)){1,6}",
    "here",
    "(?:of|for) (?:the|my) (?:correct|right|best|chosen|selected) (?:answer|option|choice)",
    "among (?:these|the options|the choices)",
    "(?:among|from|of) (?:the|these|those)(?: (?:given|provided|available|listed|four|five|above))?"
    " (?:options|choices|ones)(?: (?:given|provided|available|listed|above))?",
    r"that (?:best|most \w+ly|correctly|accurately) [^.,:;?!\n]{1,60}",
    "that (?:makes the most sense|fits(?: best)?)",
    "(?:that )?i(?: would|'d)? (?:choose|chose|select|selected|pick|picked)",
)
# Patterns of folded text begin with what sets them apart, without flags: so they are searched fast.
_STATED = re.compile(
    rf"(?:{_NOUN}(?: {_OF_WHAT})?(?: \([^()\n]{{1,40}}\))?(?:{_ASIDE}?{_IS} ?:?| ?[=:→]|(?<=ans)\.| ?-(?= ))"
    rf"|vote (?:goes to|is for)|(?P<subject>{_SUBJECT})(?: {_OF_WHAT})?{_IS}|(?:final|correct) ?:)[ \t]*"
)
_I_SAY = re.compile(
    r"i(?:'d|'ll|'m| would| will| am)?(?: \w{2,12}ly)? (?:(?:choose|pick|select|say|answer"
    r"|go with|going with"
    r"|opt for|guess|think|believe|conclude|suspect)(?: that)?(?: (?:it is|it's|it must be))? ?:?"
    r"|(?:classify|label|rate|mark|call|consider) (?:this|it)(?: review| statement)? as)[ \t]*"
)
# A conclusion in few words ends with its choice: "Thus, B."
_IT_WAS = r"(?: [^.;,:\n]{1,60})?(?:[;,:]| -) (?:but |rather |instead )?(?:it is|it's|it was) "
_REPLACED = re.compile(
    rf"not(?:{_IT_WAS}| (?!only|just|merely|simply|quite|sure)[^.;,:\n]{{1,40}},? but (?:rather |instead )?)"
)
_IS_REPLACED = re.compile(rf"isn't{_IT_WAS}")
_WE_SAY = re.compile(
    r"(?:we|you (?:should|must|need to)) (?:choose|pick|select|mark|conclude"
    r"|go with)(?: that)?(?: (?:it is|it's))? ?:?[ \t]*"
)
_THUS = re.compile(rf"(?:so|thus|therefore|hence)[,:]?[ \t]+(?:{IT_IS})?")
_OTHERS = (
    (_I_SAY, ("i ", "i'")),
    (_WE_SAY, ("we ", "you should", "you must", "you need to")),
    (_THUS, ("so", "thus", "therefore", "hence")),
    (_REPLACED, ("not",)),
    (_IS_REPLACED, ("isn't",)),
)
# Behind these a sentence may go on; before these it denies.
_GO_ON, _DENY_FIRST = (_I_SAY, _WE_SAY), (_REPLACED, _IS_REPLACED)
# Behind the name of a choice.
_IS_RIGHT = one_of(
    r" it is(?=[.!\n]|\Z)",
    r" (?:(?:alone )?(?:gets my vote|remains|wins|prevails|comes out (?:on top|ahead)|is the winner|takes it"
    r"|edges it out)(?: (?:out|here|this one))?(?=[.!,\n]|\Z)"
    r"|(?:fits|matches|describes|answers|explains|captures)(?: (?:the|this|all))?(?: [\w-]+){0,3}"
    r" (?:best|perfectly|exactly|correctly)(?=[.!,\n]|\Z)"
    r"|(?:correctly|accurately|best) (?:describes|explains|states|identifies|answers|captures|reflects"
    r"|summari[sz]es)(?: [\w-]+){0,8}(?=[.!\n]|\Z))",
    r" (?:makes (?:the most|perfect) sense|is the way to go|(?:looks|appears|seems) (?:to be )?"
    r"(?:correct|right)(?: to me)?|states the (?:right|correct) \w+)(?=[.!\n]|\Z)",
    r" is what (?:you|we)(?:'re| are)? (?:want|need|looking for)\b",
    r" the (?:correct|right|best) (?:answer|option|choice)(?=[.!\n]|\Z)",
    " (?:alone )?(?:is|seems|would be)"
    "(?: (?:the|clearly|definitely|therefore|thus|indeed|only|probably|(?:most )?likely)){0,3} "
    r"(?:(?:most )?(?:correct|right|best|appropriate|accurate)(?: (?:answer|option|choice|one|response))?"
    "|better (?:answer|option|choice|fit)"
    r"|only (?:one|option|choice|answer|value) (?:that|which) (?!(?:is|are|does|do|can"
    r"|has)(?:n't)?\b)\w+(?=[^,;\n]{0,60})"
    r"|answer)\b",
    r" (?:es|est|è|é|está)(?: (?:la|a|l'|o)){0,1} ?(?:respuesta |opción |réponse |bonne |risposta "
    r"|resposta |opção )?"
    r"(?:correct[ao]|correcte|corrett[ao]|corret[ao]|réponse|giusta|certa|esatta)\b",
    r" ist(?: die)? (?:richtig|korrekt)(?:e(?: antwort| option)?)?\b",
    r" is(?: het| de)? (?:juist|correct)(?:e(?: antwoord| optie| keuze)?)?\b",
    " ?(?:选?项|選?項)?(?:是|为|為)?(?:正确|正確)(?:的|答案|选项)?",
    " ?(?:が|は)(?:正しい(?:です)?|正解(?:です)?)",
    " ?(?:가|이|번이) ?(?:정답|맞|옳)(?:입니다|습니다|다)?",
    r" (?:является правильным|верен|верный|правильный)(?: ответом)?\b",
    " (?:सही )(?:उत्तर |विकल्प )?(?:है)",
    r" (?:richtig|korrekt)(?=[.!\n]|\Z)",
    r" (?:doğrudur|doğru(?: cevaptır| yanıttır)?)\b",
    " (?:هو|هي) (?:الإجابة |الخيار )?(?:الصحيحة?|الصواب)",
)
_SUFFIX = (
    r"(?:の「[^」\n]{1,40}」)?(?:です|である|だ(?!と)|になります|となります|입니다|이다|이에요|예요|번(?:입니다)?|"
    r"'?[dt][iıuü]r\b| şıkkı(?:dır)?\b| (?:wählen|nehmen|sagen)\b| here(?=[.,!\n]|\Z)"
    r"| seçeneği(?:dir)?\b| है| hai\b|选?项|選?項)"
)
TAIL = re.compile(rf"(?P<is_right>{_IS_RIGHT})?{_SUFFIX}?", re.IGNORECASE)
IS_RIGHT = re.compile(_IS_RIGHT, re.IGNORECASE)
_IS_RIGHT_FOLDED = re.compile(_IS_RIGHT)
_WORDS_OF_RIGHT = (
    *(
        "it is",
        "is what",
        "sense",
        "the way to go",
        "win",
        "my vote",
        "remains",
        *("perfectly", "exactly", "accurately"),
        "prevail",
        "comes out",
        "takes it",
        "edges it",
        *("only one", "only option", "only choice", "only answer", "only value"),
        *("better answer", "better option", "better choice", "better fit"),
        "correct",
        "right",
        "best",
        "most",
        "answer",
        "corret",
        "réponse",
        "giusta",
        "certa",
        "esatta",
        "richtig",
    ),
    *(
        "korrekt",
        "juist",
        "正",
        "정답",
        "맞",
        "옳",
        "правильн",
        "верен",
        "верн",
        "सही",
        "doğru",
        "الصحيح",
        "الصواب",
    ),
)
# A heading that says what its next line is.
HEADING = re.compile(
    rf"^[#> \t]*((?:(?:the|my) )?{_BEST_WORDS}(?:answer|choice|option|response|conclusion)"
    r"|(?:最终|正确)?答案|(?:richtige )?antwort|respuesta(?: correcta| final)?|réponse(?: finale)?"
    r"|risposta|resposta"
    r"|ответ|정답|答え|正解) ?[:.]?[ \t]*\n\s*(?:[=-]{3,}[ \t]*\n\s*)?",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """Words behind which a choice is expected. `is_short`: nothing but the end of the sentence follows it."""

    start: int
    end: int
    leads_in: bool = True
    is_short: bool = False


def statements(folded: str) -> Iterator[Statement]:
    """Statements in a folded text, whoever makes them."""
    for found in _STATED.finditer(folded):
        start = _with_words_before(folded, found.start())
        if start is not None and (not found["subject"] or start < found.start()):
            yield Statement(start, found.end())
    for pattern, words in _OTHERS:
        for found in pattern.finditer(folded) if has_one_of(folded, words) else ():
            if begins_a_word(folded, found.start()):
                leads_in = pattern not in _DENY_FIRST
                yield Statement(found.start(), found.end(), leads_in, is_short=pattern not in _GO_ON)
    for found in stated_abroad(folded):
        yield Statement(found.start(), found.end(), leads_in=False)


def may_say_right(folded: str) -> bool:
    """Whether a choice is said to be right at all."""
    return has_one_of(folded, _WORDS_OF_RIGHT) and _IS_RIGHT_FOLDED.search(folded) is not None


def _with_words_before(folded: str, at: int) -> int | None:
    """Where "the most likely" before a noun begins; None within a word."""
    if not begins_a_word(folded, at):
        return None
    start = at
    words = folded[max(0, at - REACH) : at].split(" ")
    if not words or words.pop():
        return start
    while words and words[-1] in _BEST:
        start -= len(words.pop()) + 1
    if words and (word := words[-1].rpartition("\n")[2]) in _DETERMINERS | _BEST:
        start -= len(word) + 1
    return start
