"""Filters of a task that are Python code: they read answers in a sandbox, before metrics do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from proctor.values.outcome import Answer
from services.common.sandboxes.task_code.answers import Said
from services.common.sandboxes.task_code.ports import CodeFiles, CodeRunner
from services.results.scoring.answer_filters import FilterPipeline, text_for_code
from services.results.scoring.code.called_code import CalledCode, value_of
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.scoring.score import ScoringImpossible
from services.results.scoring.score_answer import without_reasoning


@dataclass(frozen=True, slots=True)
class AnswerToFilter:
    """`doc_json`: the row of the sample of this number in the run. `choices`: texts for other filters."""

    sample: int
    doc_json: str
    answer: Answer
    choices: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FilterCall:
    runner: CodeRunner
    scoring: CompiledScoring
    files: CodeFiles

    def filtered(self, given: Sequence[AnswerToFilter]) -> list[Mapping[str, object] | ScoringImpossible]:
        """What is left of each answer, by pipeline with code. Blocks."""
        code = CalledCode(self.runner, self.files, self._header(), self.scoring.code_time)
        return [self._left(said) for said in code.made([self._line(one) for one in given])]

    def _header(self) -> bytes:
        filters = {
            pipeline.name: [(*step.code.rsplit(":", 1), step.code_options) for step in pipeline.coded_steps]
            for pipeline in self.scoring.coded_pipelines
        }
        return json.dumps({"filters": filters}).encode() + b"\n"

    def _line(self, one: AnswerToFilter) -> bytes:
        answer = one.answer if self.scoring.keeps_reasoning else without_reasoning(one.answer)
        facts = {
            "answers": {
                pipeline.name: _text(pipeline, answer.text, one.choices)
                for pipeline in self.scoring.coded_pipelines
            },
            "number": one.sample,
        }
        return b'{"doc": %b, %b\n' % (one.doc_json.encode() or b"{}", orjson.dumps(facts)[1:])

    def _left(self, said: Said | ScoringImpossible) -> Mapping[str, object] | ScoringImpossible:
        if isinstance(said, ScoringImpossible):
            return said
        try:
            return {each.name: value_of(said, each.name) for each in self.scoring.coded_pipelines}
        except ScoringImpossible as impossible:
            return impossible


def _text(pipeline: FilterPipeline, text: str, choices: Sequence[str]) -> object:
    found = text_for_code(pipeline.before_code, text, choices)
    return found[0] if isinstance(found, list) and len(found) == 1 else found
