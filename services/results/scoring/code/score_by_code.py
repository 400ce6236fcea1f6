"""Scores answers by the Python code of their task, in a sandbox, beside what is scored here."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from proctor.values.scoring import OutputType
from services.common.sandboxes.task_code.answers import Said
from services.common.sandboxes.task_code.inside.scoring import PROCESS_RESULTS
from services.common.sandboxes.task_code.ports import CodeFiles, CodeRunner
from services.common.threads.cancellable_threads import CancellableThreads
from services.results.scoring.answer_filters import FilterPipeline
from services.results.scoring.code.called_code import ANSWERS_PER_CALL, NOTHING, CalledCode, value_of
from services.results.scoring.code.filter_by_code import AnswerToFilter, FilterCall
from services.results.scoring.code.usable_numbers import UNUSABLE, is_usable
from services.results.scoring.compiled_scoring import CompiledMetric, CompiledScoring, ScoredMetric
from services.results.scoring.ports import AnswerToScore, Scored
from services.results.scoring.score import Score, ScoringImpossible, StoredValue

# Calls at a time; each has a sandbox of its own.
AT_A_TIME = 2
# JSON of what the code makes of an answer for its aggregation.
MAX_VALUE_BYTES = 64 * 1024
OFF = (
    "Python code of the task scores it, which is not executed here; its operator may set "
    "PROCTOR_TASK_CODE=sandbox"
)


@dataclass(frozen=True, slots=True)
class AnswerToCode:
    """`doc_json`: the row of the sample of this number in the run. `score`: what is scored here."""

    sample: int
    doc_json: str
    answer: AnswerToScore
    score: Score


@dataclass(frozen=True, slots=True)
class _Line:
    """An answer as one filter leaves it, which the code gets."""

    place: int
    pipeline: FilterPipeline
    json: bytes


@dataclass(frozen=True, slots=True)
class ScoreByCode:
    """`runner` None: the operator allows no code of tasks."""

    runner: CodeRunner | None = None
    threads: CancellableThreads = field(default_factory=lambda: CancellableThreads(AT_A_TIME))

    async def filter(
        self, scoring: CompiledScoring, files: CodeFiles, given: Sequence[AnswerToFilter]
    ) -> Sequence[Mapping[str, object] | ScoringImpossible]:
        """What the filters by code leave of answers, by pipeline, in the order of the answers."""
        if self.runner is None:
            return [ScoringImpossible(OFF)] * len(given)
        filtered: list[Mapping[str, object] | ScoringImpossible] = []
        for start in range(0, len(given), ANSWERS_PER_CALL):
            part = given[start : start + ANSWERS_PER_CALL]
            filtered += await self.threads.run(FilterCall(self.runner, scoring, files).filtered, part)
        return filtered

    async def score(
        self, scoring: CompiledScoring, files: CodeFiles, given: Sequence[AnswerToCode]
    ) -> Sequence[Scored]:
        """Scores with what the code adds, in the order of the answers."""
        if self.runner is None:
            return [ScoringImpossible(OFF)] * len(given)
        scored: list[Scored] = []
        for start in range(0, len(given), ANSWERS_PER_CALL):
            part = given[start : start + ANSWERS_PER_CALL]
            scored += await self.threads.run(_Call(self.runner, scoring, files).scores, part)
        return scored


@dataclass(frozen=True, slots=True)
class _Call:
    runner: CodeRunner
    scoring: CompiledScoring
    files: CodeFiles

    def scores(self, given: Sequence[AnswerToCode]) -> list[Scored]:
        lines = [line for place, one in enumerate(given) for line in self._lines(place, one)]
        made = self._code.made([line.json for line in lines]) if self._functions() else [NOTHING] * len(lines)
        values: list[dict[str, StoredValue]] = [{} for _ in given]
        faults: dict[int, ScoringImpossible] = {}
        for line, said in zip(lines, made, strict=True):
            try:
                values[line.place] |= self._values(line, given[line.place], said)
            except ScoringImpossible as impossible:
                faults.setdefault(line.place, impossible)
        return [faults.get(place) or _added(one.score, values[place]) for place, one in enumerate(given)]

    @property
    def _code(self) -> CalledCode:
        return CalledCode(self.runner, self.files, self._header(), self.scoring.code_time)

    def _functions(self) -> Mapping[str, Sequence[str]]:
        """Path and name by key."""
        named = {metric.name: metric.function for metric in self.scoring.coded_metrics if metric.function}
        if self.scoring.process_results:
            named = {PROCESS_RESULTS: self.scoring.process_results}
        return {key: name.rsplit(":", 1) for key, name in named.items()}

    def _header(self) -> bytes:
        functions = self._functions()
        options = {each.name: each.options for each in self.scoring.coded_metrics}
        scores = {key: options.get(key, {}) for key in functions}
        return json.dumps({"functions": functions, "scores": scores}).encode() + b"\n"

    def _lines(self, place: int, one: AnswerToCode) -> Iterator[_Line]:
        texts = one.answer[0].texts
        gold = texts[0] if len(texts) == 1 else texts
        for pipeline in self.scoring.pipelines:
            facts = {"results": self._results(pipeline, one), "gold": gold, "number": one.sample}
            row = b'{"doc": %b, %b\n' % (one.doc_json.encode() or b"{}", orjson.dumps(facts)[1:])
            yield _Line(place, pipeline, row)

    def _results(self, pipeline: FilterPipeline, one: AnswerToCode) -> Sequence[object]:
        if self.scoring.output_type is OutputType.GENERATE_UNTIL:
            return [one.score.read[pipeline.name]]
        if self.scoring.output_type is OutputType.LOGLIKELIHOOD_ROLLING:
            return [choice.logprob for choice in one.answer[1].choices]
        return [(choice.logprob, choice.is_greedy) for choice in one.answer[1].choices]

    def _values(
        self, line: _Line, one: AnswerToCode, said: Said | ScoringImpossible
    ) -> dict[str, StoredValue]:
        """Values by the keys of scores. Raises ScoringImpossible."""
        if isinstance(said, ScoringImpossible):
            raise said
        of_functions = {key: value_of(said, key) for key in self._functions()}
        processed = of_functions.get(PROCESS_RESULTS) if self.scoring.process_results else None
        found: dict[str, StoredValue] = {}
        for scored in self.scoring.scored_metrics:
            metric = scored.metric
            if scored.pipeline is not line.pipeline or not metric.coded:
                continue
            if self.scoring.process_results:
                value = processed.get(metric.name) if isinstance(processed, dict) else None
            elif metric.function:
                value = of_functions[metric.name]
            else:
                value = _pair(one, line)
            if value is not None:
                found[scored.key] = _checked(scored, value)
        return found


def _added(score: Score, found: Mapping[str, StoredValue]) -> Score:
    numbers = {key: value for key, value in found.items() if isinstance(value, float)}
    values = {key: value for key, value in found.items() if key not in numbers}
    return replace(score, scores={**score.scores, **numbers}, values={**score.values, **values}, read={})


def _pair(one: AnswerToCode, line: _Line) -> Sequence[object]:
    """As metrics of lm-evaluation-harness that leave all to their aggregation."""
    return [next(iter(one.answer[0].texts), ""), one.score.read[line.pipeline.name]]


def _checked(scored: ScoredMetric, value: object) -> StoredValue:
    """Raises ScoringImpossible for what is no number, or cannot be kept for the code's own aggregation."""
    if scored.metric.is_counted:
        return _counted(scored.metric, value)
    if isinstance(value, bool | int | float):
        if is_usable(value):
            return float(value)
        raise ScoringImpossible(
            f"the code of the task makes {value!s:.40} for {scored.metric.name}, {UNUSABLE}"
        )
    if not scored.metric.aggregation:
        raise ScoringImpossible(
            f"the code of the task makes a {type(value).__name__} for {scored.metric.name}, not a number"
        )
    return _kept(scored.metric, value)


def _counted(metric: CompiledMetric, value: object) -> list[float]:
    """A log-probability, and what it is divided by: 1 where the code gives no pair."""
    pair = value if isinstance(value, list) else [value, 1]
    numbers = [float(each) for each in pair if isinstance(each, int | float) and is_usable(each)]
    if len(pair) != 2 or len(numbers) != 2:
        raise ScoringImpossible(
            f"the code of the task makes {value!s:.40} for {metric.name}, not a log-probability with a length"
        )
    return numbers


def _kept(metric: CompiledMetric, value: object) -> StoredValue:
    try:
        size = len(orjson.dumps(value))
        # The other writes null for what is no number.
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ScoringImpossible(
            f"the code of the task makes a value for {metric.name} that cannot be kept: {error}"
        ) from error
    if size > MAX_VALUE_BYTES:
        raise ScoringImpossible(
            f"the code of the task makes a value of {size:,} bytes for {metric.name}; it may have "
            f"{MAX_VALUE_BYTES:,}"
        )
    assert isinstance(value, str | list | dict)
    return value
