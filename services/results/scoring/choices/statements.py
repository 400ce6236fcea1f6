"""Sentences that state an answer, in the languages in which models are asked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from re import Pattern


def any_of(*alternatives: str, before: str = "", after: str = "") -> Pattern[str]:
    """Words, without regard to case."""
    return re.compile(rf"{before}(?:{'|'.join(alternatives)}){after}", re.IGNORECASE)


def one_of(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


_BEST = frozenset(
    {"final", "correct", "right", "best", "single", "overall", "most", "appropriate", "likely", "accurate"}
    | {"suitable", "only", "good", "predicted", "selected", "chosen"}
)
_DETERMINERS = frozenset({"the", "my", "this", "its", "our", "a"})
_BEST_WORDS = f"(?:(?:{'|'.join(sorted(_BEST))}) ){{0,4}}"
_NOUN = (
    "(?:answer|option|choice|label|response|classification|category|sentiment|relation|relationship|letter"
    "|selection|guess|pick|verdict)"
)
# Before a colon these name a field of the question.
_SUBJECT = "(?:statement|hypothesis|claim|sentence|review|tone)"
_SURELY = "(?: (?:clearly|definitely|therefore|thus|hence|then|indeed|(?:most )?likely))?"
_IS = f" (?:is|must be|should be|would be|will be|has to be|would have to be){_SURELY}"
IT_IS = "(?:it is|it's|this is|it must be|it has to be) (?:(?:clearly|definitely|most likely) )?"
SO = one_of(
    "(?:and )?so|thus|therefore|hence|finally|overall|in conclusion|in summary|conclusion",
    r"(?:based on|according to|given) [^,.:;?!\n]{1,60}",
)
# No other words: "the answer to avoid", "the option to eliminate".
_OF_WHAT = one_of(
    "(?:to|for|of) (?:the|this|your|that) (?:(?:above|given|following) )?"
    "(?:question|problem|passage|review|text|statement|sentence|movie|film|tweet)",
    "between (?:the|these)(?: (?:two|premise|hypothesis|sentences?|statements?|and|the)){1,6}",
    "here",
    "among (?:these|the options|the choices)",
)
# Patterns of folded text begin with what sets them apart, without flags: so they are searched fast.
_STATED = re.compile(
    rf"(?:{_NOUN}(?: {_OF_WHAT})?(?:{_IS} ?:?| ?[=:]| ?-(?= ))"
    rf"|(?P<subject>{_SUBJECT})(?: {_OF_WHAT})?{_IS}|final ?:)[ \t]*"
)
_I_SAY = re.compile(
    r"i(?:'d|'ll|'m| would| will| am)?(?: \w{2,12}ly)? (?:(?:choose|pick|select|say|answer|go with|going with"
    r"|opt for|guess|think|believe|conclude|suspect)(?: that)?(?: (?:it is|it's|it must be))? ?:?"
    r"|(?:classify|label|rate) (?:this|it)(?: review| statement)? as)[ \t]*"
)
# A conclusion in few words ends with its choice: "Thus, B."
_REPLACED = re.compile(r"(?:not|isn't) [^.;,\n]{1,60}[;,] (?:but |rather |instead )?(?:it is|it's) ")
_THUS = re.compile(rf"(?:so|thus|therefore|hence)[,:]?[ \t]+(?:{IT_IS})?")
# A language whose sentences Latin letters set apart ends its words; the others go on without a space.
_LATIN = one_of(
    "(?:die )?(?:richtige |korrekte |beste )?antwort(?: (?:ist|lautet)(?: (?:daher|also|somit"
    "|demnach))?)? ?:?",
    "(?:ist|lautet) (?:(?:daher|also|somit|folglich) )?die (?:richtige |korrekte )?antwort ?:?",
    "(?:die )?(?:richtige |korrekte )(?:option|lösung) ist",
    "(?:la )?(?:respuesta|opción|alternativa)(?: (?:final|correcta))?(?: (?:es|sería)| ?:)",
    "(?:a )?(?:resposta|opção|alternativa)(?: (?:final|correta|certa))?(?: (?:é|seria)| ?:)",
    "(?:la )?(?:bonne |meilleure )?réponse(?: (?:finale|correcte|exacte))?(?: est(?: donc)?| ?:)",
    "(?:la )?(?:bonne )?(?:option|proposition)(?: correcte| exacte) est(?: donc)?",
    "(?:la )?(?:risposta|opzione|alternativa)(?: (?:finale|corretta|giusta|esatta))?(?: (?:è|sarebbe)| ?:)",
    "(?:het )?(?:juiste |correcte |goede |beste )?antwoord(?: is(?: dus)?| ?:)",
    "is (?:dus )?het (?:juiste |correcte |goede )?antwoord",
    "(?:de )?(?:juiste |correcte |goede )(?:optie|keuze) is",
    "(?:doğru )?(?:cevap|yanıt|cevabı|yanıtı|seçenek|şık) ?:?",
)
_ARTICLE = (
    r"(?:(?:la|el|a|o|de|l'|le|die|optie|opción|opção|opzione|letra|lettera|lettre|alternativa|antwort)"
    r"(?: |(?<=l'))){0,2}"
)
_OTHER_SCRIPTS = one_of(
    "(?:最终|最終|最佳|正确|正確|本题的?|标准)?(?:的)?(?:答案|选项|選項)(?:应该|應該|应|應|就)?(?:是|為"
    "|为|选|選)? ?:? ?(?:选项|選項)?",
    "(?:故|因此|所以|应|應|我)(?:本题)?(?:应|應|会)?(?:选择|選擇|选|選)(?:择|项)? ?:? ?(?:选项|選項)?",
    "(?:正しい|最終的な|適切な)?(?:答え|正解|解答|回答|選択肢)(?:は|が)? ?:? ?、?(?:選択肢)?",
    "(?:올바른 |맞는 |최종 )?(?:정답|답|답변)[은는]? ?:? ?",
    "(?:правильн\\w+ |верн\\w+ |окончательн\\w+ )?(?:ответ(?:ом)?|вариант)(?: ?(?:[:-]|это|является"
    "|будет)){0,2} ?"
    "(?:вариант |ответ )?",
    "(?:ال)?(?:إجابة|جواب|خيار|اختيار)(?: (?:الصحيحة|الصحيح|النهائية|النهائي))?(?: (?:هو"
    "|هي))? ?:? ?(?:الخيار )?",
    "(?:सही |अंतिम )?(?:उत्तर|जवाब|विकल्प)(?: है)? ?[:-]? ?(?:विकल्प )?",
)
_STATED_ABROAD = re.compile(rf"(?:{_LATIN} ?{_ARTICLE})|(?:{_OTHER_SCRIPTS})")
_WORDS_ABROAD = (
    *(
        "antwort",
        "lösung",
        "respuesta",
        "opción",
        "alternativa",
        "resposta",
        "opção",
        "réponse",
        "proposition",
    ),
    *("option", "risposta", "opzione", "antwoord", "optie", "keuze", "cevap", "yanıt", "seçenek", "şık"),
)
# Behind the name of a choice.
_IS_RIGHT = one_of(
    " (?:is|seems|would be)(?: (?:the|clearly|definitely|therefore|thus|indeed|only)){0,3} "
    r"(?:(?:most )?(?:correct|right|best|appropriate|accurate)(?: (?:answer|option|choice|one|response))?"
    r"|answer)\b",
    r" (?:es|est|è|é|está)(?: (?:la|a|l'|o)){0,1} ?(?:respuesta |opción |réponse |bonne |risposta "
    r"|resposta |opção )?"
    r"(?:correct[ao]|correcte|corrett[ao]|corret[ao]|réponse|giusta|certa|esatta)\b",
    r" ist(?: die)? (?:richtig|korrekt)(?:e(?: antwort| option)?)?\b",
    r" is(?: het| de)? (?:juist|correct)(?:e(?: antwoord| optie| keuze)?)?\b",
    " ?(?:项|項)?(?:是|为|為)?(?:正确|正確)(?:的|答案|选项)?",
    " ?(?:が|は)(?:正しい(?:です)?|正解(?:です)?)",
    " ?(?:가|이|번이) ?(?:정답|맞|옳)(?:입니다|습니다|다)?",
    r" (?:является правильным|верен|верный|правильный)(?: ответом)?\b",
    " (?:सही )(?:उत्तर |विकल्प )?(?:है)",
    r" (?:doğrudur|doğru(?: cevaptır| yanıttır)?)\b",
    " (?:هو|هي) (?:الإجابة |الخيار )?(?:الصحيحة?|الصواب)",
)
_SUFFIX = (
    r"(?:です|である|だ(?!と)|になります|となります|입니다|이다|이에요|예요|번(?:입니다)?|"
    r"'?[dt][iıuü]r\b| şıkkı(?:dır)?\b| seçeneği(?:dir)?\b| है| hai\b|项|項|。)"
)
TAIL = re.compile(rf"(?P<is_right>{_IS_RIGHT})?{_SUFFIX}?", re.IGNORECASE)
IS_RIGHT = re.compile(_IS_RIGHT, re.IGNORECASE)
_IS_RIGHT_FOLDED = re.compile(_IS_RIGHT)
_WORDS_OF_RIGHT = (
    *(
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
    r"|ответ|정답|答え|正解) ?[:.]?[ \t]*\n\s*",
    re.IGNORECASE | re.MULTILINE,
)

DENIAL_WORDS = any_of(
    r"not?|none|never|nothing|nor|neither|cannot|\w+n't|wrong|incorrect|false|unlikely|doubt\w*|least|avoid"
    r"|worst|except|eliminate\w*|hardly|nobody",
    before=r"\b",
    after=r"\b",
)
DENIAL_ABROAD = any_of(
    r"\b(?:nicht|nein|kein\w*|falsch\w*|pas|faux|jamais|incorrect[ao]|não|errad[oa]|fals[oa]|mentira|sé"
    r"|sei)\b",
    r"\b(?:sbagliat[oa]|не|нет|неверн\w+|неправильн\w+|değil|yanlış|niet|geen|onjuist|fout|ليس|ليست|خطأ"
    r"|لا|غير)\b",
    "[不没沒非错錯違誤]|ない|ません|아니|아닙|않|틀|नहीं|गलत",
)
# Words of a case that is only thought of.
_SUPPOSED = any_of(
    r"^\W*(?:had|should|prove|explain|assume|let the|in case)",
    r"if(?! and only)|whether|unless|suppos(?:e|ing)|assum(?:e|ing)|imagine|hypothetical\w*",
    r"wenn|falls|si|se|если|eğer|إذا|अगर|यदि|als",
    before=r"(?<!\w)",
    after=r"(?!\w)",
)
_PERHAPS = any_of(
    "would|could|might|may|maybe|perhaps|possibly|had|were|want\\w*|tempt\\w*",
    before=r"(?<!\w)",
    after=r"(?!\w)",
)
# Words of somebody else, or of an earlier thought.
_REPORTED = any_of(
    r"said|says|claim\w*|argu\w+|wrote|answered|chose|thinks|believes|thought|told|asks|suggest(?:s"
    r"|ed)? that",
    r"(?:some|many|most|people|students?|others?|someone|one|they|you|critics|experts"
    r"|who) (?:\w+ )?(?:think|believe"
    r"|say|guess|answer|choose|pick|select|conclude|argue)",
    r"users?|candidate|previous\w*|earlier|initial\w*|at first|originally|misconception|mistake\w*|myth"
    r"|example"
    r"|format|template|trap|common|opposite",
    before=r"(?<!\w)",
    after=r"(?!\w)",
)
_NOT_OWN_ABROAD = re.compile(
    r"假设|假設|如果|若|もし|만약|만일|可能|用户|用戶|你的|您的|他的|她的|学生|学生の|あなた|ユーザー|사용자|당신"
)
_CONCLUDES = re.compile(
    r"\b(?:so|hence|thus|therefore|consequently|accordingly|which means(?: that)?)[,:]?\s*\Z", re.IGNORECASE
)
_LAST_CLAUSE = re.compile(r"[,;:()]|\s-\s")
_LEADS_IN = re.compile(
    r"(?:\A|[,:;()]|\s-|^-|[#>•]"
    r"|\b(?:so|hence|thus|therefore|then|and|finally|consequently|accordingly|clearly|overall|that|only)"
    r"|\b(?:i|we)(?:'d|'m| would| am| are| can| will)?(?: \w{2,12}ly)? (?:think|believe|say|guess"
    r"|conclude|find"
    r"|confident|certain|sure))\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)
_END_OF_SENTENCE = re.compile(r"[.!?](?:\s+|\Z)|[。！？।;\n]")
# Characters before a statement in which the begin of its sentence is looked for.
_REACH = 240


def sentence_before(text: str, at: int) -> str:
    """The part of a sentence before a place in it."""
    reach = text[max(0, at - _REACH) : at]
    ends = [found.end() for found in _END_OF_SENTENCE.finditer(reach)]
    return reach[ends[-1] :] if ends else reach


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
    for pattern in (_I_SAY, _THUS, _REPLACED):
        for found in pattern.finditer(folded):
            if _begins_a_word(folded, found.start()):
                leads_in = pattern is not _REPLACED
                yield Statement(found.start(), found.end(), leads_in, is_short=pattern is not _I_SAY)
    if not folded.isascii() or any(word in folded for word in _WORDS_ABROAD):
        for found in _STATED_ABROAD.finditer(folded):
            if _begins_a_word(folded, found.start()) or not found[0][0].isascii():
                yield Statement(found.start(), found.end(), leads_in=False)


def may_say_right(folded: str) -> bool:
    """Whether a choice is said to be right at all."""
    return any(word in folded for word in _WORDS_OF_RIGHT) and _IS_RIGHT_FOLDED.search(folded) is not None


def _begins_a_word(text: str, at: int) -> bool:
    return at == 0 or not text[at - 1].isalnum()


def _with_words_before(folded: str, at: int) -> int | None:
    """Where "the most likely" before a noun begins; None within a word."""
    if not _begins_a_word(folded, at):
        return None
    start = at
    words = folded[max(0, at - _REACH) : at].split(" ")
    if not words or words.pop():
        return start
    while words and words[-1] in _BEST:
        start -= len(words.pop()) + 1
    if words and (word := words[-1].rpartition("\n")[2]) in _DETERMINERS | _BEST:
        start -= len(word) + 1
    return start


def is_own(before: str, *, leads_in: bool = True) -> bool:
    """Whether a statement after these words of its sentence is meant: not denied, and no word of others."""
    if not before.strip():
        return True
    clause = _LAST_CLAUSE.split(before)[-1]
    if DENIAL_WORDS.search(clause) or DENIAL_ABROAD.search(clause) or _PERHAPS.search(clause):
        return False
    if _SUPPOSED.search(before) or _NOT_OWN_ABROAD.search(before):
        return False
    if _REPORTED.search(before) and not _CONCLUDES.search(before):
        return False
    return not leads_in or _LEADS_IN.search(before) is not None
