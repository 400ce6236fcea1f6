"""An order of a judge: its prompt is read, its scale settled, and how the verdict is asked of the engine."""

import hashlib
from dataclasses import replace

from proctor.values.judging.named_judge import DEFAULT_PROMPT, NamedJudge
from proctor.values.judging.scale import OF_PAIRS, PAIRS, Scale, read_scale
from proctor.values.priority import default_priority
from proctor.values.providers.pool import ConstrainedField, Pool
from services.common.errors import InvalidParameter
from services.scheduler.judging.judge import Judge
from services.scheduler.judging.judge_prompt import JudgePrompt
from services.scheduler.judging.ports import JudgePrompts
from services.scheduler.runs.orders.run_order import RunOrder

# They take a JSON schema for a single row.
_WITH_SCHEMAS = frozenset({"vllm", "ollama", "gemini"})


def judging_order(run_id: str, order: RunOrder, named: NamedJudge) -> RunOrder:
    """The order of a judge that an order names; `run_id` is the run of that order."""
    prompt = named.prompt or ("" if named.document else DEFAULT_PROMPT)
    return RunOrder(
        suite="",
        model=named.model,
        project_id=order.project_id,
        priority=default_priority(is_background=True),
        judge=Judge(run_id, prompt, named.scale, named.document, rollouts=order.rollouts),
    )


def resolve_judge(judge: Judge, prompts: JudgePrompts, pool: Pool) -> Judge:
    """The judge with all of its prompt, so that nothing that changes later changes the run.

    Raises `InvalidParameter`.
    """
    document = judge.document or prompts.document(judge.prompt)
    if document is None:
        known = ", ".join(prompts.names())
        sentence = f"There is no judge prompt {judge.prompt!r:.80}. Installed: {known}; or give a document."
        raise _refusal("prompt", sentence)
    try:
        prompt = prompts.read(document)
    except ValueError as error:
        raise _refusal("document", f"The judge prompt cannot be read: {error}.") from error
    _refuse_other_count(judge, prompt)
    scale = PAIRS if prompt.is_of_pairs else judge.scale or prompt.scale
    resolved = replace(judge, document=document, prompt=prompt.name, scale=scale)
    try:
        scale_of(resolved, prompt)
    except ValueError as error:
        raise _refusal("scale", f"The judge cannot be asked so: {error}.") from error
    digest = hashlib.sha256(document.encode(errors="replace")).hexdigest()
    return replace(resolved, version=prompt.version, digest=digest, is_constrained=_takes_schemas(pool))


def _refuse_other_count(judge: Judge, prompt: JudgePrompt) -> None:
    if judge.against_run_id and judge.against_target:
        raise _refusal(
            "against_target", "An answer is compared with that of a run or with its target: name one."
        )
    if prompt.is_of_pairs and not judge.is_of_pairs:
        sentence = (
            f"The judge prompt {prompt.name} compares two answers: name another run, or take the targets."
        )
        raise _refusal("against_run_id", sentence)
    if judge.is_of_pairs and not prompt.is_of_pairs:
        sentence = f"The judge prompt {prompt.name} shows one answer and compares no two. Take preference."
        raise _refusal("prompt", sentence)
    if prompt.is_of_pairs and judge.scale not in ("", PAIRS):
        raise _refusal("scale", f"The scale of pairs is {PAIRS}. Leave it out.")


def scale_of(judge: Judge, prompt: JudgePrompt) -> Scale:
    """Raises ValueError for a scale that cannot be read."""
    return OF_PAIRS if prompt.is_of_pairs else Scale(read_scale(judge.scale).labels, prompt.weights)


def _takes_schemas(pool: Pool) -> bool:
    return pool.engine in _WITH_SCHEMAS or pool.constrained_field is ConstrainedField.RESPONSE_FORMAT


def _refusal(field: str, sentence: str) -> InvalidParameter:
    return InvalidParameter(field=f"order.judge.{field}", sentence=sentence)
