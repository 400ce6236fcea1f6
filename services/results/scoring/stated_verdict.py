"""The verdict that a judge states at the end of its text: `Verdict: LABEL`, or JSON with a `verdict`."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proctor.values.judging.fence import without_fenced
from proctor.values.judging.scale import FIRST, OF_PAIRS, SECOND, Scale
from services.results.scoring.score import ScoringImpossible

# Of its own line: a verdict that is quoted in a sentence, or behind a mark of quotation, is not stated.
_NAMED = r"[*_#\s]*(?:(?:my|the)\s+)?(?:final\s+)?verdict\b[*_\s]*"
_LINE = re.compile(rf"{_NAMED}(?:[:：=→]|[-–—]\s|is\s)[*_\s]*(.+)", re.IGNORECASE)
_HEADING = re.compile(rf"{_NAMED}(?:[:：=][*_\s]*)?", re.IGNORECASE)
_GRADE_OF_HIGHEST = re.compile(r"([0-9]+)[*_\s]*(?:/|\(?out of)[*_\s]*([0-9]+)", re.IGNORECASE)
# A label that is explained in its own line: "yes (both name Paris)", "4 - clear", "No. It settles on 8."
_EXPLAINS = re.compile(r"[*_\"'`)\]]*(?:\s*[(（—–]|\s-\s|[.,;:]\s)")
_EXPLAINED = re.compile(r"(?:[(（—–]|\s-\s|[.;:]\s).+", re.DOTALL)
# What may take a verdict back, or make another one of it.
_HEDGES = re.compile(
    r"n't\b|\?|\b(?:not|but|however|although|though|except|unless|if|maybe|perhaps|possibly|partial(?:ly)?|partly"
    r"|mostly|almost|nearly|barely|or|to|otherwise|instead|rather|actually|wait|reservations?|reflection)\b",
    re.IGNORECASE,
)
# Lines of these behind the last one are rules.
_RULES = "-*_=~ \t\r"
_CODE_MARK = "```"
_VERDICT = "verdict"
_MAX_OBJECTS = 20
_JSON = "json"
_AROUND = " \t\"'`*_[](){}<>“”‘’「」✅❌✔✖✗✘☑\ufe0f"
_ENDS = ".!;。！"


@dataclass(frozen=True, slots=True)
class StatedVerdict:
    """Reads the last line of a text, or its JSON, by a scale.

    A verdict inside a quoted text is not read, neither is one of a text that was cut: its end is missing.
    """

    scale: Scale

    def check(self, targets: Sequence[str]) -> None:
        """A verdict is compared with no target."""

    def score(self, labels: Sequence[str], targets: Sequence[str]) -> float:  # noqa: ARG002  # as of a preference
        return self.scale.score(labels)

    def read(self, text: str, *, is_cut: bool = False) -> Sequence[str] | None:
        """The labels of the verdict: one, or of a rubric one for each question; None where none is stated."""
        own = _own(text)
        if is_cut or not own:
            return None
        words, _ = _stated(own)
        labels = [self._label(word) for word in self._parts(words)]
        found = [label for label in labels if label is not None]
        return found if len(found) == len(labels) == self.scale.verdicts else None

    def _parts(self, words: Sequence[str]) -> Sequence[str]:
        if self.scale.verdicts > 1 and len(words) == 1:
            words = words[0].split(",")
        return words

    def _label(self, word: str) -> str | None:
        """A label may itself have the signs that judges put around one; a grade may name the highest."""
        bare = word.lstrip(_AROUND).rstrip(_AROUND + _ENDS)
        label = self.scale.label_of(word) or self.scale.label_of(bare)
        grade = None if label else _GRADE_OF_HIGHEST.fullmatch(bare)
        if grade and self.scale.is_of_numbers:
            return self.scale.label_of(grade[1]) if grade[2] == [*self.scale.labels][-1] else None
        return label or self._explained(bare)

    def _explained(self, bare: str) -> str | None:
        """The label that a text begins with, where the rest explains it and names no other one."""
        if self.scale.verdicts > 1:
            return None
        for label in sorted(self.scale.labels, key=len, reverse=True):
            begun = re.match(re.escape(label), bare, re.IGNORECASE)
            behind = _EXPLAINS.match(bare, begun.end()) if begun else None
            if behind:
                rest = bare[behind.end() :]
                return None if _HEDGES.search(rest) or self._names_another(rest, label) else label
        return None

    def _names_another(self, text: str, label: str) -> bool:
        if self.scale.is_of_numbers:
            return any(map(str.isdigit, text))
        others = (re.escape(other) for other in self.scale.labels if other != label)
        return re.search(rf"(?<!\w)(?:{'|'.join(others)})(?!\w)", text, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class StatedPreference:
    """Which of two answers a judge prefers: `first`, `second` or a `tie`, by the places in which it saw them.

    The target is the place of the answer whose wins are counted.
    """

    def check(self, targets: Sequence[str]) -> None:
        """Raises ScoringImpossible for a target that is no place."""
        if not targets or targets[0] not in (FIRST, SECOND):
            raise ScoringImpossible(f"the target is neither {FIRST} nor {SECOND}")

    def score(self, labels: Sequence[str], targets: Sequence[str]) -> float:
        """1 for a win, 0.5 for a tie."""
        self.check(targets)
        of_first = OF_PAIRS.score(labels)
        return of_first if targets[0] == FIRST else 1.0 - of_first

    def read(self, text: str, *, is_cut: bool = False) -> Sequence[str] | None:
        return StatedVerdict(OF_PAIRS).read(text, is_cut=is_cut)


def reason_of(text: str) -> str:
    """What a judge says beside the verdict that it states; all of a text that states none."""
    _, reason = _stated(_own(text))
    return reason.strip()


def _own(text: str) -> str:
    """The judge's words, without what it quotes between marks and rules behind them."""
    lines = without_fenced(text).strip().split("\n")
    while len(lines) > 1 and not lines[-1].strip(_RULES):
        lines.pop()
    return "\n".join(lines)


