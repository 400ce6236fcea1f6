"""`proctor rollouts list`: orders of rollouts, newest first."""

from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from proctor.cli.gateway import Session
from proctor.cli.options import PageOption, ProjectFilter
from proctor.cli.render import words
from proctor.cli.render.table import RUN_ID_WIDTH, Cell, Column, date_and_time, table, texts, two_lines
from proctor.cli.render.terminal import say
from proctor.v1 import rollout_pb2, rollout_service_pb2, run_pb2
from proctor.values.names.suite_name import versioned_name
from proctor.values.plain import total_text
from proctor.wire.enums import word_of
from proctor.wire.rollout_orders import answering_model


@dataclass(frozen=True, slots=True)
class OrdersOptions:
    """Which orders are listed."""

    suite: Annotated[str, typer.Option(help="Only this suite, or a version of it: mine@2.")] = ""
    model: Annotated[str, typer.Option(help="Only this model, provider/name.")] = ""
    state: Annotated[str, typer.Option(help="Only orders with a run that is running, failed, …")] = ""
    project: ProjectFilter = None
    page_size: Annotated[int, typer.Option(min=1, max=100, help="Orders per page.")] = 20
    page: PageOption = ""


async def list_orders(session: Session, options: OrdersOptions) -> None:
    """List orders of rollouts, newest first, with their runs."""
    chosen = rollout_service_pb2.ListRolloutsOrdersRequest(
        suite=options.suite,
        model=options.model,
        state=words.option_value(run_pb2.RunState, options.state, "--state"),
        project_id=options.project,
    )
    is_filtered = bool(chosen.ListFields())
    chosen.page_size, chosen.page_token = options.page_size, options.page
    found = await session.client.rollouts.ListRolloutsOrders(chosen)
    if found.orders or options.page or session.terminal.is_json:
        session.terminal.show(found, print_orders)
    else:
        nothing = (
            "There is no such order of rollouts." if is_filtered else "There is no order of rollouts yet."
        )
        say(session.terminal.out, nothing)


def print_orders(console: Console, found: rollout_service_pb2.ListRolloutsOrdersResponse) -> None:
    """Two lines per order, and two per run, because ids take a whole line."""
    first = Column("tasks, order; model, run", min_width=RUN_ID_WIDTH)
    columns = (first, *texts("tasks × rollouts", "created (UTC)", "state, done"))
    cells = [line for order in found.orders for line in (_order(order), *map(_run, order.runs))]
    console.print(table(console, columns, cells))
    if found.next_page_token:
        more = f"{total_text(found.total)} in all; the next page: --page {found.next_page_token}"
        say(console, more, style="dim")


def _order(order: rollout_service_pb2.RolloutsOrder) -> tuple[Cell, ...]:
    agent = order.agent.template or word_of(rollout_pb2.AgentKind, order.agent.kind)
    if order.agent.verification == rollout_pb2.VERIFICATION_PLACE_SAME:
        agent += ", tests in its sandbox"
    most = "up to " if any(run.order.row_rollouts for run in order.runs) else ""
    return (
        two_lines(Text(versioned_name(order.suite, order.suite_version), "bold"), order.order_id),
        two_lines(f"{len(order.task_ids)} × {most}{order.rollouts}", f"agent {agent}"),
        date_and_time(order.created_at),
        "",
    )


def _run(run: run_pb2.Run) -> tuple[Cell, ...]:
    state = Text(words.state_word(run.state), words.STATE_STYLES.get(run.state, ""))
    done = f"{run.progress.recorded} of {run.progress.total}" if run.progress.total else ""
    return (two_lines(f"  {answering_model(run.order)}", f"  {run.run_id}"), "", "", two_lines(state, done))
