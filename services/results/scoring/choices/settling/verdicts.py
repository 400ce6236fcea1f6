"""Answers that judge the options one by one, and sentences of few words that settle on one.

"A: no. B: yes. C: no.", "Everything but B is wrong", "That leaves B.", "B, obviously." They are read where
nothing else is, so each form is strict: a sentence that settles has nothing but the choice and words that
choose. That all others are wrong settles nothing by itself.
"""

import re
from collections.abc import Iterator

from services.results.scoring.answer_words import DENIAL_WORDS, any_of
from services.results.scoring.choices.claims import stated_choices
from services.results.scoring.choices.doubts import is_taken_back, voices_doubt
from services.results.scoring.choices.explanations import first_sentence, is_undone
from services.results.scoring.choices.options import ChoiceOptions, Named
from services.results.scoring.choices.settling.abroad import settled_abroad

# Judged one by one are at least so many: of two, one verdict may be about the question.
_FEWEST = 3
_MAX_LINE = 400
_RIGHT = "✅✓✔☑"
_WRONG = "❌✗✘✖☒"
_LINE = re.compile(
    rf"[\s>#*•|{_RIGHT}{_WRONG}\ufe0f-]*"
    r"(?:(?:option|choice|statement|answer)\s+)?[*(\[]{0,3}(?P<letter>[A-J])(?![A-Za-z\d_'])"
    r"(?P<behind>(?:[*)\].:?|\s=→-]|(?:is|are)\b)*)(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
_IN_CHINESE = re.compile("[\u4e00-\u9fff]")
_ITEMS = re.compile(
    rf"\n+|(?<=[.;)]) (?=[A-J][.:)] )|[,，;；、] ?(?=[A-J](?:选?项)?(?:正|错|錯|不|对))"
    rf"|(?<=[{_RIGHT}{_WRONG}])[ ,;]+(?=[A-J]\b)"
)
_VERDICT = any_of(
    "(?P<right>yes|true|correct|right|valid|正确|正確|对)",
    "(?P<wrong>no|false|incorrect|wrong|not (?:correct|right|true)|invalid|untrue|错误?|錯誤?|不正确|不对)",
    before=r"\W*",
    after=r"\b",
)
_LAST_VERDICT = re.compile(
    r"(?:[:=→←(-]|[-=]>|<-)\s*(?:this is )?(?:the )?(?:(?P<right>yes|true|correct|right)"
    r"|(?P<wrong>no|false|incorrect|wrong|not correct))(?: answer| option| choice)?[\s.!)*]*\Z",
    re.IGNORECASE,
)
# As in a list of tasks.
_TICK = re.compile(r"^([ \t]*(?:[-*•+] )?)\[(?:(?P<right>[xX✓✔✅])|[ ]?)\] (?P<option>[^\n]+)", re.MULTILINE)
_BOLD_ITEM = re.compile(r"(?:\*\*)?\(?(?P<letter>[A-J])[).:] [^*]+(?:\*\*)?")
# An object that says of each option whether it is right.
_OF_TRUTHS = re.compile(r'\{(?:\s*"[A-J]"\s*:\s*(?:true|false)\s*,?)+\s*\}')
# "London? No. Paris? Yes."
_ASKED = re.compile(
    r"(?P<name>[^.!?;\n]{1,120})\?\s*(?:[-*–—→:>]+\s*)?(?:(?P<right>yes|yep|correct|right|true)"
    r"|(?P<wrong>no|nope|wrong|incorrect|false))\b"
    r"(?P<rest>[^?\n]*?)(?=(?:(?<=[.!,;])\s+[^.!?;\n]{1,120}\?)|\n|\Z)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\W*(?:(?:is|could|can) (?:it|this|that|the answer)(?: be)?|(?:how|what) about|option|choice"
    r"|and|or|then|so|maybe|perhaps)\s+",
    re.IGNORECASE,
)
# "Everything but B is wrong."; that the others are wrong says nothing of the one that is left.
_ALL_BUT = re.compile(
    r"(?:(?:everything|anything|all)(?: (?:options|choices|answers|of them))?|(?:every|any) (?:option"
    r"|choice|answer)"
    r"|all (?:the |of the )?(?:other )?(?:options|choices|answers))"
    r" (?:but|except(?: for)?|other than|besides) (?:option |choice |for )?\(?(?-i:(?P<letter>[A-J]))\)?"
    r" (?:is|are|can be|has been|have been|was|were|must be) (?:\w+ly )?(?:wrong|incorrect|false"
    r"|ruled out|eliminated"
    r"|excluded|discarded|invalid|out)[.!]?",
    re.IGNORECASE,
)
# Words that lead to a choice, and neither deny nor doubt it.
_OPENS = (
    r"ok|okay|alright|well|hm+|bottom line|my verdict|easily|after careful consideration|with confidence"
    r"|100 ?%|surprisingly|update|unless (?:stated"
    r"|noted) otherwise"
    r"|(?:out )?of (?:the|these) (?:\w+ )?(?:options|choices|answers)|certainly|sure|absolutely|indeed"
    r"|exactly|right|so|and|thus|therefore"
    r"|hence|then"
    r"|(?:strongly|mostly|largely|clearly|generally|overwhelmingly|predominantly|extremely"
    r"|very)(?= (?:positive|negative))"
    r"|clearly|finally|overall|obviously|also(?= \(?[A-J]\b)|easy(?: one)?|pretty sure|to sum up"
    r"|in short|in summary|tl;?dr|short answer|imh?o|tbh|prob"
)
_POINTS = (
    r"what(?= (?:remains|is left))|it|its|it's|it'd|that|that's|that'd|this|which|here's|is|looks|seems"
    r"|appears"
    r"|like|must|be|has|have|had|to|should"
    r"|would|leaves|leaving|left|remaining|remains|us|only|makes|means|points to|corresponds to|matches"
    r"|leans|expresses|conveys|(?-i:an?)(?= [a-z]{2})"
    r"|(?:review|tweet|text|comment|sentence|statement)(?= (?:is|leans|expresses|conveys|has))"
)
_PICKS = (
    r"i|i'd|i'll|i'm|am|let me|just|tick|circle|bubble in|respond|the winner|settle on|vote|output|key"
    r"|final|the only one"
    r"|lean(?:ing)?(?: towards?)?|the answer's"
    r"|put me down|change (?:that|it|this|my answer) to|we are left|we're left|i am left|i'm left"
    r"|(?:fairly|quite|pretty|very|reasonably) (?:confident|certain|sure)(?: that)?"
    r"|confident|gotta|got to|(?:about|around|nearly|almost)(?= \d)|we|we'd|my|our|you(?:'re"
    r"| are) looking for|you (?:want|need)|think|believe|guess|say|get"
    r"|conclude|choose|choosing|pick|picking|select|selecting|mark|go|going|gonna|take|stick|sticking"
    r"|settle on|settling on|can only be|let's|\d+ ?% sure|sure|with|for|opt|the|answer|option|choice"
    r"|letter|one"
    r"|correct|right|best|most likely|likely|probably|definitely|certainly|surely"
)
# Nothing but these stands before the choice.
_CHOOSES = re.compile(
    r"(?:step \d+: (?=\(?(?-i:[A-J])\)?\W*\Z|choose|pick|select|mark|answer|conclude))?"
    rf"(?:(?:{_OPENS}|{_POINTS}|{_PICKS}|by(?: process of)? elimination"
    r"|(?:on|upon|after) (?:further |closer )?(?:reflection|consideration|review)"
    r"|given (?:the above|this|that|these)|based on (?:this|that|the above|these))(?![\w'])[\s,:;!-]*"
    r"|[=→-]+>?\s*)*",
    re.IGNORECASE,
)
# "By Coulomb's law, B."
_LED_BY_REASON = re.compile(
    r"(?:by|using|since|because|given|applying|due to) (?P<reason>[^.;:?!\n]{3,160}),"
    r" \(?(?-i:(?P<letter>[B-J]))\)?",
    re.IGNORECASE,
)
_ONLY_NAMES = re.compile(r"(?:(?:the|an?|my|our|option|choice|letter|one)\b|[\s,:;-])*", re.IGNORECASE)
_TURN = re.compile(r"[,;] but\b,?\s*")
_ARROW = re.compile(r"\s*(?:[=-]>|[⇒→])\s*")
# What a letter stands for, where no text of it is known.
_SOME_TEXT = re.compile(r"(?:, |(?<=[):]) )(?P<text>[\w'-]+(?: [\w'-]+){0,3})(?=[.!]|\Z)")
_NO_TEXT = any_of(
    r"not?|nor?|or|and|but|if|unless|maybe|perhaps|possibly|though|although|except|then|none|never|only|too"
    r"|yes|true|false|right|wrong|correct|incorrect|rather|instead|again|[A-J]|\w+n't|cannot|is|was|seems",
    before=r"\b",
    after=r"\b",
)
_THING = "(?: (?:answer|option|choice|one|fit|match|candidate))?"
# "No opinion" answers nothing.
_NOUN = " (?:sentiment|review|tone|opinion)"
_OF_A_NOUN = re.compile(_NOUN, re.IGNORECASE)
_SETTLES = re.compile(
    r"(?:,? ?(?:it is|it's it|is it|obviously|for sure|of course|clearly|definitely|certainly|surely"
    r"|probably|most likely|hands down|all the way|without (?:a |any )?(?:doubt|question)"
    r"|no question(?: about it)?"
    r"|no doubt(?: about it)?|then|here|imh?o|tbh|lol|haha|for real|for me"
    r"|from me|on this one|this time"
    r"|i(?:'d| would)? (?:think|believe|guess|say|suppose)|in my (?:opinion|view)|final answer))+"
    r"|,? (?:is|seems?|looks|appears|would be|must be|has to be)(?: like| to be)?"
    r"(?: (?:the|probably|clearly|definitely|therefore|thus|then))*"
    rf" (?:only (?:one|option|choice|answer) (?:left|remaining)|(?:best|correct|right){_THING}"
    rf"|most (?:likely|probable|plausible|appropriate|accurate|suitable"
    rf"|reasonable|logical|fitting|sensible|correct){_THING}|(?:the one|what) (?:we|you|i) (?:want|need))"
    r"| (?:is|gets|was) (?:chosen|selected)| is my (?:selection|choice|pick|answer|final answer)"
    r"| (?:works|fits|matches|holds|checks out|satisfies(?: \w+){1,5})"
    rf"| as (?:my|our|the) (?:final )?(?:answer|choice)|{_NOUN}",
    re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(
    r"(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bSt)(?<!\bProf)[.!](?=\s|\Z)|\n+|;\s|[。！।]"
)
_MUSES = re.compile(
    r"(?:(?:hmm+|well|so(?=\W*\.\.)|right|sure|ok(?:ay)?|let me (?:see|think)|oh|ah"
    r"|alright)\b[\s.,:;!-]+)+",
    re.IGNORECASE,
)
_SUPPOSES = any_of("if|unless|maybe|perhaps|might|could|may", before=r"\b", after=r"\b")
_ENDS = " \t.!)*"


def judged_choice(answer: str, prepared: str, options: ChoiceOptions) -> int | None:
    """`prepared`: the answer without its lists of options; all that both say must be one choice."""
    answer = _ticked(answer) if "[" in answer else answer
    answer = _with_bold_ticked(answer, options) if answer.count("**") == 2 else answer
    if _OF_TRUTHS.fullmatch(answer):
        answer = answer.strip("{} \n").replace('"', "").replace(",", "\n")
    judged = {*_judged(answer, prepared, options)}
    labels = judged | {
        *_settled(prepared, options),
        *(_walked(prepared, options) if "?" in prepared else ()),
    }
    if len(labels) != 1:
        return None
    (label,) = labels
    # The first verdict looks as if the answer began with its choice: "A. Wrong. B. Right."
    claims = [claim for claim in stated_choices(prepared, options) if claim.is_stated or not judged]
    return label if {claim.label for claim in claims} <= {label, None} else None


def _judged(answer: str, prepared: str, options: ChoiceOptions) -> Iterator[int]:
    if len(options.forms) < _FEWEST or len(options.letters) != len(options.forms):
        return
    verdicts = dict(_verdicts(answer, options))
    right = [label for label, is_right in verdicts.items() if is_right]
    others = [is_right for is_right in verdicts.values() if not is_right]
    # A list of options is no verdict on them. Two of them never read the same, as two verdicts do.
    is_told = not options.are_letters or (None not in others and len(others) >= len(options.forms) - 1)
    if len(right) == 1 and len(verdicts) == len(options.forms) and is_told:
        yield right[0]
    if right or "?" in answer or _SUPPOSES.search(answer) or voices_doubt(answer):
        return
    only = _ALL_BUT.fullmatch(prepared)
    label = options.letters.get(only["letter"]) if only else None
    if label is not None:
        yield label


def _walked(answer: str, options: ChoiceOptions) -> Iterator[int]:
    """The one option of which a walk over several asks and says yes; nothing may follow that."""
    asked = [*_ASKED.finditer(answer)] if answer.count("?") > 1 else []
    if len(asked) < _FEWEST - 1 or len(asked) != answer.count("?") or asked[0].start() > 0:
        return
    labels = [_named_in(found["name"], options) for found in asked]
    right = [label for label, found in zip(labels, asked, strict=True) if found["right"]]
    rests = " ".join(found["rest"] for found in asked if found["right"]) + answer[asked[-1].end() :]
    is_plain = None not in labels and len({*labels}) == len(labels) and len(right) == 1
    if (
        is_plain
        and right[0] is not None
        and not (voices_doubt(answer) or is_taken_back(rests, right[0], options))
    ):
        yield right[0]


def _named_in(name: str, options: ChoiceOptions) -> int | None:
    while lead := _ASKS.match(name):
        name = name[lead.end() :]
    return options.being(name)


def _ticked(answer: str) -> str:
    """Boxes that are ticked or not, as marks of right and wrong."""
    return _TICK.sub(
        lambda box: f"{box[1]}{box['option']} {_RIGHT[0] if box['right'] else _WRONG[0]}", answer
    )


def _with_bold_ticked(answer: str, options: ChoiceOptions) -> str:
    """A list of all options, of which one line is in bold, with a mark behind that one."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    items = [_BOLD_ITEM.fullmatch(line) for line in lines]
    letters = [item["letter"] for item in items if item]
    if letters != [*options.letters] or len(letters) != len(lines):
        return answer
    marks = (_RIGHT[0] if line.startswith("**") and line.endswith("**") else _WRONG[0] for line in lines)
    return "\n".join(f"{line.strip('*')} {mark}" for line, mark in zip(lines, marks, strict=True))


def _verdicts(answer: str, options: ChoiceOptions) -> Iterator[tuple[int, bool | None]]:
    """Of each line that begins with an option, whether it says that this one is right; None: neither.

    None at all where options themselves begin so, as in "Yes, because ...".
    """
    if any(_VERDICT.match(form) for form in options.forms):
        return
    for line in _ITEMS.split(answer):
        found = _LINE.match(line) if len(line) < _MAX_LINE else None
        label = options.letters.get(found["letter"].upper()) if found else None
        if found is None or label is None or not (found["behind"] or _IN_CHINESE.match(found["rest"])):
            continue
        signs = {sign in _RIGHT for sign in line if sign in _RIGHT or sign in _WRONG}
        if len(signs) == 1:
            yield label, signs.pop()
        elif not signs and not _SUPPOSES.search(line):
            rest = found["rest"]
            whole = _VERDICT.match(rest)
            if options.are_letters:
                # What follows may be the text of the option: "No, because it was late".
                whole = whole if whole and not rest[whole.end() :].strip(_ENDS) else None
            verdict = whole or _LAST_VERDICT.search(rest)
            yield label, verdict["right"] is not None if verdict else None


def settled_choice(prepared: str, options: ChoiceOptions) -> int | None:
    """The choice on which the first sentence or the last one settles, in few words."""
    labels = {*_settled(prepared, options)}
    return labels.pop() if len(labels) == 1 else None


def _settled(prepared: str, options: ChoiceOptions) -> Iterator[int]:
    """Of the first sentence and the last one: what is between them may tell of any option."""
    muses = _MUSES.match(prepared)
    if muses and (label := options.being(prepared[muses.end() :])) is not None:
        yield label
    sentences = [*_sentences(prepared)]
    for start, sentence in dict.fromkeys((*sentences[:1], *sentences[-1:])):
        label = _settling(sentence, options)
        rest = prepared[start + len(sentence) :].lstrip(_ENDS)
        if label is None or is_taken_back(first_sentence(rest), label, options):
            continue
        if not is_undone(rest, label, options):
            yield label


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for found in (*_SENTENCE_ENDS.finditer(text), None):
        end = found.start() if found else len(text)
        if text[start:end].strip(_ENDS):
            yield start, text[start:end]
        start = found.end() if found else end


def _settling(sentence: str, options: ChoiceOptions) -> int | None:
    sentence = _TURN.split(sentence)[-1].strip()
    *reason, conclusion = _ARROW.split(sentence)
    if len(reason) == 1 and reason[0].strip():
        label = options.being(conclusion)
        return label if {name.label for name in options.names_in(reason[0])} <= {label} else None
    led = _LED_BY_REASON.fullmatch(sentence)
    if led and led["letter"] in options.letters:
        label = options.letters[led["letter"]]
        others = {name.label for name in options.names_in(led["reason"])}
        return label if not others or (DENIAL_WORDS.search(led["reason"]) and label not in others) else None
    before = _CHOOSES.match(sentence)
    start = before.end() if before else 0
    for at in {start, 0}:
        for named in options.named_at(sentence, at):
            if named.label is None:
                continue
            for end in {named.end, _behind_text(sentence, named, options)}:
                tail = _SETTLES.match(sentence, end)
                rest = sentence[tail.end() if tail else end :].strip(_ENDS)
                is_none = options.forms[named.label] in ("yes", "no") and _OF_A_NOUN.match(sentence, end)
                if not rest and not is_none and (tail or not _ONLY_NAMES.fullmatch(sentence[:at])):
                    return named.label
    return settled_abroad(sentence, options)


def _behind_text(sentence: str, named: Named, options: ChoiceOptions) -> int:
    """Behind "B, the ribosome", where both are the same choice."""
    if not named.is_letter:
        return named.end
    if options.are_letters:
        some = _SOME_TEXT.match(sentence, named.end)
        return some.end() if some and not _NO_TEXT.search(some["text"]) else named.end
    if not sentence.startswith((", ", " - "), named.end):
        return named.end
    start = named.end + len(sentence[named.end :]) - len(sentence[named.end :].lstrip(" ,-"))
    same = (other for other in options.named_at(sentence, start) if other.label == named.label)
    return next((other.end for other in same if not other.is_letter), named.end)
