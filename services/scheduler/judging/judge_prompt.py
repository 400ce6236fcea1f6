"""A judge prompt: what a judge is asked about an answer, and the form in which it states its verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.values.judging.fence import RULE, fence_code, fenced
from proctor.values.judging.scale import Scale
from services.scheduler.suites.templates.prompt_template import PromptTemplate

MAX_DOCUMENT_BYTES = 32 * 1024
_ROLE = "You judge answers that were given to a question."


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """`template` is Jinja over `question`, `target` and `answer`, each of which it gets between marks.

    `scale` is the one of orders that name none, in words. `questions` and `weights` are those of a rubric,
    whose every question is answered on the scale; empty for a single verdict.
    """

    name: str
    version: str
    description: str
    scale: str
    template: PromptTemplate
    questions: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def is_of_pairs(self) -> bool:
        """It compares two answers, `first` and `second`, in place of judging one."""
        return "first" in self.template.fields

    @property
    def needs_target(self) -> bool:
        return "target" in self.template.fields

    def render(self, texts: Mapping[str, str], scale: Scale, *, is_constrained: bool = False) -> str:
        """What the judge is asked: the form of the verdict comes last, behind all that is quoted.

        `texts` are the question, the target and the answer. Raises `RowFault`.
        """
        code = fence_code({"prompt": self.template.source, **texts})
        quoted = {name: fenced(name, text, code) for name, text in texts.items()}
        asked = self.template.text(quoted).strip()
        form = _json_form(scale) if is_constrained else _line_form(scale)
        return "\n\n".join((f"{_ROLE} {RULE.format(code=code)}", asked, *self._rubric(), form))

    def _rubric(self) -> Sequence[str]:
        if not self.questions:
            return ()
        listed = "\n".join(f"{number}. {question}" for number, question in enumerate(self.questions, 1))
        return (f"Answer each of these questions about the answer:\n{listed}",)


def _line_form(scale: Scale) -> str:
    count = scale.verdicts
    line = "Verdict: LABEL" if count == 1 else f"Verdict: {', '.join(['LABEL'] * count)}"
    each = "" if count == 1 else f", one for each of the {count} questions, in their order"
    return (
        "First give your reasons in a few sentences. Then end with one line of this form, with nothing behind"
        f" it:\n{line}\nwhere LABEL is {_choices(scale)}{each}."
    )


def _json_form(scale: Scale) -> str:
    count = scale.verdicts
    labels = ", ".join(['"LABEL"'] * count)
    shown = labels if count == 1 else f"[{labels}]"
    each = "" if count == 1 else f", one for each of the {count} questions, in their order"
    return (
        f'Reply with one JSON object and nothing else: {{"reason": "a few sentences", "verdict": {shown}}}\n'
        f"where LABEL is {_choices(scale)}{each}."
    )


def _choices(scale: Scale) -> str:
    labels = [*scale.labels]
    return f"{', '.join(labels[:-1])} or {labels[-1]}{_ends(scale)}"


def _ends(scale: Scale) -> str:
    """Which of the numbers is the best, where scores rise or fall all along the scale."""
    labels, scores = [*scale.labels], [*scale.labels.values()]
    rises, falls = scores == sorted(scores), scores == sorted(scores, reverse=True)
    if rises == falls or not all(label.isdigit() for label in labels):
        return ""
    worst, best = (labels[0], labels[-1]) if rises else (labels[-1], labels[0])
    return f" ({worst} is the worst, {best} the best)"


def verdict_schema(scale: Scale) -> Mapping[str, object]:
    """The JSON schema of a verdict: the reason comes first, so that the judge thinks before it decides."""
    label: Mapping[str, object] = {"type": "string", "enum": [*scale.labels]}
    count = scale.verdicts
    several = {"type": "array", "items": label, "minItems": count, "maxItems": count}
    return {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "verdict": label if count == 1 else several},
        "required": ["reason", "verdict"],
        "additionalProperties": False,
    }
