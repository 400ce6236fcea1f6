"""The samples of one task as lm-evaluation-harness logs them: a JSON object per document and filter.

The fields are those that its tools read (lm_eval/loggers/evaluation_tracker.py): every response is text, an
argument has a name, and the three hashes are SHA-256 over the document, the prompt and the target.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence

import orjson

from proctor.values.outcome import Answer, Failure
from proctor.values.scoring import OutputType
from services.results.export.exported_run import ExportedRun
from services.results.export.ports import OutcomeFormat
from services.results.outcomes.outcome import ListedOutcome
from services.results.runs.run_plan import TaskProvenance
from services.results.scoring.answer_filters import FilterPipeline, read_answer
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import without_reasoning

# lm-evaluation-harness writes it for an answer in which a filter found nothing.
UNREADABLE = "[invalid]"


class LmEvalFile:
    """A failure of the machinery is not a response, so it has no line."""

    def __init__(self, run: ExportedRun) -> None:
        plan = run.record.plan
        self._scorings = dict(zip((task.task for task in plan.tasks), plan.scorings, strict=True))

    def write(self, outcomes: Sequence[ListedOutcome]) -> bytes:
        lines = [line for one in outcomes for line in sample_lines(one, self._scorings[one.task.task])]
        return b"".join([orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines])


def sample_lines(listed: ListedOutcome, scoring: CompiledScoring) -> list[Mapping[str, object]]:
    result = listed.scored.outcome.result
    if isinstance(result, Failure):
        return []
    shared = _shared_fields(listed)
    if not scoring.keeps_reasoning:
        result = without_reasoning(result)
    if result.choices:
        is_whole = scoring.output_type is OutputType.LOGLIKELIHOOD_ROLLING
        # Of a whole text lm-evaluation-harness does not know whether it is the greedy one.
        responses: Sequence[object] = (
            [str(one.logprob) for one in result.choices] if is_whole else _weighed(result)
        )
        scores = _scores(listed, suffix="")
        return [{**shared, **_responses([[one] for one in responses], responses, "none"), **scores}]
    pipelines = scoring.filters or (FilterPipeline(),)
    lines: list[Mapping[str, object]] = []
    # Of several filters the prediction of the first is kept.
    for number, pipeline in enumerate(pipelines):
        read = _kept(listed, pipeline, number)
        filtered = [read or _prediction(pipeline, result.text, listed.sample.target.choice_texts)]
        scores = _scores(listed, suffix=f",{pipeline.name}" if len(pipelines) > 1 else "")
        lines.append({**shared, **_responses([[result.text]], filtered, pipeline.name), **scores})
    return lines


def _kept(listed: ListedOutcome, pipeline: FilterPipeline, number: int) -> str:
    """The prediction where it cannot be read again: of another tool's log, or by code; else ""."""
    if not listed.task.scoring.is_logged and not pipeline.coded_steps:
        return ""
    if number:
        return UNREADABLE if pipeline.coded_steps else ""
    return listed.scored.prediction or UNREADABLE


def _prediction(pipeline: FilterPipeline, text: str, choices: Sequence[str]) -> str:
    """A pattern that was just quick enough when the answer was scored may be too slow now."""
    try:
        prediction = read_answer(pipeline, text, choices)
    except ScoringImpossible:
        prediction = None
    return UNREADABLE if prediction is None else prediction


def _shared_fields(listed: ListedOutcome) -> Mapping[str, object]:
    sample = listed.sample
    doc = json.loads(sample.doc_json) if sample.doc_json else {}
    target, prompt = str(_target(sample.target)), sample.prompt.as_text
    return {
        "doc_id": sample.doc_id,
        "doc": doc,
        "target": target,
        "arguments": _arguments(prompt, listed),
        "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False)),
        "prompt_hash": _hash(prompt),
        "target_hash": _hash(target),
    }


def _arguments(prompt: str, listed: ListedOutcome) -> Mapping[str, Mapping[str, object]]:
    """One request per continuation, or one to be continued up to a stop."""
    target = listed.sample.target
    ending = target.choice_ending
    pairs: list[tuple[str, object]] = [
        (prompt + choice.removesuffix(ending), ending) if ending else (prompt, choice)
        for choice in target.choices
    ]
    if listed.task.scoring.output_type is OutputType.LOGLIKELIHOOD_ROLLING:
        return {f"gen_args_{index}": {"arg_0": text} for index, text in enumerate(target.choices)}
    pairs = pairs or [(prompt, _generation(listed.task.provenance))]
    return {
        f"gen_args_{index}": {"arg_0": first, "arg_1": second} for index, (first, second) in enumerate(pairs)
    }


def _generation(origin: TaskProvenance) -> Mapping[str, object]:
    known = {"until": list(origin.stop), "max_gen_toks": origin.max_tokens}
    if origin.temperature is None:
        return known
    return {**known, "do_sample": origin.temperature > 0, "temperature": origin.temperature}


def _target(target: ScoringTarget) -> object:
    if target.choice is not None:
        return target.choice
    if target.right_choices:
        return list(target.right_choices)
    return target.texts[0] if len(target.texts) == 1 else list(target.texts)


def _weighed(answer: Answer) -> Sequence[object]:
    pairs = [(choice.logprob, choice.is_greedy) for choice in answer.choices]
    return [[str(logprob), str(is_greedy)] for logprob, is_greedy in pairs]


def _responses(responses: object, filtered: object, pipeline: str) -> Mapping[str, object]:
    return {"resps": responses, "filtered_resps": filtered, "filter": pipeline}


def _scores(listed: ListedOutcome, suffix: str) -> Mapping[str, object]:
    """The metrics of one filter, by the names that they have in lm-evaluation-harness."""
    chosen = {
        name.removesuffix(suffix): value
        for name, value in listed.scored.scores.items()
        if name.endswith(suffix)
    }
    return {"metrics": list(chosen), **chosen}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _open(run: ExportedRun) -> LmEvalFile:
    return LmEvalFile(run)


LM_EVAL = OutcomeFormat(".jsonl", "application/jsonl", _open)
