"""`proctor storage`: what a user stores."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal

from proctor.cli.gateway import Session
from proctor.cli.render.table import Cell, Column, numbers, table
from proctor.v1 import storage_service_pb2 as storage_pb2

_KINDS = {"batch_output": "batch outputs", "datasets": "data sets"}


async def storage(
    session: Session,
    *,
    of_user: Annotated[
        str, typer.Argument(metavar="[USER]", help="Show the storage of this user instead of yours.")
    ] = "",
) -> None:
    """Show how much a user stores, and may store."""
    request = storage_pb2.GetStorageRequest(user=of_user)
    session.terminal.show(await session.client.storage.GetStorage(request), print_storage)


def print_storage(console: Console, stored: storage_pb2.GetStorageResponse) -> None:
    columns = (Column("what", "whole"), *numbers("size", "count", "rows"))
    console.print(table(console, columns, _rows(stored), f"storage of {stored.user}"))


def _rows(stored: storage_pb2.GetStorageResponse) -> Iterator[tuple[Cell, ...]]:
    for share in stored.shares:
        yield _cells(_KINDS.get(share.kind, share.kind), share.used)
    yield _cells("all", stored.used)
    yield _cells("limit", stored.limit)


def _cells(name: str, use: storage_pb2.StorageUse) -> tuple[Cell, ...]:
    return name, decimal(use.bytes), f"{use.files:,}", f"{use.rows:,}"
