"""The verdict that a judge states at the end of its text: `Verdict: LABEL`, or JSON with a `verdict`."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.judging.fence import without_fenced
from proctor.values.judging.scale import FIRST, OF_PAIRS, SECOND, Scale
from services.results.scoring.score import ScoringImpossible

# Of its own line: a verdict that is quoted in a sentence, or behind a mark of quotation, is not stated.
_NAMED = r"[*_#\s]*(?:(?:my|the)\s+)?(?:final\s+)?verdict\b[*_\s]*"
_LINE = re.compile(rf"{_NAMED}[:：=][*_\s]*(.+)", re.IGNORECASE)
_HEADING = re.compile(rf"{_NAMED}(?:[:：=][*_\s]*)?", re.IGNORECASE)
_GRADE_OF_HIGHEST = re.compile(r"([0-9]+)[*_\s]*(?:/|out of)[*_\s]*([0-9]+)", re.IGNORECASE)
_CODE_MARK = "```"
_JSON = "json"
_AROUND = " \t\"'`*_[](){}<>“”‘’「」"
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
        own = without_fenced(text).strip()
        if is_cut or not own:
            return None
        document = _json_of(own)
        words = _last_line_words(own) if document is None else _document_words(document)
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
        if grade and all(each.isdecimal() for each in self.scale.labels):
            return self.scale.label_of(grade[1]) if grade[2] == [*self.scale.labels][-1] else None
        return label


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


def _last_line_words(text: str) -> Sequence[str]:
    """What follows `Verdict:` in the last line, or is the last line below a heading `Verdict`."""
    *before, last = (_last_code_block(text).strip() or text).rsplit("\n", 1)
    found = _LINE.fullmatch(last.strip())
    if found:
        # A longer block is quoted.
        return [] if before and text.endswith(_CODE_MARK) else [found[1]]
    above = before[0].rstrip().rsplit("\n", 1)[-1] if before else ""
    return [last] if _HEADING.fullmatch(above.strip()) and not text.endswith(_CODE_MARK) else []


def _document_words(document: dict[str, object]) -> Sequence[str]:
    verdict = document.get("verdict")
    listed = verdict if isinstance(verdict, list) else [verdict]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in listed]


def _json_of(text: str) -> dict[str, object] | None:
    """The JSON object that the text is, or that the code block at its end holds; None for other texts."""
    for candidate in (text, _last_code_block(text)):
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
