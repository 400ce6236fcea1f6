"""Finds where an answer claims a choice: in a box, on a line of its own, in a sentence, at its beginning."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from services.results.scoring.answer_text import BOXED, Mention, caseless
from services.results.scoring.answer_words import allows_others_abroad, is_own, sentence_before
from services.results.scoring.choices.options import ChoiceOptions, Named
from services.results.scoring.choices.statements import (
    IS_RIGHT,
    IT_IS,
    SO,
    TAIL,
    Statement,
    may_say_right,
    statements,
)

EXPLAINS = (
    "(?:the|this|that|it|these|those|they|there|he|she|we|you|both|because|since|based|according|given|in|an?"
    r"|its|his|her|their|my|i|with|by|for|from|after|when|every|each|all|some|not|explanation|reason"
    r"|reasoning|rationale|justification)\b"
)
# A line with what the letter is, and a heading below it: the explanation may be cut.
EXPLAINED_BELOW = re.compile(
    r"(?![^\n]*\b(?:not|no|wrong|incorrect|false)\b)[^\n]{1,200}\n\s*"
    r"(?:explanations?|rationale|reason(?:ing)?|justification|why)\b[^\w\n]*:",
    re.IGNORECASE,
)
_TAKES_BACK = (
    r"(?:(?:strike|scratch) (?:that|this|it)|just kidding|(?:i am|i'm|just) (?:kidding|joking)"
    r"|i (?:lied|meant?|take)"
    r"|oops|my (?:bad|mistake)|no|not|wait|actually|or|and|maybe|perhaps|but|nope|hmm|sorry|incorrect|wrong"
    r"|false|only|if|unless|never|none"
    r"|nor|rather|too|except|also|probably not|ruled|eliminated|rejected)\b"
)
_BECAUSE_ABROAD = (
    "porque|ya que|pues|puesto que|car|parce que|puisque|da|weil|denn|pois|perché|poiché|omdat|want|çünkü"
    "|karena|ponieważ|gdyż|потому|так как|поскольку|क्योंकि|لأن"
)
_OTHERS_ABROAD = (
    "(?:las|los|les|le|gli|die|as|os|de) (?:demás|otr[ao]s|autres|altr[ie]|anderen?|demais|outr[ao]s)"
)
_NOT_THOSE = (
    r"(?:and |while |but |whereas )?(?:options? |choices? )?\(?[A-J]\)?(?:(?:,|,? and"
    r"|,? or) \(?[A-J]\)?){0,8}"
    r" (?:is|are)(?:n't| not| wrong| incorrect| false)\b"
)
_END = re.compile(
    r"\s*(?:\Z|\n)|\s?[.!。।]+(?:\s+(?!\d)|\Z|(?=[^\W\d_a-z]))|[,;]?\s+(?=(?:because|since|thanks to|due to"
    rf"|owing to|as (?:it|this|the|that|we)|'?cause (?:it|they|there|we))\b)"
    rf"|,\s+(?=(?:{_BECAUSE_ABROAD}|{_OTHERS_ABROAD})\b)|,? ?(?=因为|因爲|なぜなら|왜냐하면|其他"
    rf"|其余|其它|所以|因此)"
    rf"|[,;]\s+(?={_NOT_THOSE})|(?P<goes_on>\s?,\s+)(?={EXPLAINS})|\s-+\s+(?!{_TAKES_BACK})"
    rf"|\s\|\s(?=(?:confidence|certainty|reason|explanation)\b)",
    re.IGNORECASE,
)
# Behind a letter comes what it stands for.
_END_OF_LETTER = re.compile(
    rf"(?:[.:)]|(?<=[)}}]))\s*(?!{_TAKES_BACK})(?=[A-Z\d$\\(\u0080-\uffff])(?![A-Z]\b(?!\s[a-z]))"
    rf"|:\s+(?!{_TAKES_BACK})(?=[a-z])"
)
_TEXT_OF_LETTER = re.compile(
    rf"(?:[.:)\]]|(?<=[)\]]))[ \t]*(?!{_TAKES_BACK})(?!(?:if|when|while|is|was|are|were|has|have|had|seems?"
    r"|would|could|should|may|might|can|will|does|did|according|depending|for|with|in|on|at|by|to|so|then"
    r"|because|since|as|both|this|that|it|which|who|what|[A-Z]\)?(?:[,.;:]|\Z|\s*(?:or|and|/|&)))\b)"
    r"(?P<text>[^\s][^\n?]*?)(?:[.!](?=\s|\Z)|(?=\n)|\Z)",
    re.IGNORECASE,
)
_LETTER_WITH_TEXT = re.compile(r"[(\[]?[A-J][.)\]:]")
_UNENDED = re.compile(r"(?:,? [^\W\d_][\w'-]*){2,30}")
_VARIABLE = re.compile(r"\s*[=<>+*/^-]")
_APPOSITION = re.compile(r"[)\]]?(?:, [^,.;:?\n]{1,80},| - [^,.;:?\n-]{1,80} -)(?= (?:is|seems|would)\b)")
_NOT_OTHERS = re.compile(
    r",?\s*\(?(?:(?:and|definitely|certainly|clearly|surely|but) )*(?:not|rather than|instead of"
    r"|over) (?:the )?(?=\S)",
    re.IGNORECASE,
)
_REMARK = re.compile(
    rf"\s*\((?!\s*{_TAKES_BACK})(?:(?:confidence|certainty)[^()\n]{{0,40}}"
    rf"|(?:i am |i'm )?(?:about |around )?(?:100|[6-9]\d) ?% (?:sure|certain|confident|confidence)"
    rf"|[^()\n%]{{1,200}})\)(?=[\s.!,;。です입]|\Z)",
    re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(
    r"\Z|[.!,;)\n]|is (?:the|my|our) (?:(?:final|correct) )?(?:answer|choice|option)\b(?=\W*(?:\Z|[A-Z\n]))"
)
_AFTER_SENTENCE = re.compile(r"[.!。।)\]}]\s*\Z")
# Behind a computation, and no heading above its options.
_BLANK_LINE = re.compile(r"(?<=[\d)\]}%$])[ \t]*\n[ \t]*\n\s*\Z")
_HASHES = re.compile(r"\s*#{4}[ \t]*")
_LAST_LETTER = re.compile(
    r"(?<=[a-z\d)][.!])(?<!\n\d[.)]) +(?:\(?(?P<letter>[B-HJ])\)?[.!]?"
    r"|\((?P<enclosed>[AI])\)[.!]?|(?P<ended>[AI])[.!])\s*\Z"
)
_MAY_GO_ON = frozenset({"yes", "no", "true", "false"})
_EDGES_OF_FORMULA = "{}$ "
_NUMBERED = re.compile(r"\s*(?:(\d{1,2})[.)]|Q(?:uestion)?\s?\d{0,3}[.:)])\s+")
_LEADS_IN = re.compile(rf"{SO}[,:]? ", re.IGNORECASE)
_COLON = re.compile(rf":\s+(?!{_TAKES_BACK})(?=\S)", re.IGNORECASE)
_COMMA = re.compile(rf",\s+(?!{_TAKES_BACK})(?=\S)", re.IGNORECASE)
_BEGINS = re.compile(r"\A(?:[\s#>→⇒➡∴]|[-=]{1,2}>|[•-]\s+(?![\d.]))*")
_SURELY = (
    "(?:definitely|clearly|certainly|obviously|undoubtedly|surely|(?:most )?likely|probably|of course"
    "|without (?:a |any )?doubt),? "
)
_CHOOSES = (
    "(?:let me |i(?:'m|'ll| will| am)? )?(?:select|choose|pick|vote(?: for)?|going (?:with|for)|go with) "
)
_REASON = re.compile(
    r"(?:because|since|thanks to|due to|owing to)\b[^.!?\n]{1,300}(?:[.!\n]|\Z)", re.IGNORECASE
)
_IT_IS = re.compile(
    rf"(?:actually|unfortunately|sadly|honestly|in short),? (?=(?:yes|no)\b)|(?:(?:{SO}"
    rf"|of course)[,:]? )?{IT_IS}|{SO}[,:] |so (?=(?:yes"
    rf"|no)\b)|{_SURELY}|{_CHOOSES}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StatedChoice:
    """`label`: None where what is claimed is not plain. `end`: where in the answer the claim ends.

    `is_stated`: it is a sentence or a line of its own, and not only the choice with which an answer begins.
    `is_letter`: only a letter names it. `is_said`: a sentence says that it is the answer.
    """

    label: int | None
    end: int
    is_stated: bool = True
    is_letter: bool = False
    is_said: bool = True


def stated_choices(answer: str, options: ChoiceOptions) -> list[StatedChoice]:
    """All claims, in the order of their ends."""
    folded = caseless(answer)
    found = [*_boxed(answer, options), *_on_lines(answer, options), *_in_sentences(answer, folded, options)]
    if may_say_right(folded):
        found += _said_to_be_right(answer, options)
    found += _at_the_beginning(answer, options)
    found += _at_the_end(answer, options)
    return sorted(found, key=lambda claim: claim.end)


def _boxed(answer: str, options: ChoiceOptions) -> Iterator[StatedChoice]:
    if "box" not in answer:
        return
    for found in BOXED.finditer(answer):
        before, after = sentence_before(answer, found.start()), answer[found.end() : found.end() + 48]
        is_plain = _SENTENCE_ENDS.match(after.lstrip(_EDGES_OF_FORMULA)) and is_own(before, leads_in=False)
        inside = found[1].strip(_EDGES_OF_FORMULA)
        label = _being_boxed(inside, options)
        if not is_plain or label is not None:
            yield StatedChoice(label if is_plain else None, found.end())


def _being_boxed(inside: str, options: ChoiceOptions) -> int | None:
    label = options.being(inside)
    if label is not None or not options.letters:
        return label
    for named in options.named_at(inside, 0):
        if named.is_letter and _END_OF_LETTER.match(inside, named.end):
            is_one = not any(one.label != named.label for one in options.names_in(inside))
            return named.label if is_one else None
    return None


def _on_lines(answer: str, options: ChoiceOptions) -> Iterator[StatedChoice]:
    """Lines that are a choice as a whole; one amid others, or ending a sentence, is unclear."""
    if "\n" not in answer:
        # Looked for before claims are.
        return
    # Of a model that repeats its choice on line after line.
    first, first_end = None, 0
    start = 0
    for line in answer.splitlines(keepends=True):
        end = start + len(line)
        label = options.being(_HASHES.sub("", line))
        if label is not None:
            is_last = end >= len(answer) and _ends_apart(answer, start)
            is_alone = start == 0 or is_last or (first == label and first_end == start)
            if is_alone and not is_last:
                first, first_end = label, end
            yield StatedChoice(label if is_alone else None, end, is_said=is_last or len(line.strip()) < 5)
        elif not line.strip() and first_end == start:
            first_end = end
        start = end


def _ends_apart(answer: str, start: int) -> bool:
    """Whether a last line follows a sentence, or stands as a paragraph or behind marks of an answer."""
    is_paragraph = _BLANK_LINE.search(answer, max(0, start - 8), start) is not None
    is_marked = _HASHES.match(answer, start) is not None
    return is_paragraph or is_marked or _AFTER_SENTENCE.search(answer[:start]) is not None


def _in_sentences(answer: str, folded: str, options: ChoiceOptions) -> Iterator[StatedChoice]:
    for stated in statements(folded):
        claim = _claimed(answer, stated, options)
        if claim and is_own(sentence_before(answer, stated.start), leads_in=stated.leads_in):
            yield claim


def _claimed(answer: str, stated: Statement, options: ChoiceOptions) -> StatedChoice | None:
    """None where the sentence says more, or only mentions a choice."""
    worded = None
    for named in options.named_at(answer, stated.end):
        if worded and named.is_letter and named.label == worded.label:
            # Its text is known: what goes on behind that is no part of the claim.
            return StatedChoice(named.label, worded.end)
        worded = named if _goes_on_behind(answer, stated.end, named) else None
        tail = TAIL.match(answer, named.end)
        end = _end_of_text(answer, named, options) or _end(
            answer, tail.end() if tail else named.end, named, options
        )
        if end and not (stated.is_short and answer[named.end : end.claim].strip(" .!。\n")):
            return StatedChoice(named.label, end.claim, is_letter=named.is_letter)
    return None


def _goes_on_behind(answer: str, start: int, named: Named) -> bool:
    """Whether a letter with its text begins a sentence that breaks off: "B. Paris has been the"."""
    return (
        answer[-1].isalnum()
        and not named.is_letter
        and named.label is not None
        and _LETTER_WITH_TEXT.match(answer, start) is not None
        and _UNENDED.fullmatch(answer, named.end) is not None
    )


def _end_of_text(answer: str, named: Named, options: ChoiceOptions) -> "_End | None":
    """Where the text behind a letter ends, whose words are not known: "(B) the speed of light"."""
    found = _TEXT_OF_LETTER.match(answer, named.end) if named.is_letter else None
    if not found or allows_others_abroad(found["text"]):
        return None
    if any(_is_other(name, found, named, options) for name in options.names_in(found["text"])):
        return None
    return _End(found.end(), found.end())


def _is_other(name: Mention, found: re.Match[str], named: Named, options: ChoiceOptions) -> bool:
    """Whether another choice is named in the text of a letter; a letter there may be a variable."""
    if name.label == named.label or not options.counts_amid(name, found["text"]):
        return False
    return not _VARIABLE.match(found["text"], name.end)


@dataclass(frozen=True, slots=True)
class _End:
    """Where a claim ends, and where a remark ends that stands behind it."""

    claim: int
    sentence: int


def _end(answer: str, after: int, named: Named, options: ChoiceOptions) -> _End | None:
    """Where the claim ends; None where its sentence goes on otherwise than with a reason or a remark."""
    probe = _behind_remarks(answer, after, named, options)
    end = _END.match(answer, probe)
    if end is None and named.is_letter:
        end = _END_OF_LETTER.match(answer, probe)
    if end is None and _may_go_on(named, options):
        end = _COLON.match(answer, probe) or _COMMA.match(answer, probe)
    if end is None or (end.re is _END and end["goes_on"] and not _may_go_on(named, options)):
        return None
    return _End(after if probe > after else end.end(), end.end())


def _behind_remarks(answer: str, after: int, named: Named, options: ChoiceOptions) -> int:
    denies = _NOT_OTHERS.match(answer, after)
    if denies:
        other = next(options.named_at(answer, denies.end()), None)
        if other and other.label is not None and other.label != named.label:
            return other.end
    remark = _REMARK.match(answer, after)
    return remark.end() if remark else after


def _may_go_on(named: Named, options: ChoiceOptions) -> bool:
    return named.label is not None and options.forms[named.label] in _MAY_GO_ON


def _said_to_be_right(answer: str, options: ChoiceOptions) -> Iterator[StatedChoice]:
    """ "B is correct"."""
    for name in options.names_in(answer):
        remark = _REMARK.match(answer, name.end) or _APPOSITION.match(answer, name.end)
        closing = remark.end() if remark and _agrees(remark[0], name.label, options) else name.end
        right = IS_RIGHT.match(answer, closing)
        named = Named(name.label, closing)
        end = _end(answer, right.end(), named, options) if right else None
        is_title = _TITLE.search(answer[max(0, name.start - 6) : name.start])
        if end and not is_title:
            before = _WITHOUT_KIND.sub("", sentence_before(answer, name.start))
            if is_own(before):
                yield StatedChoice(name.label, end.claim)


def _agrees(remark: str, label: int, options: ChoiceOptions) -> bool:
    return all(name.label == label for name in options.names_in(remark))


def _at_the_end(answer: str, options: ChoiceOptions) -> Iterator[StatedChoice]:
    """A last sentence that is a letter; after initials, or a question, it may be anything."""
    found = _LAST_LETTER.search(answer, max(0, len(answer) - 12))
    label = options.letters.get(found["letter"] or found["enclosed"] or found["ended"]) if found else None
    if label is not None and not options.are_letters:
        yield StatedChoice(label, len(answer), is_letter=True)


def _is_explained_below(answer: str, named: Named, end: _End) -> bool:
    """Whether it is no first item of a walk through all options, which may be cut: those begin with A."""
    return bool(named.is_letter and named.label and EXPLAINED_BELOW.match(answer, end.claim))


def _behind_reason(answer: str, at: int) -> str:
    """What follows the sentence, where a reason ends it: "It is B because x is even"."""
    reason = _REASON.match(answer, at)
    return answer[reason.end() if reason else at :]


_TITLE = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St)\. \Z")
_WITHOUT_KIND = re.compile(
    r"(?:\b(?:option|choice|answer|letter|opción|opção|opzione|optie|l'option|l'opzione|letra|lettre|lettera"
    r"|alternativa|la|a|die"
    r"|antwort|antwoord|risposta|réponse|respuesta|resposta|odpowiedź|jawaban|svar|ответ|вариант|the)\s+"
    r"|选项|選項|選択肢|[A-Z][.)]\s+)+\Z",
    re.IGNORECASE,
)


def _at_the_beginning(answer: str, options: ChoiceOptions) -> Iterator[StatedChoice]:
    """The answer begins with its choice, or says no more than that it is this one."""
    begin = _BEGINS.match(answer)
    start = begin.end() if begin else 0
    numbered = _NUMBERED.match(answer, start)
    it_is = _IT_IS.match(answer, start)
    for at in dict.fromkeys((numbered.end() if numbered else start, it_is.end() if it_is else start)):
        for named in options.named_at(answer, at):
            end = _end(answer, named.end, named, options)
            is_of_place = numbered and named.label is not None and numbered[1] == str(named.label + 1)
            if end is None or (numbered and not (named.is_letter or is_of_place)):
                continue
            is_whole = not _behind_reason(answer, end.sentence).strip(" \n.!")
            is_led_in = at != start and not numbered and _LEADS_IN.fullmatch(answer, start, at)
            if is_whole or is_led_in or not (numbered or at != start):
                yield StatedChoice(
                    named.label,
                    end.claim,
                    is_whole,
                    is_letter=named.is_letter,
                    is_said=(is_whole and at != start) or _is_explained_below(answer, named, end),
                )
                return
