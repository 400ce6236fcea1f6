"""Words that state, deny, doubt or round off an answer, in the languages in which models are asked."""

import re
from collections.abc import Iterable, Iterator
from re import Match, Pattern


def any_of(*alternatives: str, before: str = "", after: str = "") -> Pattern[str]:
    """Words, without regard to case."""
    return re.compile(rf"{before}(?:{'|'.join(alternatives)}){after}", re.IGNORECASE)


def one_of(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


def has_one_of(folded: str, words: Iterable[str]) -> bool:
    """Whether a folded text may match a pattern that needs one of the words: several times faster to find."""
    return any(map(folded.__contains__, words))


# A language whose sentences Latin letters set apart ends its words; the others go on without a space.
_LATIN = one_of(
    "(?:die )?(?:richtige |korrekte |beste )?antwort(?: (?:ist|lautet)(?: (?:daher|also|somit"
    "|demnach))?)? ?:?",
    "(?:ist|lautet) (?:(?:daher|also|somit|folglich) )?die (?:richtige |korrekte )?antwort ?:?",
    "(?:die )?(?:richtige |korrekte )(?:option|lösung) ist",
    "(?:la )?(?:respuesta|opción|alternativa)(?: (?:final|correcta))?(?: (?:es|sería)| ?:)",
    "la (?:letra )?correcta es",
    # "I do not believe" asks for the same form of the verb.
    "(?<!non )(?:penso|credo|ritengo) che la risposta(?: (?:finale|corretta|giusta|esatta))? sia",
    "(?:a )?(?:resposta|opção|alternativa)(?: (?:final|correta|certa))?(?: (?:é|seria)| ?:)",
    "(?:la )?(?:bonne |meilleure )?réponse(?: (?:finale|correcte|exacte))?(?: est(?: donc)?| ?:)",
    "(?:la )?(?:bonne )?(?:option|proposition)(?: correcte| exacte) est(?: donc)?",
    "(?:la )?(?:risposta|opzione|alternativa)(?: (?:finale|corretta|giusta|esatta))?(?: (?:è|sarebbe)| ?:)",
    "(?:het )?(?:juiste |correcte |goede |beste )?antwoord(?: is(?: dus)?| ?:)",
    "is (?:dus )?het (?:juiste |correcte |goede )?antwoord",
    "(?:de )?(?:juiste |correcte |goede )(?:optie|keuze) is",
    "(?:poprawna |prawidłowa )?odpowiedź(?: (?:to|brzmi))? ?:?",
    "(?:det )?(?:rätta |rätt |riktige |korrekta )?svar(?:et)?(?: är| er)? ?:?",
    "đáp án(?: đúng| chính xác)?(?: là)? ?:?",
    "jawaban(?:nya)?(?: yang)?(?: benar| tepat)?(?: adalah)? ?:?",
    "(?:doğru )?(?:cevap|yanıt|cevabı|yanıtı|seçenek|şık) ?:?",
    "(?:richtig|korrekt) ist",
    "lösung(?: ist| lautet)? ?:?",
    "c'est(?: (?:la (?:bonne )?réponse|l'option))?",
    "(?:elijo|escojo|selecciono|escolho|scelgo|je choisis|je dirais|ich wähle|ich würde|ich nehme|ik kies)",
    "gabarito ?:",
    "ist (?:die )?(?:option|antwort)",
    "câu trả lời(?: đúng| chính xác)?(?: là)? ?:?",
    "(?:správná )?odpověď(?: je)? ?:?",
    "(?:správna )?odpoveď(?: je)? ?:?",
    "răspuns(?:ul)?(?: corect)?(?: este)? ?:?",
    "(?:a )?helyes válasz(?: az?)? ?:?",
    "(?:oikea )?vastaus(?: on)? ?:?",
    r"\Aes (?:la|el)(?: opción| respuesta| letra)?",
    "(?:la )?resposta(?: correcta)?(?: és| ?:)",
    "(?:ang )?(?:tamang )?sagot(?: ay)? ?:?",
    "(?:točan|tačan) odgovor(?: je)? ?:?",
)
_ARTICLE = (
    r"(?:(?:la|el|(?:a|o)(?= (?:\W{0,3}[a-j]\b|letra|opção|alternativa))|de|l'|le|die|optie|opción"
    r"|opção|opzione|letra|lettera|lettre|alternativa|antwort|réponse|risposta|respuesta|resposta|antwoord)"
    r"(?: |(?<=l'))){0,2}"
)
# Before a number it is a minus.
_DASH = r"-(?![\d.$€£₽√(\\*])"
_OTHER_SCRIPTS = one_of(
    "(?:(?:所以|因此|故|因而|综上所述?|综上)[,，、 ]{0,2}(?:本题)?(?:[^。，,.\\n]{1,20}的(?=[^。，,.\\n]))?"
    "(?:(?<=的)|选项|说法|叙述|结论|一项|理解|做法|判断)(?:应该|应)?(?:是|为)) ?:? ?(?:选项)?",
    "(?:所以|因此|故|因而)[,，]?(?:应该|应)?(?:是|为)(?= ?[a-jA-J](?:选项|项)?(?:[。.,，]|\\Z)) ?",
    "(?:最终|最終|最佳|正确|正確|本题的?|标准)?(?:的)?(?:答案|选项|選項)(?:应该|應該|应|應|就)?(?:是|為"
    "|为|选|選)? ?:? ?(?:选项|選項)?",
    "(?:(?:故|因此|所以|应|應|应该|應該|那么|则|我|本题|此题|综上)[,，]?(?:本题)?(?:应|應|会|应该|應該)?|\\A)"
    "(?:选择|選擇|选|選)(?:择|项)? ?:? ?(?:选项|選項)?",
    "(?:正しい|最終的な|適切な)?(?:答え|正解|解答|回答|選択肢)(?:は|が)? ?:? ?、?(?:選択肢)?",
    "ค(?:ำ|ํา)ตอบ(?:ที่ถูกต้อง)? ?(?:คือ|:) ?(?:ข้อ ?)?",
    "(?:올바른 |맞는 |최종 )?(?:정답|답|답변)[은는]? ?:? ?",
    "(?:правильн\\w+ |верн\\w+ |окончательн\\w+ )?(?:ответ(?:ом)?|вариант(?: ответа)?"
    "|я выбираю)(?: ?(?::|" + _DASH + "|это|является"
    "|будет)){0,2} ?"
    "(?:вариант |ответ )?",
    "(?:ال)?(?:إجابة|جواب|خيار|اختيار)(?: (?:الصحيحة|الصحيح|النهائية|النهائي))?(?: (?:هو"
    "|هي))? ?:? ?(?:الخيار )?",
    "(?:सही |अंतिम )?(?:उत्तर|जवाब|विकल्प)(?: है)? ?(?::|" + _DASH + ")? ?(?:विकल्प )?",
    "(?:правильна |вірна )?відповідь ?(?::|" + _DASH + "|це)? ?",
    "(?:правилният |верният )?отговор(?:ът)?(?: е)? ?:? ?",
    "(?:η )?(?:σωστή )?απάντηση(?: είναι)? ?:? ?(?:η |το )?",
    "(?:ה)?תשובה(?: הנכונה)?(?: היא)? ?:? ?",
    "(?:সঠিক )?উত্তর(?:টি)?(?: হল| হলো)? ?:? ?",
    "(?:پاسخ|گزینه|جواب)(?: صحیح| درست)?(?: ،)? ?:? ?(?:گزینه )?",
)
_STATED_ABROAD = re.compile(rf"(?:{_LATIN} ?:? ?{_ARTICLE})|(?:{_OTHER_SCRIPTS})")
# Neither a sign of mathematics, as π, nor a picture.
_OTHER_SCRIPT = re.compile(
    "[\u0400-\u1dff\u2e80-\uffff\U00020000-\U0010ffff]|[\u0370-\u03ff\u1f00-\u1fff]{3}"
)
# A word of another language that English has too stands with more of its phrase.
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
        "correcte",
        "exacte",
    ),
    *("risposta", "opzione", "antwoord", "optie", "keuze", "cevap", "cevab", "yanıt", "seçenek"),
    *(
        "odpowied",
        "svar",
        "đáp án",
        "jawaban",
        "richtig",
        "korrekt",
        "ist option",
        "ist die option",
        "c'est",
        "câu trả lời",
        "odpověď",
    ),
    *("odpoveď", "răspuns", "helyes", "vastaus", "sagot", "odgovor", "elijo", "escojo", "selecciono"),
    *(
        "escolho",
        "gabarito",
        "scelgo",
        "je choisis",
        "je dirais",
        "ich wähle",
        "ich würde",
        "ich nehme",
        "ik kies",
    ),
    "şık",
    "es la ",
    "es el ",
)
DENIAL_WORDS = any_of(
    r"not?|none|never|nothing|nor|neither|cannot|\w+n't|wrong|incorrect|false|unlikely|doubt\w*|least|avoid"
    r"|worst|except|eliminate\w*|hardly|nobody",
    before=r"\b",
    after=r"\b",
)
DENIAL_ABROAD = any_of(
    r"\b(?:nicht|nein|kein\w*|falsch\w*|pas|faux|fausses?|jamais|incorrect[ao]s?|não|errad[oa]s?"
    r"|fals[oaie]s?|mentira|sé"
    r"|sei)\b",
    r"\b(?:sbagliat[oaie]|не|нет|неверн\w+|неправильн\w+|değil|yanlış|niet|geen|onjuist|fout|ليس|ليست|خطأ"
    r"|لا|غير)\b",
    "[不没沒非错錯違誤]|ない|ません|아니|아닙|않|틀|नहीं|गलत",
)
# What is said of the other options, as of "the others" in English.
OF_OTHERS_ABROAD = re.compile(
    r"[\s,;、.。]*(?:其他|其余|其它|他の|ほかの|나머지|다른"
    r"|las (?:demás|otras)|los (?:demás|otros)|les autres"
    r"|le altre|gli altri|die anderen"
    r"|as (?:demais|outras)|остальные|другие|diğer|de andere|बाकी|अन्य|الأخرى"
    r"|الخيارات الأخرى)[^.。!！\n]*(?:[.。!！\n]|\Z)",
    re.IGNORECASE,
)
_ALSO_ABROAD = re.compile(
    r"\b(?:también|tambien|auch|aussi|anche|também|ook|тоже|также|ayrıca|da doğru)\b|也|都是?正[确確]|も正し"
    r"|도 맞|भी|أيضا",
    re.IGNORECASE,
)
# Words of a case that is only thought of.
_SUPPOSED = any_of(
    r"^\W*(?:had|should|prove|explain|assume|let the|in case)",
    r"if(?! and only)|whether|unless|suppos(?:e|ing)|assum(?:e|ing)|imagine|hypothetical\w*",
    r"wenn|falls|(?:^|(?<=[,;:] ))s[ie]|если|eğer|إذا|अगर|यदि|als",
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
    r"said|says|claim\w*|argu\w+|wrote|answered|chose|thinks|believes|thought|told|(?<!question )asks"
    r"|suggest(?:s|ed)? that",
    r"(?:some|many|most(?! (?:\w+ )?(?:answer|guess|choice))|people|students?|others?|someone|one|they|you"
    r"|critics|experts|who) (?:\w+ )?(?:think|believe"
    r"|say|guess|answer|choose|pick|select|conclude|argue)",
    r"in (?:some|many|most|other) (?:textbooks?|books?|sources|versions|editions|keys)",
    r"users?|candidate|previous\w*|earlier|initial\w*|at first|originally|misconception|mistake\w*|myth"
    r"|example"
    r"|format|template|trap|common|opposite",
    before=r"(?<!\w)",
    after=r"(?!\w)",
)
_NOT_OWN_ABROAD = re.compile(
    r"假设|假設|如果|若|もし|만약|만일|(?<!最)可能|用户|用戶|你的|您的|他的|她的|学生|学生の|あなた|ユーザー|사용자|당신"
    r"|(?:排除|剔除)(?![^。\n]*[,，;；])"
)
_CONCLUDES = re.compile(
    r"\b(?:so|hence|thus|therefore|consequently|accordingly|which means(?: that)?)[,:]?\s*\Z", re.IGNORECASE
)
_TURNS = re.compile(r"[,;-] ?(?:but|however|yet)\b,? ?", re.IGNORECASE)
_LAST_CLAUSE = re.compile(r"[,;:()]|\s-\s")
_LEADS_IN = re.compile(
    r"(?:\A|[,:;(){]|\s-|^-|[#>•∴→⇒]|\bmak(?:es|ing)|\bhere(?: is|'s)|\b(?:which|this) means(?: that)?"
    r"|\b(?:so|hence|thus|therefore|then|and|finally|consequently|accordingly|clearly|overall|that|only)"
    r"|\b(?:i|we)(?:'d|'m| would| am| are| can| will)?(?: \w{2,12}ly| \d+ ?%| very| quite| pretty| fairly)?"
    r" (?:think|believe|say|guess|conclude|find|confident|certain|sure))\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)
_END_OF_SENTENCE = re.compile(r"[.!?](?:\s+|\Z)|[。！？।;\n]")
# Characters before a statement in which the begin of its sentence is looked for.
REACH = 240


def sentence_before(text: str, at: int) -> str:
    """The part of a sentence before a place in it."""
    reach = text[max(0, at - REACH) : at]
    ends = [found.end() for found in _END_OF_SENTENCE.finditer(reach)]
    return reach[ends[-1] :] if ends else reach


# Behind an answer: it is taken back.
DOUBT_WORDS = (
    r"wait|hmm+|oops|nope|actually|correct(?:ion|ed)|edit|update|revis(?:e|ed|ion)|scratch that|strike that",
    r"(?:on|upon) (?:second|further|closer|reflection|review)|second thoughts?|reconsider\w*|instead|better",
    r"mistaken|mistakenly|mistake|made an error|i was wrong|i meant?|i lied|i take|kidding|joking|sorry",
    r"apolog\w+",
)
COURTESY = re.compile(
    r"\W*(?:(?:please )?(?:let me know|feel free|don't hesitate|do not hesitate)|(?:i )?hope (?:this|that|it)"
    r"|(?:would|do) you (?:like|want|need)|if you(?:'d| would| have| want| need|'re)"
    r"|(?:is|are) there any|(?:i'm |i am )?(?:happy|glad) to|good luck|thanks?\b|thank you"
    r"|you're welcome|shall i|should i|can i help"
    r"|(?:please |always )?consult a|want (?:me )?to\b|curious|interested in|ready (?:for|to)"
    r"|need (?:more|any|further))",
    re.IGNORECASE,
)
CERTAINTY = re.compile(
    r"\W{0,4}(?:confidence|certainty|probability)(?: level| score)? ?[:=]? ?(?:is )?(?:\d[\d.]* ?%?"
    r"|high|very high)"
    r"[ \t)]*(?:\n|\.(?!\d)|\Z)",
    re.IGNORECASE,
)


def allows_others_abroad(rest: str) -> bool:
    """Whether a text says first that the other options are right as well."""
    others = OF_OTHERS_ABROAD.match(rest)
    return bool(others and _ALSO_ABROAD.search(others[0]) and not DENIAL_ABROAD.search(others[0]))


def stated_abroad(folded: str) -> Iterator[Match[str]]:
    """Words of other languages than English behind which the answer is expected, in a folded text."""
    if has_one_of(folded, _WORDS_ABROAD) or (not folded.isascii() and _OTHER_SCRIPT.search(folded)):
        for found in _STATED_ABROAD.finditer(folded):
            if begins_a_word(folded, found.start()) or not found[0][0].isascii():
                yield found


def begins_a_word(text: str, at: int) -> bool:
    return at == 0 or not text[at - 1].isalnum()


def is_own(before: str, *, leads_in: bool = True) -> bool:
    """Whether a statement after these words of its sentence is meant: not denied, and no word of others."""
    if not before.strip():
        return True
    if "but" in before or "however" in before or " yet " in before:
        # "Most say A, but the answer is B."
        before = _TURNS.split(before)[-1]
    clause = _LAST_CLAUSE.split(before)[-1]
    if DENIAL_WORDS.search(clause) or DENIAL_ABROAD.search(clause) or _PERHAPS.search(clause):
        return False
    if _SUPPOSED.search(before) or _NOT_OWN_ABROAD.search(before):
        return False
    if _REPORTED.search(before) and not _CONCLUDES.search(before):
        return False
    return not leads_in or _LEADS_IN.search(before) is not None
