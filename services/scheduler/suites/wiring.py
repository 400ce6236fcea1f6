"""Joins the parts of suites: installed ones and those of users."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.common.grpc.server import Registration
from services.common.sandboxes.task_code.bubblewrap import make_code_runner
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.add_suite import AddSuite, CheckSuite
from services.scheduler.suites.code.coded_rows import CodedRows
from services.scheduler.suites.delete_suite import DeleteSuite
from services.scheduler.suites.file_suite_cache import FileSuiteCache
from services.scheduler.suites.find_suites import FindSuites
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.grpc_api import SERVICE_NAME, GrpcSuiteApi
from services.scheduler.suites.ports import InstalledSuites, SuiteCatalogue
from services.scheduler.suites.postgres import CheckStorage, PostgresUserSuites
from services.scheduler.suites.rows.file_rows import FileRows, MirrorRows
from services.scheduler.suites.rows.first_available_source import FirstAvailableSource
from services.scheduler.suites.rows.hub_rows import HubRows
from services.scheduler.suites.rows.ports import RowSource
from services.scheduler.suites.show_sample import ShowSample


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteParts:
    """`shown` is the catalogue of lists and shown samples. `executes_code`: the operator allows it."""

    catalogue: SuiteCatalogue
    shown: SuiteCatalogue
    rows: RowSource
    add: AddSuite
    apis: Mapping[str, Registration]
    executes_code: bool


def make_suites(
    settings: SchedulerSettings,
    connections: Connections,
    *,
    installed: InstalledSuites,
    check_storage: CheckStorage,
    check_room: Callable[[], None],
) -> SuiteParts:
    of_users = PostgresUserSuites(session=connections.postgres, check_storage=check_storage)
    read_of_users = PostgresUserSuites(session=connections.reads, check_storage=check_storage)
    cache = FileSuiteCache(folder=settings.suite_cache_dir)
    hub = HubRows(
        token_datasets=settings.hub_token_datasets,
        max_bytes=settings.max_hub_bytes,
        cache_dir=settings.hub_cache_dir,
    )
    found = FirstAvailableSource(
        own_files=FileRows(), hub_sources=(MirrorRows(folder=settings.data_dir), hub)
    )
    runner = make_code_runner(settings.task_code, settings.task_code_packages)
    rows = CodedRows(rows=found, runner=runner)
    catalogue = FindSuites(installed=installed, stored=of_users, cache=cache, read=read_document)
    shown = FindSuites(installed=installed, stored=read_of_users, cache=cache, read=read_document)
    checking = CheckSuite(read=read_document, installed=installed)
    add = AddSuite(check_suite=checking, stored=of_users, clock=connections.clock, check_room=check_room)
    api = GrpcSuiteApi(
        check=checking,
        add=add,
        delete=DeleteSuite(stored=of_users, installed=installed, clock=connections.clock),
        documents=shown,
        show_sample=ShowSample(
            suites=shown, rows=rows, cache_in=lambda folder: FileSuiteCache(folder=folder)
        ),
    )
    apis = {SERVICE_NAME: api.register}
    executes_code = runner is not None
    return SuiteParts(
        catalogue=catalogue, shown=shown, rows=rows, add=add, apis=apis, executes_code=executes_code
    )
