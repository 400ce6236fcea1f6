"""Queries that tests prepare themselves, to look at their plans."""

from collections.abc import Mapping

from services.common.sql.queries import Query


def preparing(prepared: str, query: Query) -> str:
    return f"PREPARE {prepared} AS {query.statement}"


def executing(prepared: str, query: Query, literals: Mapping[str, str]) -> str:
    """`literals` are values as SQL writes them, by the names of the parameters."""
    arguments = ", ".join(map(str, query.arguments(literals)))
    return f"EXECUTE {prepared}" + (f" ({arguments})" if arguments else "")
