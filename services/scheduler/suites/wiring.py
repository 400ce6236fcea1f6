"""Makes and joins the parts of the scheduler that suites need: of the installation and of users."""

from services.common.clock import Clock
from services.common.postgres import PostgresSession
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.add_suite import AddSuite, CheckSuite, DeleteSuite
from services.scheduler.suites.file_suite_cache import FileSuiteCache
from services.scheduler.suites.find_suites import FindSuites
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.grpc_api import SuiteUseCases
from services.scheduler.suites.postgres import PostgresUserSuites
from services.scheduler.suites.rows.file_rows import FileRows, MirrorRows
from services.scheduler.suites.rows.hub_rows import HubRows
from services.scheduler.suites.rows.row_source import FirstAvailableSource
from services.scheduler.suites.show_sample import ShowSample
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites


class SuiteParts:
    """Ports with their adapters, and the use cases over them."""

    def __init__(
        self,
        settings: SchedulerSettings,
        installed: YamlInstalledSuites,
        session: PostgresSession,
        clock: Clock,
    ) -> None:
        self._installed = installed
        self._clock = clock
        self._of_users = PostgresUserSuites(session)
        cache = FileSuiteCache(settings.suite_cache_dir)
        hub = HubRows(settings.hub_token_datasets, settings.max_hub_bytes)
        self.rows = FirstAvailableSource(FileRows(), [MirrorRows(settings.data_dir), hub])
        self.catalogue = FindSuites(installed, self._of_users, cache, read_document)

    def use_cases(self) -> SuiteUseCases:
        checking = CheckSuite(read_document, self._installed)
        return SuiteUseCases(
            check=checking,
            add=AddSuite(checking, self._of_users, self._clock),
            delete=DeleteSuite(self._of_users, self._installed, self._clock),
            show=ShowSample(self.catalogue, self.rows),
        )
