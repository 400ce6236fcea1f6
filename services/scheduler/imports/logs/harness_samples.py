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
# Of it a line has the log-probability, which counts once.
_PERPLEXITY = "perplexity"
# lm-evaluation-harness writes it for an answer in which a filter found nothing.
_UNREADABLE = "[invalid]"
# What stands between examples there, unless a task says otherwise.
_EXAMPLE_END = "\n\n"
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
        """The arguments of each request that has any."""
        given = self.fields.get("arguments")
        found = list(as_object(given).values()) or as_list(given)
        lists = (list(as_object(one).values()) or as_list(one) for one in found)
        return [one for one in lists if one]


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
    if name == _PERPLEXITY and (logprob := as_number(value)) is not None and logprob <= 0:
        return logprob, 1.0
    if isinstance(value, list) and len(value) == 2 and has_pairs(name):
        first, second = (as_number(each) for each in value)
        return None if first is None or second is None else (first, second)
    return as_number(value)


def output_type_of(line: SampleLine, config: Mapping[str, object]) -> OutputType:
    """Choices have a text as the second argument, generated text has parameters; a whole text has neither.

    One text may be the only choice, or all that is asked for: that the task says.
    """
    if _is_whole_text(line):
        return OutputType.LOGLIKELIHOOD_ROLLING
    second = [one[1] for one in line.arguments if len(one) > 1]
    is_choice = bool(second) and all(isinstance(one, str) for one in second)
    if not is_choice:
        return OutputType.GENERATE_UNTIL
    is_given = len(second) == 1 and config.get("output_type") == OutputType.LOGLIKELIHOOD
    return OutputType.LOGLIKELIHOOD if is_given else OutputType.MULTIPLE_CHOICE


def _is_whole_text(line: SampleLine) -> bool:
    """One text with a log-probability."""
    arguments = line.arguments
    is_one = len(arguments) == 1 and len(arguments[0]) == 1 and isinstance(arguments[0][0], str)
    return is_one and _only_number(line.fields.get("resps")) is not None


def row_of(line: SampleLine, output_type: OutputType) -> LoggedRow:
    arguments, doc = line.arguments, as_object(line.fields.get("doc")) or None
    if output_type is OutputType.LOGLIKELIHOOD_ROLLING:
        return LoggedRow(line.doc_id, Prompt(""), Target(choice=0), (as_text(arguments[0][0]),), doc)
    if output_type is OutputType.MULTIPLE_CHOICE and (ending := _ending(arguments)):
        shared, choices = _contexts(arguments)
        return LoggedRow(
            line.doc_id,
            Prompt(shared),
            _right_context(line, len(choices)),
            choices,
            doc,
            choice_ending=ending,
        )
    prompt = prompt_of(arguments[0][0]) if arguments else Prompt("")
    choices = () if output_type is OutputType.GENERATE_UNTIL else _choices(arguments)
    return LoggedRow(line.doc_id, prompt, _target(line.fields.get("target"), choices), choices, doc)


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


def _ending(arguments: Arguments) -> str:
    """The one text that follows several contexts, as in winogrande; "" where choices follow one context."""
    contexts = {as_text(one[0]) for one in arguments}
    endings = {as_text(one[1]) if len(one) > 1 else "" for one in arguments}
    return endings.pop() if 1 < len(arguments) == len(contexts) and len(endings) == 1 else ""


def _contexts(arguments: Arguments) -> tuple[str, tuple[str, ...]]:
    """The examples before all of them, and each with its ending."""
    begins = {"".join(as_text(one[0]).rpartition(_EXAMPLE_END)[:2]) for one in arguments}
    examples = begins.pop() if len(begins) == 1 else ""
    return examples, tuple(f"{one[0]}{one[1]}".removeprefix(examples) for one in arguments)


def _right_context(line: SampleLine, count: int) -> Target:
    """The log has its number, or tells it by whether the likeliest one is right."""
    number = as_number(line.fields.get("target"))
    if number is not None and number in range(count):
        return Target(choice=int(number))
    chosen, accuracy = _likeliest(line, count), line.scores.get("acc")
    if chosen is None or accuracy not in (0.0, 1.0):
        return Target()
    if accuracy == 1.0:
        return Target(choice=chosen)
    return Target(choice=1 - chosen) if count == 2 else Target()


def _likeliest(line: SampleLine, count: int) -> int | None:
    weighed = _weighed(line.fields.get("filtered_resps")) or _weighed(line.fields.get("resps"))
    logprobs = [each.logprob for each in weighed[:count]]
    return logprobs.index(max(logprobs)) if logprobs else None


def _choices(arguments: Arguments) -> tuple[str, ...]:
    """Of requests after the same text: others are asked for what a choice is worth without it."""
    if _ending(arguments):
        return _contexts(arguments)[1]
    return tuple(as_text(one[1]) for one in arguments if len(one) > 1 and one[0] == arguments[0][0])


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
    if output_type is OutputType.LOGLIKELIHOOD_ROLLING:
        logprob = _only_number(line.fields.get("resps"))
        weights = () if logprob is None else (ChoiceScore(logprob, is_greedy=False),)
        return LoggedAnswer(Answer(choices=weights), scores=scores)
    if output_type is not OutputType.GENERATE_UNTIL:
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


def _only_number(value: object) -> float | None:
    """The one number of a response, however deep it lies."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return as_number(value)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def filters_json(filters: Iterable[str]) -> str:
    """Their names; what they do is not in the log."""
    return json.dumps([{"name": name, "filter": []} for name in filters])
