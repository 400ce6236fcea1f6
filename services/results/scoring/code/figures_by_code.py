"""Makes figures of what all answers score by the Python code of their task, in a sandbox."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import orjson

from services.common.sandboxes.task_code.answers import Said, read_line, told
from services.common.sandboxes.task_code.ports import CodeEnded, CodeFiles, CodeRunner
from services.results.scoring.code.usable_numbers import UNUSABLE, is_usable
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.scoring.score import StoredValue

# The sample, or the cluster of samples, of an answer, and what it scores.
UnitScores = tuple[int, Mapping[str, StoredValue]]


@dataclass(frozen=True, slots=True)
class CodeFigure:
    """`draws` of a bootstrap over samples or clusters; none where the code takes too long or fails at one."""

    figure: float | None
    draws: Sequence[float] = ()
    problem: str = ""


def figures_by_code(
    runner: CodeRunner, scoring: CompiledScoring, files: CodeFiles, scores: Iterable[UnitScores]
) -> Mapping[str, CodeFigure]:
    """By the keys of the metrics that code aggregates. Blocks; raises CodeEnded."""
    wanted = {scored.key: scored.metric.aggregation for scored in scoring.aggregated_metrics}
    found: dict[str, CodeFigure] = {}
    with closing(runner.lines(files, _sent(wanted, scores))) as lines:
        for line in lines:
            said = read_line(line)
            if "end" in said:
                break
            if not isinstance(said.get("metric"), str) or said["metric"] not in wanted:
                raise CodeEnded("wrote a line that is no figure")
            found[said["metric"]] = _figure(said)
    return found


def _sent(wanted: Mapping[str, str], scores: Iterable[UnitScores]) -> Iterator[bytes]:
    functions = {key: name.rsplit(":", 1) for key, name in wanted.items()}
    yield json.dumps({"functions": functions, "aggregates": True}).encode() + b"\n"
    for unit, values in scores:
        own = {key: values[key] for key in wanted if values.get(key) is not None}
        yield orjson.dumps({"unit": unit, "values": own}) + b"\n"


def _figure(said: Said) -> CodeFigure:
    if isinstance(said.get("failed"), dict):
        return CodeFigure(None, problem=f"the code of the task {told(said['failed'])}")
    figure, draws = said.get("figure"), said.get("draws")
    if not isinstance(figure, int | float) or not isinstance(draws, list):
        raise CodeEnded("wrote a line that is no figure")
    if not all(isinstance(each, int | float) for each in draws):
        raise CodeEnded("wrote a draw that is no number")
    if not is_usable(figure):
        return CodeFigure(None, problem=f"the code of the task makes {figure!s:.40}, {UNUSABLE}")
    return CodeFigure(float(figure), draws if all(map(is_usable, draws)) else ())
