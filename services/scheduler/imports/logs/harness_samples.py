"""A line of the samples of lm-evaluation-harness, in the forms that its releases since 0.3 have written."""

import ast
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.sample import ChatMessage, Prompt, Target
from proctor.values.scoring import OutputType
from services.scheduler.imports.logged_run import LoggedAnswer, LoggedScore, has_pairs
from services.scheduler.imports.logs.document import as_list, as_number, as_object, as_text
from services.scheduler.imports.logs.sample_writer import LoggedRow

# The filter of a task that has none.
NO_FILTER = "none"
# What a line has beside its metrics, where it does not name them.
_FIELDS = frozenset(
    [
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "prompt", "task", "task_name", "schema_version"),
    ]
)
# The metric of a run that asked and did not score.
_BYPASS = "bypass"
# lm-evaluation-harness writes it for an answer in which a filter found nothing.
_UNREADABLE = "[invalid]"
# A target is Python's text of a list; a longer one is a text.
_MAX_LITERAL = 100_000

Arguments = Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class SampleLine:
    """`scores` by the metric's own name."""

    doc_id: int
    filter: str
    scores: Mapping[str, LoggedScore]
    fields: Mapping[str, object]

    @property
    def arguments(self) -> Arguments:
        """The arguments of each request."""
        given = self.fields.get("arguments")
        found = list(as_object(given).values()) or as_list(given)
        return [list(as_object(one).values()) or as_list(one) for one in found]


def sample_line(value: object, number: int) -> SampleLine:
    fields = as_object(value)
    doc_id = as_number(fields.get("doc_id"))
    named = as_list(fields.get("metrics"))
    metrics = [as_text(one) for one in named] if named else [one for one in fields if one not in _FIELDS]
    scores = {name: score for name in metrics if (score := _score(name, fields.get(name))) is not None}
    return SampleLine(
        int(doc_id) if doc_id is not None and 0 <= doc_id < 2**53 else number,
        as_text(fields.get("filter")) or NO_FILTER,
        scores,
        fields,
    )


def _score(name: str, value: object) -> LoggedScore | None:
    """A number; or a pair, where the figure of a metric of ours is made of pairs."""
    if name == _BYPASS or isinstance(value, str):
        return None
    if isinstance(value, list) and len(value) == 2 and has_pairs(name):
        first, second = (as_number(each) for each in value)
        return None if first is None or second is None else (first, second)
    return as_number(value)


def output_type_of(line: SampleLine) -> OutputType:
    """Choices have a text as the second argument, generated text has parameters."""
    second = [one[1] for one in line.arguments if len(one) > 1]
    is_choice = bool(second) and all(isinstance(one, str) for one in second)
    return OutputType.MULTIPLE_CHOICE if is_choice else OutputType.GENERATE_UNTIL


def row_of(line: SampleLine, output_type: OutputType) -> LoggedRow:
    arguments = line.arguments
    prompt = prompt_of(arguments[0][0]) if arguments and arguments[0] else Prompt("")
    choices: tuple[str, ...] = ()
    if output_type is OutputType.MULTIPLE_CHOICE:
        choices = _choices(arguments)
    doc = line.fields.get("doc")
    target = _target(line.fields.get("target"), choices)
    return LoggedRow(line.doc_id, prompt, target, choices, as_object(doc) or None)


def prompt_of(value: object) -> Prompt:
    """Requests to chats are JSON of their messages, which some releases put into a list."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    text = value if isinstance(value, str) else json.dumps(value)
    if not text.startswith('[{"role"'):
        return Prompt(text)
    try:
        turns = [as_object(each) for each in as_list(json.loads(text))]
    except (ValueError, RecursionError):
        return Prompt(text)
    return Prompt(None, tuple(_turn(turn) for turn in turns))


def _turn(turn: Mapping[str, object]) -> ChatMessage:
    content = turn.get("content")
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content)
    return ChatMessage(as_text(turn.get("role")) or "user", text)


def _choices(arguments: Arguments) -> tuple[str, ...]:
    """Of requests after the same text: others are asked for what a choice is worth without it."""
    first = arguments[0][0]
    return tuple(as_text(one[1]) for one in arguments if len(one) > 1 and one[0] == first)


def _target(value: object, choices: Sequence[str]) -> Target:
    read = _literal(value) if isinstance(value, str) and value[:1] == "[" else value
    if not choices:
        texts = as_list(read)
        are_texts = bool(texts) and all(isinstance(each, str) for each in texts)
        return Target(texts=tuple(map(str, texts)) if are_texts else (_as_text(value),))
    found = [_index(each, choices) for each in (as_list(read) or [read])]
    right = sorted({index for index in found if index is not None})
    if len(found) > 1 or isinstance(read, list):
        return Target(right_choices=tuple(right))
    # One continuation is the right one: what is scored is how likely it is.
    only = 0 if len(choices) == 1 and not right else None
    return Target(choice=right[0] if right else only)


def _literal(text: str) -> object:
    if len(text) > _MAX_LITERAL:
        return text
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return text
    return value if isinstance(value, list) else text


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _index(value: object, choices: Sequence[str]) -> int | None:
    """A choice by its number or by its text."""
    if isinstance(value, str):
        said = [choice.strip() for choice in choices]
        if value.strip() in said:
            return said.index(value.strip())
    number = as_number(value)
    return int(number) if number is not None and 0 <= number < len(choices) else None


def answers_of(line: SampleLine, output_type: OutputType, scores: Mapping[str, LoggedScore]) -> LoggedAnswer:
    filtered = line.fields.get("filtered_resps")
    if output_type is OutputType.MULTIPLE_CHOICE:
        choices = _choices(line.arguments)
        weighed = (_weighed(filtered) or _weighed(line.fields.get("resps")))[: len(choices)]
        logprobs = [each.logprob for each in weighed]
        chosen = choices[logprobs.index(max(logprobs))].strip() if logprobs else ""
        # Weights of some choices would be taken for those of the first ones.
        kept = tuple(weighed) if all(map(math.isfinite, logprobs)) else ()
        return LoggedAnswer(Answer(choices=kept), scores=scores, prediction=chosen)
    said = next(_texts(line.fields.get("resps")), "")
    prediction = next(_texts(filtered), said)
    is_unparsed = prediction == _UNREADABLE
    return LoggedAnswer(
        Answer(said), scores=scores, prediction="" if is_unparsed else prediction, is_unparsed=is_unparsed
    )


def _weighed(value: object) -> list[ChoiceScore]:
    """Pairs of a log-likelihood and whether it is the greedy one, however deep they lie.

    What is no number there is minus infinity.
    """
    found: list[ChoiceScore] = []
    for each in as_list(value):
        pair = as_list(each)
        logprob = as_number(pair[0]) if len(pair) == 2 else None
        if logprob is not None or (len(pair) == 2 and str(pair[1]) in ("True", "False")):
            found.append(ChoiceScore(-math.inf if logprob is None else logprob, str(pair[1]) == "True"))
        else:
            found += _weighed(each)
    return found


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def filters_json(filters: Iterable[str]) -> str:
    """Their names; what they do is not in the log."""
    return json.dumps([{"name": name, "filter": []} for name in filters])
