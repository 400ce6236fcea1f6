"""A stack over three nodes: NATS on each, the services and a Postgres on two of them. Nodes can be lost."""

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from proctor.stack.local_stack import LocalStack
from proctor.stack.pools import write_pools_file
from proctor.stack.servers.postgres import PostgresServer
from proctor.stack.servers.services import Wiring, service_children
from proctor.stack.supervision.addresses import choose_addresses
from proctor.stack.supervision.child import ChildSpec, SupervisedChild
from proctor.stack.supervision.process import ChildLogs
from proctor.values.providers.pools_file import PoolsFile
from tests.harness.nodes.nats_cluster import prepare_nats_cluster
from tests.harness.nodes.postgres_pair import (
    child_of,
    commit_at_both,
    copy_primary,
    pair_of,
    promote,
    standby_child,
)

NODES = ("a", "b", "c")
# On the third there is only NATS: a majority needs it.
SERVING = ("a", "b")


class NodesStack(LocalStack):
    """`postgres.a` is the primary at first. A child has its node at the end of its name."""

    primary: str
    _standby: PostgresServer

    def child(self, name: str) -> SupervisedChild:
        return super().child(self.primary if name == "postgres" else name)

    def of_node(self, node: str) -> list[str]:
        """Its processes but Postgres."""
        return [
            name for name in self.children if name.endswith(f".{node}") and not name.startswith("postgres.")
        ]

    async def lose(self, names: Collection[str]) -> None:
        """All are killed at once, and nothing starts them again."""
        lost = [self.children[name] for name in names]
        for child in lost:
            assert child.pid is not None, f"{child.name} is not running"
            os.killpg(child.pid, signal.SIGKILL)
        await asyncio.gather(*(child.stop() for child in lost))

    async def bring_back(self, names: Collection[str]) -> None:
        """Starts them again with the state that they left on their disks."""
        # A child waits for the servers there are: not for what is to be started with it.
        lost = [self.children.pop(name).spec for name in names]
        await self._start_children(lost)

    @contextmanager
    def frozen(self, names: Collection[str]) -> Iterator[None]:
        """They answer nothing, and their connections stay open, as those of a machine that hangs."""
        pids = [pid for name in names if (pid := self.children[name].pid) is not None]
        assert len(pids) == len(names)
        try:
            for pid in pids:
                os.killpg(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGCONT)

    async def fail_over(self) -> None:
        """The primary is lost for good, and the standby is promoted."""
        await self.lose([self.primary])
        await promote(self._standby)
        del self.children[self.primary]
        self.primary = "postgres.b"

    async def _start_in_order(self) -> None:
        self.primary = "postgres.a"
        folder = self.options.state_dir
        self._logs = ChildLogs(folder / "logs")
        self._log_keeping = asyncio.create_task(self._logs.keep_small(), name="keep logs small")
        pools = PoolsFile(self.options.pools, self.options.aliases)
        nats = prepare_nats_cluster(folder / "nats", NODES, [pool.name for pool in pools.pools])
        postgres_a, postgres_b = choose_addresses(2)
        primary = await self._prepare_postgres(postgres_a, self._logs.path("postgres.a"))
        await self._start_children([child_of(primary, "postgres.a"), *nats.children()])
        self._standby = await copy_primary(primary, postgres_b, self._logs.path("postgres.b"))
        await self._start_children([standby_child(self._standby, "postgres.b")])
        await commit_at_both(primary)
        addresses = iter(choose_addresses(len(SERVING) * (4 + len(pools.pools))))
        # Gateways call the scheduler and results of each other's nodes.
        caller_key = secrets.token_hex(32)
        wirings = {
            node: Wiring(
                postgres=pair_of(primary, self._standby),
                nats=nats,
                scheduler=next(addresses),
                results=next(addresses),
                gateway_http=next(addresses),
                gateway_grpc=next(addresses),
                worker_health=tuple(next(addresses) for _ in pools.pools),
                pools_file=write_pools_file(folder / "pools.yaml", pools),
                caller_key=caller_key,
            )
            for node in SERVING
        }
        self._publish(wirings["a"])
        self.gateway_grpc = _all_of(wiring.gateway_grpc for wiring in wirings.values())
        called = {
            "PROCTOR_SCHEDULER_ADDRESS": _all_of(wiring.scheduler for wiring in wirings.values()),
            "PROCTOR_RESULTS_ADDRESS": _all_of(wiring.results for wiring in wirings.values()),
            "PROCTOR_SCHEDULER_STREAM_REPLICAS": "3",
        }
        for node, wiring in wirings.items():
            own = {
                "PROCTOR_SCHEDULER_LISTEN_ADDRESS": wiring.scheduler,
                "PROCTOR_RESULTS_LISTEN_ADDRESS": wiring.results,
            }
            children = service_children(self.options, wiring)
            await self._start_children([_on_node(child, node, {**called, **own}) for child in children])


def _on_node(child: ChildSpec, node: str, changes: dict[str, str]) -> ChildSpec:
    program = replace(child.program, environment={**child.program.environment, **changes})
    return replace(child, name=f"{child.name}.{node}", program=program)


def _all_of(addresses: Iterator[str]) -> str:
    """What gRPC reads as one name that stands for several replicas."""
    return f"ipv4:{','.join(addresses)}"
