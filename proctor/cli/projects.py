"""`proctor projects`: declared projects and their members."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session, command_group
from proctor.cli.options import PROJECT_METAVAR, PageOption, read_project
from proctor.cli.render.table import Column, date_and_time, table, texts
from proctor.cli.render.terminal import say
from proctor.cli.render.words import option_value
from proctor.v1 import key_pb2, project_pb2, project_service_pb2
from proctor.wire.enums import shown_word

ProjectArgument = Annotated[
    int,
    typer.Argument(
        parser=read_project,
        metavar=PROJECT_METAVAR,
        help="Name or number, as `proctor projects list` shows them.",
    ),
]
MemberName = Annotated[str, typer.Argument(metavar="USER", help="The name that the user's keys prove.")]


async def create_project(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Unique, not digits alone.")],
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
) -> None:
    """Declare a project: its members and operators alone see what is in it."""
    request = project_service_pb2.CreateProjectRequest(name=name, note=note)
    session.terminal.show(await session.client.projects.CreateProject(request), _print_created)


async def list_projects(
    session: Session,
    *,
    page_size: Annotated[int, typer.Option(min=1, max=500, help="Projects per page.")] = 20,
    page: PageOption = "",
) -> None:
    """Show your projects by name; all of them for an operator."""
    request = project_service_pb2.ListProjectsRequest(page_size=page_size, page_token=page)
    session.terminal.show(await session.client.projects.ListProjects(request), _print_projects)


async def show_project(session: Session, *, project: ProjectArgument) -> None:
    """Show a project with its members, its limits and what it uses of them."""
    request = project_service_pb2.GetProjectRequest(project_id=project)
    session.terminal.show(await session.client.projects.GetProject(request), _print_project)


async def update_project(
    session: Session,
    *,
    project: ProjectArgument,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    note: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    max_open_runs: Annotated[
        int | None, typer.Option(min=0, help="Runs that may be open at once; 0 for no limit.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="What its runs may cost in all; 0 for no limit.")
    ] = None,
    max_cost_per_month: Annotated[
        float | None, typer.Option(min=0, help="What its runs may cost in a month; 0 for no limit.")
    ] = None,
    archive_after_days: Annotated[
        int | None,
        typer.Option(min=0, help="Days after which answers are archived; 0: as the installation does."),
    ] = None,
    archive_over_bytes: Annotated[
        int | None,
        typer.Option(
            min=0, help="Bytes of answers beyond which the oldest are archived; 0: as the installation does."
        ),
    ] = None,
    shared: Annotated[
        bool | None, typer.Option("--shared/--not-shared", help="Whether every user may read it.")
    ] = None,
) -> None:
    """Rename a project; operators also share it and set its limits."""
    limits = {
        "max_open_runs": max_open_runs,
        "max_cost": max_cost,
        "max_cost_per_month": max_cost_per_month,
        "archive_after_days": archive_after_days,
        "archive_over_bytes": archive_over_bytes,
    }
    request = project_service_pb2.UpdateProjectRequest(
        project_id=project,
        name=name,
        note=note,
        is_shared=shared,
        reset=[limit for limit, most in limits.items() if most == 0],
        **{limit: most for limit, most in limits.items() if most},  # type: ignore[arg-type]  # by its names
    )
    session.terminal.show(await session.client.projects.UpdateProject(request), _print_updated)


async def set_member(
    session: Session,
    *,
    project: ProjectArgument,
    of_user: MemberName,
    role: Annotated[str, typer.Option(help="viewer, runner or maintainer.")] = "runner",
) -> None:
    """Give a user a role in a project, or another one; for its maintainers and operators."""
    request = project_service_pb2.SetProjectMemberRequest(
        project_id=project,
        user=of_user,
        role=option_value(key_pb2.Role, role, "--role"),
    )
    session.terminal.show(await session.client.projects.SetProjectMember(request), _print_member)


async def remove_member(session: Session, *, project: ProjectArgument, of_user: MemberName) -> None:
    """Take a user's role away: the project is hidden from the user within a second."""
    request = project_service_pb2.RemoveProjectMemberRequest(project_id=project, user=of_user)
    removed = await session.client.projects.RemoveProjectMember(request)
    session.terminal.show(
        removed, lambda console, _: say(console, f"{of_user} is no member of the project any more.")
    )


def projects_group() -> typer.Typer:
    return command_group(
        {
            "create": create_project,
            "list": list_projects,
            "show": show_project,
            "update": update_project,
            "set-member": set_member,
            "remove-member": remove_member,
        },
        about="Declared projects, which only their members see.",
    )


def _print_created(console: Console, created: project_service_pb2.CreateProjectResponse) -> None:
    project = created.project
    say(console, f"Project {project.name} has the number {project.project_id}.")
    say(console, f"Members: proctor projects set-member {project.project_id} USER", style="dim")


def _print_projects(console: Console, found: project_service_pb2.ListProjectsResponse) -> None:
    if not found.projects:
        say(console, "There is no project that you are a member of.")
        return
    columns = (Column("name, note", "whole"), *texts("number", "your role"))
    rows = (
        (
            ", ".join(part for part in (project.name, project.note) if part),
            str(project.project_id),
            shown_word(key_pb2.Role, project.role),
        )
        for project in found.projects
    )
    console.print(table(console, columns, rows, "projects"))
    if found.next_page_token:
        say(console, f"The next page: --page {found.next_page_token}", style="dim")


def _print_project(console: Console, found: project_service_pb2.GetProjectResponse) -> None:
    project = found.project
    shared = "shared: every user reads it" if project.is_shared else ""
    facts = (f"{project.name} ({project.project_id})", project.note, shared)
    say(console, ", ".join(part for part in facts if part))
    for line in _limits(project, found.use):
        say(console, line)
    if not found.members:
        say(console, "It has no members: only operators see it.")
        return
    columns = (Column("user", "whole"), *texts("role", "given by", "since (UTC)"))
    rows = (
        (
            member.user,
            shown_word(key_pb2.Role, member.role),
            member.changed_by,
            date_and_time(member.changed_at),
        )
        for member in found.members
    )
    console.print(table(console, columns, rows, "members"))


def _limits(project: project_pb2.Project, use: project_pb2.ProjectUse) -> Iterator[str]:
    most = f" of at most {project.max_open_runs}" if project.HasField("max_open_runs") else ""
    yield f"Open runs: {use.open_runs}{most}"
    in_all = f" of at most {project.max_cost:g}" if project.HasField("max_cost") else ""
    a_month = f" of at most {project.max_cost_per_month:g}" if project.HasField("max_cost_per_month") else ""
    if in_all or a_month or use.cost:
        yield f"Cost: {use.cost:.6g}{in_all}, this month {use.cost_this_month:.6g}{a_month}"
    if project.HasField("archive_after_days"):
        yield f"Answers are archived after {project.archive_after_days} days"
    if project.HasField("archive_over_bytes"):
        yield f"Answers beyond {project.archive_over_bytes:,} bytes are archived, the oldest first"
    if use.reserved:
        yield f"Set aside for open runs: {use.reserved:.6g}"


def _print_updated(console: Console, changed: project_service_pb2.UpdateProjectResponse) -> None:
    say(console, f"Project {changed.project.name} is changed.")


def _print_member(console: Console, changed: project_service_pb2.SetProjectMemberResponse) -> None:
    member = changed.member
    say(console, f"{member.user} is a {shown_word(key_pb2.Role, member.role)} of the project.")
