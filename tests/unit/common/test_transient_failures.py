"""Errors that are tried again: trouble of the server, never wrong values."""

import asyncpg
import pytest

from services.common.postgres import TRANSIENT_POSTGRES, WRONG_DATA


@pytest.mark.parametrize(
    "kind",
    [
        asyncpg.AdminShutdownError,
        asyncpg.CannotConnectNowError,
        asyncpg.DiskFullError,
        asyncpg.OutOfMemoryError,
        asyncpg.PostgresIOError,
        asyncpg.QueryCanceledError,
        asyncpg.ReadOnlySQLTransactionError,
        asyncpg.TooManyConnectionsError,
    ],
)
def test_trouble_of_the_server_passes(kind: type[Exception]) -> None:
    assert issubclass(kind, TRANSIENT_POSTGRES)
    assert not issubclass(kind, WRONG_DATA)


@pytest.mark.parametrize(
    "kind",
    [
        asyncpg.NotNullViolationError,
        asyncpg.NumericValueOutOfRangeError,
        asyncpg.ProgramLimitExceededError,
        ValueError,
    ],
)
def test_wrong_values_stay_wrong(kind: type[Exception]) -> None:
    assert issubclass(kind, WRONG_DATA)
    assert not issubclass(kind, TRANSIENT_POSTGRES)
