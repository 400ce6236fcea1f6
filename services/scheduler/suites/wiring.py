"""Makes and joins the parts of the scheduler that suites need: of the installation and of users."""

from services.common.clock import Clock
from services.scheduler.grpc_suite_api import SuiteUseCases
from services.scheduler.postgres_sessions import Sessions
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.format.yaml_user_document import YamlUserDocuments
from services.scheduler.suites.rows.file_rows import FileRows
from services.scheduler.suites.rows.find_rows import FirstSourceThatHasThem
from services.scheduler.suites.rows.hub_rows import HubRows
from services.scheduler.suites.rows.mirror_rows import MirrorRows
from services.scheduler.suites.show_sample import ShowSample
from services.scheduler.suites.users.add_suite import AddSuite
from services.scheduler.suites.users.check_suite import CheckSuite
from services.scheduler.suites.users.delete_suite import DeleteSuite
from services.scheduler.suites.users.file_suite_shelf import FileSuiteShelf
from services.scheduler.suites.users.find_suites import AllSuites
from services.scheduler.suites.users.postgres_user_suites import PostgresUserSuites
from services.scheduler.suites.yaml_suite_catalogue import YamlSuiteCatalogue


class SuiteParts:
    """Ports with their adapters, and the use cases over them."""

    def __init__(
        self, settings: SchedulerSettings, installed: YamlSuiteCatalogue, sessions: Sessions, clock: Clock
    ) -> None:
        self._installed = installed
        self._clock = clock
        self._documents = YamlUserDocuments()
        self._of_users = PostgresUserSuites(sessions)
        shelf = FileSuiteShelf(settings.suite_cache_dir)
        self.rows = FirstSourceThatHasThem(FileRows(), [MirrorRows(settings.data_dir), HubRows()])
        self.catalogue = AllSuites(installed, self._of_users, shelf, self._documents)

    def use_cases(self) -> SuiteUseCases:
        checking = CheckSuite(self._documents, self._installed)
        return SuiteUseCases(
            check=checking,
            add=AddSuite(checking, self._of_users, self._clock),
            delete=DeleteSuite(self._of_users, self._installed),
            show=ShowSample(self.catalogue, self.rows),
        )
