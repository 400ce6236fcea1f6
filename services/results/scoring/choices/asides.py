"""Parts of an answer that name choices without choosing, or that say nothing about the question."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from services.results.scoring.answer_text import caseless
from services.results.scoring.answer_words import CERTAINTY, COURTESY, has_one_of
from services.results.scoring.choices.statements import statements

# What a list of the options leaves behind, as a sentence of its own.
_LISTED = "\n(…).\n"
_ITEM = re.compile(
    r"^[ \t>#•-]*(?:(?:option|choice|answer)[ \t]+)?(?:\(([A-Z])\)|\[([A-Z])\]|([A-Z])(?:[).:\]]"
    r"|[ \t]-(?=[ \t])))[ \t]*(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
# Before an option that is no more an item of the list.
_LEADS_IN = re.compile(
    r"\b(?:is|are|be|answer|option|choice|choose|select|match|conclusion)\W*\Z", re.IGNORECASE
)
_GOES_ON = re.compile(r"(?:[ \t]+|[ \t]*[•-][ \t]+)\S")
_WORDS_OF_VIEWS = (
    "often ",
    "commonly",
    "frequently",
    "mistak",
    "wrong",
    "incorrect",
    "onfuse",
    "might ",
    "may ",
)
_WRONGLY = "(?:(?:often|commonly|frequently|mistakenly|wrongly|incorrectly|may|might) )"
_IS_WRONG = (
    r",? (?:but|and) (?:that|this|it)(?:'s| is) (?:a )?(?:common |popular )?"
    "(?:mistake|misconception|error|wrong|incorrect)"
)
# Of no sentence that goes on to say what is right.
_VIEW = re.compile(
    r"(\A|[.!?\n]\s+)(?:many|most|some|a lot of|lots of)? ?(?:people|students|others)? ?"
    rf"(?:(?:{_WRONGLY}+(?:think|believe|assume|say|guess|pick|choose)|{_WRONGLY}*(?:confuse|mistake))\b"
    rf"[^.!?,;\n]*(?:{_IS_WRONG})?"
    rf"|(?:think|believe|assume|say|guess)\b[^.!?,;\n]*{_IS_WRONG})[.!](?:\s+|\Z)",
    re.IGNORECASE,
)
# "Although some say yes, the evidence is against it."
_CONCESSION = re.compile(
    r"\b(?:although|though|even though|while|whereas) (?:some|many|most|a few|others|people|critics"
    r"|opponents|it is (?:often|sometimes|commonly))"
    r"(?: \w+){0,3}? (?:say|think|believe|argue|claim|assume|suggest|said|thought|believed|argued"
    r"|claimed)\b[^.!?;\n,]*,\s+",
    re.IGNORECASE,
)
_WORDS_OF_CONCESSIONS = ("hough ", "hile ", "hereas ")
# What is nearly right, or next: "B, although A is tempting", "The second-best would be C."
_NEARLY = re.compile(
    r",? (?:although|though|even though|while|but) (?:the )?(?:option |choice "
    r"|answer )?\(?[A-J]\)? (?:is|was|seems|looks|may be|might be)"
    r" (?:an? |the )?(?:very |most |rather |quite )?(?:tempting|close|common|attractive|popular"
    r"|plausible-looking)(?: \w+){0,3}(?=[.!\n]|\Z)"
    r"|(?<=[.!?;]\s)(?:the |my |a )?(?:second[- ](?:best|choice)|next[- ]best"
    r"|runner[- ]up)\b[^.!?\n]*(?:[.!?\n]|\Z)",
    re.IGNORECASE,
)
_WORDS_OF_NEARLY = (
    "tempting",
    "close",
    "common",
    "attractive",
    "popular",
    "plausible-",
    "second",
    "ext",
    "unner",
)
_NO_DOUBT = re.compile(
    r",? (?:there(?:'s| is) )?(?:absolutely )?no (?:doubt|question|reason)\b(?: (?:about (?:it|that)"
    r"|to [^.!?\n]*|that [^.!?\n]*))?(?=[.!\n]|\Z)",
    re.IGNORECASE,
)
_PROMISE = re.compile(
    r"\A\W*(?:yes|yeah|no)\W{1,3}(?:(?:of course|sure|certainly|absolutely)\W{1,3})?"
    r"(?:i(?:'d| would|'m| am)(?: be)? (?:happy|glad|delighted|pleased|love) to"
    r"|i(?:'ll| can| will) (?:help|assist)"
    r"|i understand(?=[.!])|(?:that(?:'s| is) an? )?(?:great|good|interesting) question"
    r"|let(?:'s| me| us) (?:think|see|check|look|work|analy[sz]e|break|help|consider|examine))"
    r"(?:(?!\b(?:yes|no)\b)[^.!?:\n]){0,80}(?:[.!?:\n]\s*|\Z)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?\n]+\s*|\Z)")


def without_lists(text: str, letters: Mapping[str, int]) -> str:
    """Without lists of the options by their letters: they conclude nothing."""
    spans = [*_lists(text, letters)]
    parts, end = [], 0
    for start, stop in spans:
        parts += [text[end:start], _LISTED]
        end = stop
    return "".join([*parts, text[end:]]) if spans else text


def _lists(text: str, letters: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Runs of two and more letters in order, from the first to the end of the last."""
    run: list[tuple[int, int]] = []
    last = -1
    for item in _ITEM.finditer(text):
        label = letters.get((item[1] or item[2] or item[3]).upper())
        if label is None:
            continue
        if label <= last or (run and _LEADS_IN.search(text, run[-1][1], item.start())):
            yield from _span(text, run)
            run = []
        run.append((item.start(), _end_of_line(text, item.end())))
        last = label
    yield from _span(text, run)


def _span(text: str, run: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    if len(run) < 2:
        return
    between = "\n".join(text[end:start] for (_, end), (start, _) in pairwise(run))
    if any(statements(caseless(between))):
        # Only the items: between them there is more than what they say.
        yield from run
        return
    end = run[-1][1]
    while _GOES_ON.match(text, end):
        end = _end_of_line(text, end)
    yield run[0][0], end


def _end_of_line(text: str, start: int) -> int:
    found = _LINE.match(text, start)
    return found.end() if found else len(text)


def without_views(text: str) -> str:
    """Without sentences that say what others wrongly think: "People often confuse it with London"."""
    text = _CONCESSION.sub("", text) if has_one_of(text, _WORDS_OF_CONCESSIONS) else text
    text = _NEARLY.sub("", text) if has_one_of(text, _WORDS_OF_NEARLY) else text
    return _VIEW.sub(r"\1", text) if has_one_of(text, _WORDS_OF_VIEWS) else text


def without_promise(text: str) -> str:
    """Without a first sentence that only agrees to answer: "Yes, I'd be happy to help!"."""
    text = _NO_DOUBT.sub("", text) if "no " in text else text
    return _PROMISE.sub("", text, count=1)


def without_courtesies(rest: str, names_a_choice: re.Pattern[str]) -> str:
    """Without offers to help and degrees of certainty, unless they name a choice."""
    if not rest:
        return rest
    rest = CERTAINTY.sub(" ", rest)
    kept = [
        sentence
        for sentence in _SENTENCE.findall(rest)
        if not COURTESY.match(sentence) or names_a_choice.search(sentence)
    ]
    return "".join(kept)