def _stated(own: str) -> tuple[Sequence[str], str]:
    """The words of the verdict, and what is said beside them."""
    document = _json_of(own)
    if document is None:
        return _last_line(own)
    said = [value for name, value in document.items() if name != _VERDICT and isinstance(value, str)]
    return _document_words(document), "\n".join(said)


def _last_line(text: str) -> tuple[Sequence[str], str]:
    """What follows `Verdict:` in the last line, or is the last line below a heading `Verdict`."""
    *before, last = (_last_code_block(text).strip() or text).rsplit("\n", 1)
    found = _LINE.fullmatch(last.strip())
    if found and text.endswith(_CODE_MARK):
        # A longer block is quoted.
        return ([], text) if before else ([found[1]], _before_code_block(text))
    if found:
        explained = _EXPLAINED.search(found[1])
        return [found[1]], "\n".join([*before, *([explained[0].strip()] if explained else [])])
    *first, above = before[0].rstrip().rsplit("\n", 1) if before else [""]
    if _HEADING.fullmatch(above.strip()) and not text.endswith(_CODE_MARK):
        return [last], "".join(first)
    return [], text


def _document_words(document: dict[str, object]) -> Sequence[str]:
    verdict = document.get(_VERDICT)
    return [_word(one) for one in (verdict if isinstance(verdict, list) else [verdict])]


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _json_of(text: str) -> dict[str, object] | None:
    """The JSON object that the text is, or ends with in lines or a code block of its own; None for others."""
    for candidate in (text, _last_code_block(text), *_last_objects(text)):
        try:
            # Judges write line breaks into strings as they are.
            document = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            return document
    return None


def _last_code_block(text: str) -> str:
    """The code block that the text ends with; "" for other texts."""
    if not text.endswith(_CODE_MARK):
        return ""
    body = text.removesuffix(_CODE_MARK)
    block = body[body.rfind(_CODE_MARK) + len(_CODE_MARK) :].lstrip()
    return block[len(_JSON) :] if block[: len(_JSON)].lower() == _JSON else block


def _before_code_block(text: str) -> str:
    return text[: text.removesuffix(_CODE_MARK).rfind(_CODE_MARK)]


def _last_objects(text: str) -> Iterator[str]:
    """What may be an object that begins with a line and ends with the text."""
    if not text.endswith("}"):
        return
    at = len(text)
    for _ in range(_MAX_OBJECTS):
        at = text.rfind("\n{", 0, at)
        if at < 0:
            return
        yield text[at:]
