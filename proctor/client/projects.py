"""Projects by their names: what a user writes in the place of a number, and what is shown in place of one."""

from collections.abc import Iterable, Mapping

from proctor.v1 import project_service_pb2
from proctor.v1 import project_service_pb2_grpc as project_grpc
from proctor.values.names.project import is_declared

_PAGE_SIZE = 500


async def number_of_project(stub: "project_grpc.ProjectServiceAsyncStub", named: int | str) -> int:
    """Of a declared project by its name; a number stays as it is. Raises `NotFound`."""
    if isinstance(named, int):
        return named
    found = await stub.GetProject(project_service_pb2.GetProjectRequest(name=named))
    return found.project.project_id


async def project_names(
    stub: "project_grpc.ProjectServiceAsyncStub", project_ids: Iterable[int]
) -> Mapping[int, str]:
    """The names of those that are declared, by their numbers. Asks nothing where none is."""
    if not any(map(is_declared, project_ids)):
        return {}
    names: dict[int, str] = {}
    request = project_service_pb2.ListProjectsRequest(page_size=_PAGE_SIZE)
    while True:
        page = await stub.ListProjects(request)
        names |= {project.project_id: project.name for project in page.projects}
        if not page.next_page_token:
            return names
        request.page_token = page.next_page_token
