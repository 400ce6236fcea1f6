"""`proctor judge`: a model judges the answers of a run."""

from dataclasses import dataclass
from typing import Annotated

import typer

from proctor.cli.gateway import Session
from proctor.cli.options import PROJECT_METAVAR, RunIdArgument, read_project
from proctor.cli.render.words import option_value
from proctor.cli.runs.judge_prompt import prompt_or_document
from proctor.cli.runs.order import PRIORITY_HELP
from proctor.cli.runs.run import submit_and_follow
from proctor.exit_codes import ExitCode
from proctor.v1 import run_pb2
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.wire.well_known import unless_empty


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """Options: each field is one."""

    model: Annotated[str, typer.Option(help="The judge: provider/name, such as vllm/starter.")]
    prompt: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="correctness, helpfulness, faithfulness, refusal, style, safety, preference, or a file.",
        ),
    ]
    against: Annotated[
        str,
        typer.Option(
            metavar="RUN_ID",
            help="Compare each answer with that of this run, in both orders; takes --prompt preference.",
        ),
    ] = ""
    against_target: Annotated[
        bool,
        typer.Option(
            "--against-target",
            help="Compare each answer with its golden one, the target of the row; takes --prompt preference.",
        ),
    ] = False
    scale: Annotated[
        str, typer.Option(help="yes-no | 1-5 | labels:good=1,fair=0.5,poor=0; default: that of the prompt.")
    ] = ""
    repetitions: Annotated[
        int | None, typer.Option(min=1, max=MAX_ROLLOUTS, help="Verdicts on each answer.")
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="First N answers.")] = None
    project: Annotated[
        int | None,
        typer.Option(
            parser=read_project,
            metavar=PROJECT_METAVAR,
            help="Name or number of the project; default: that of the judged run.",
        ),
    ] = None
    priority: Annotated[str, typer.Option(help=PRIORITY_HELP)] = ""
    temperature: Annotated[
        float | None, typer.Option(help="0 to 2; default: 0, or 1 with several repetitions.")
    ] = None
    max_tokens: Annotated[
        int | None, typer.Option(help="Maximum number of tokens of a verdict with its reasons.")
    ] = None
    max_cost: Annotated[float | None, typer.Option(help="The run fails when its tokens cost this much.")] = (
        None
    )
    reuse_answers: Annotated[
        bool, typer.Option("--reuse-answers", help="Use stored verdicts of earlier runs.")
    ] = False
    stream_answers: Annotated[
        bool,
        typer.Option("--stream-answers", help="Stream answers over HTTP: times each first token, costs CPU."),
    ] = False
    base_url: Annotated[
        str, typer.Option(help="Send requests to this server; an operator has to allow it.")
    ] = ""
    name: Annotated[str, typer.Option(help="A name for the run, by which people find it.")] = ""


async def judge(
    session: Session,
    run_id: RunIdArgument,
    options: JudgeOptions,
    *,
    waits: Annotated[
        bool, typer.Option("--wait/--detach", help="Follow it to its end, or print its id and let it go on.")
    ] = True,
) -> ExitCode:
    """Judge the answers of a run by a model: its verdicts are a run of their own, with its figure."""
    order = _order(run_id, options)
    if options.project is None:
        order.project_id = (await session.client.run(run_id)).order.project_id
    labels = run_pb2.RunLabels(name=options.name)
    return await submit_and_follow(session, order, labels=labels, is_detached=not waits)


def _order(run_id: str, options: JudgeOptions) -> run_pb2.RunOrder:
    params = run_pb2.GenerationParams(temperature=options.temperature, max_tokens=options.max_tokens)
    return run_pb2.RunOrder(
        model=options.model,
        base_url=options.base_url,
        project_id=options.project or 0,
        judge=_judge(run_id, options),
        rollouts=options.repetitions,
        limit=options.limit,
        priority=option_value(run_pb2.Priority, options.priority, "--priority"),
        params=unless_empty(params),
        max_cost=options.max_cost,
        reuse_answers=options.reuse_answers,
        stream_answers=options.stream_answers,
    )


def _judge(run_id: str, options: JudgeOptions) -> run_pb2.Judge:
    prompt, text = prompt_or_document(options.prompt)
    return run_pb2.Judge(
        run_id=run_id,
        scale=options.scale,
        against_run_id=options.against,
        against_target=options.against_target,
        prompt=prompt,
        document=text,
    )
