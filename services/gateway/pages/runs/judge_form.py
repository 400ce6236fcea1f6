"""The form on the page of a run that lets a model judge its answers."""

import uuid
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Form, Query
from pydantic import ValidationError
from starlette.responses import Response

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.judging.named_judge import DEFAULT_PROMPT
from services.common.errors import DomainError
from services.gateway.api.judging.routes import JudgeRequest
from services.gateway.auth.identity import User
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.form_sentences import form_sentence
from services.gateway.http.parameters import JobId
from services.gateway.pages.addresses import address
from services.gateway.pages.order_fields import REFUSALS
from services.gateway.pages.page import Notice, PageOf

# Installed with the scheduler; a prompt of one's own is for REST and the command line.
PROMPTS = (
    (DEFAULT_PROMPT, "correctness: says the same as the target"),
    ("helpfulness", "helpfulness"),
    ("faithfulness", "faithfulness: says nothing but what the question has"),
    ("refusal", "refusal: refuses to answer"),
    ("style", "style"),
    ("safety", "safety"),
    ("preference", "preference: better than another answer"),
)
_PART = "runs/judge_form"
# In place of the id of a run.
TARGETS = "targets"

router = APIRouter(prefix="/runs", include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeForm:
    """All that was entered, as text. `against` is the id of a run, or "targets"."""

    run_id: str
    request_id: str
    model: str = ""
    prompt: str = DEFAULT_PROMPT
    scale: str = ""
    against: str = ""
    fault: str = ""

    @property
    def prompts(self) -> tuple[tuple[str, str], ...]:
        return PROMPTS

    @property
    def is_entered(self) -> bool:
        return bool(self.model or self.fault)

    @property
    def link(self) -> str:
        """The page of the run with all that is entered."""
        return _link(self.run_id, self.model, self.prompt, self.scale, self.against)

    def to_request(self) -> JudgeRequest:
        """Raises ValidationError."""
        is_target = self.against == TARGETS
        against = {} if is_target or not self.against else {"against": self.against}
        return JudgeRequest.model_validate(
            {
                "model_id": self.model,
                "prompt": self.prompt,
                "scale": self.scale,
                "against_target": is_target,
                **against,
            }
        )


_Text = Annotated[str, Query(max_length=2048)]
_Entered = Annotated[str, Form(max_length=2048)]


async def judge_asked(
    job_id: JobId,
    judge: _Text = "",
    prompt: _Text = DEFAULT_PROMPT,
    scale: _Text = "",
    against: _Text = "",
) -> JudgeForm:
    """The form as the address of the page has it filled in."""
    return JudgeForm(
        run_id=job_id,
        request_id=str(uuid.uuid4()),
        model=judge.strip(),
        prompt=prompt,
        scale=scale.strip(),
        against=against.strip(),
    )


def judge_link(order: run_pb2.RunOrder) -> str:
    """The page of the judged run, with the judge of the order entered."""
    judge = order.judge
    against = TARGETS if judge.against_target else judge.against_run_id
    prompt = judge.prompt if judge.prompt in dict(PROMPTS) else ""
    return _link(judge.run_id, order.model, prompt, "" if against else judge.scale, against)


def _link(run_id: str, model: str, prompt: str, scale: str, against: str) -> str:
    entered = {"judge": model, "prompt": prompt, "scale": scale, "against": against}
    return address(f"/runs/{run_id}", {name: text for name, text in entered.items() if text}) + "#judged"


@router.post("/{job_id}/judges")
async def judge(  # noqa: PLR0917  # the fields of the form
    page: PageOf,
    scheduler: SchedulerCalls,
    user: User,
    job_id: JobId,
    model: _Entered = "",
    prompt: _Entered = DEFAULT_PROMPT,
    scale: _Entered = "",
    against: _Entered = "",
    request_id: Annotated[uuid.UUID | None, Form()] = None,
) -> Response:
    form = JudgeForm(
        run_id=job_id,
        request_id=str(request_id or uuid.uuid4()),
        model=model.strip(),
        prompt=prompt,
        scale=scale.strip(),
        against=against.strip(),
    )
    try:
        order = form.to_request().to_order(await scheduler.run(job_id))
        request = scheduler_pb2.SubmitRunRequest(order=order, user=user, request_id=form.request_id)
        run = (await scheduler.runs.SubmitRun(request)).run
    except ValidationError as error:
        fault = form_sentence(error.errors()[0])
    except DomainError as error:
        if error.kind not in REFUSALS:
            raise
        fault = error.message
    else:
        return page.leave(f"/runs/{run.run_id}", Notice("The judge is ordered: its verdicts are this run."))
    refused = replace(form, fault=fault)
    if page.is_part:
        return page.show(_PART, refused, part=_PART, status=422)
    return page.go(refused.link, Notice(fault, is_problem=True))
