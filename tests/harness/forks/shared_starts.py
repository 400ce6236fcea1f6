"""What processes of tests share: processes that have imported programs, and a cluster of Postgres."""

from collections.abc import Sequence

import pytest

# Where stacks, servers and commands are started.
_WITH_STACKS = ("tests/chaos/", "tests/e2e/", "tests/integration/")
_WITH_POSTGRES = (*_WITH_STACKS, "tests/contract/")


def start_what_is_shared(items: Sequence[pytest.Item]) -> None:
    """Called in the process that others are forked from, where one of the tests needs it."""
    if not any(item.nodeid.startswith(_WITH_POSTGRES) for item in items):
        return
    # Already imported then, and by tests of other folders never.
    from tests.fakes.stack import forked_commands  # noqa: PLC0415  # see above
    from tests.harness import servers  # noqa: PLC0415  # see above
    from tests.harness.forks import services  # noqa: PLC0415  # see above

    servers.clusters()
    if any(item.nodeid.startswith(_WITH_STACKS) for item in items):
        services.start_servers()
        forked_commands.server()
