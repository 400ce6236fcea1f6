"""`proctor datasets mappings`: mappings of columns that are saved by name, to be chosen for further files."""

from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.datasets.preview import IdOption, PromptOption, TargetOption
from proctor.cli.gateway import Session
from proctor.cli.options import ProjectFilter, StorageProject
from proctor.cli.program import program_name
from proctor.cli.render.table import date_and_time, table, texts
from proctor.cli.render.terminal import say
from proctor.v1 import dataset_service_pb2 as dataset_pb2

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the mapping; a project has it once.")
]


async def list_mappings(
    session: Session,
    *,
    by: Annotated[str, typer.Option(metavar="USER", help="Only those of this user.")] = "",
    project: ProjectFilter = None,
) -> None:
    """List the saved mappings of columns, the latest first."""
    request = dataset_pb2.ListMappingsRequest(user=by, project_id=project)
    found = await session.client.datasets.ListMappings(request)
    if found.mappings or session.terminal.is_json:
        session.terminal.show(found, _print)
    else:
        command = f"{program_name()} datasets save-mapping NAME --prompt TEXT"
        say(session.terminal.out, f"There is no saved mapping yet: `{command}` saves one.")


async def save_mapping(
    session: Session,
    *,
    name: NameArgument,
    prompt: PromptOption,
    target: TargetOption = "",
    row_id: IdOption = "",
    project: StorageProject = 0,
) -> None:
    """Save a mapping of columns under a name, in place of your own of that name."""
    mapping = dataset_pb2.ColumnMapping(prompt=prompt, target=target, id=row_id)
    request = dataset_pb2.SaveMappingRequest(name=name, mapping=mapping, project_id=project)
    saved = (await session.client.datasets.SaveMapping(request)).saved
    command = f"{program_name()} datasets upload FILE --mapping {saved.name}"
    session.terminal.report({"name": saved.name}, f"{saved.name} is saved: `{command}` uploads by it.")


async def delete_mapping(session: Session, *, name: NameArgument, project: StorageProject = 0) -> None:
    """Delete a saved mapping. Data sets that were mapped by it stay."""
    request = dataset_pb2.DeleteMappingRequest(name=name, project_id=project)
    await session.client.datasets.DeleteMapping(request)
    session.terminal.report({"name": name}, f"{name} is deleted.")


def _print(console: Console, found: dataset_pb2.ListMappingsResponse) -> None:
    rows = (
        (
            each.name,
            each.mapping.prompt,
            ", ".join(filter(None, (each.mapping.target, each.mapping.id))),
            each.user,
            date_and_time(each.saved_at),
        )
        for each in found.mappings
    )
    console.print(table(console, texts("name", "prompt", "target, id", "user", "saved (UTC)"), rows))
