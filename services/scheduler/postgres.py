"""The schema of the scheduler, the queries of all of its topics by name, and the connections they share."""

from dataclasses import dataclass
from pathlib import Path

import grpc

from services.common.clock import Clock
from services.common.nats.jetstream import JetStream
from services.common.postgres import PostgresSession
from services.common.sql.queries import load_queries

ROOT = Path(__file__).parent
SCHEMA = "scheduler"
MIGRATIONS = ROOT / "migrations"
QUERIES = load_queries(*sorted(ROOT.rglob("queries.sql")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """`reads` is for lists; `results` is the channel to the service results; `clock` is that of Postgres."""

    postgres: PostgresSession
    reads: PostgresSession
    jetstream: JetStream
    results: grpc.aio.Channel
    clock: Clock
