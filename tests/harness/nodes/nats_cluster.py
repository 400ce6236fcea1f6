"""Three nats-servers that form one cluster, each with a store of its own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from proctor.stack.servers.nats import NatsServer, prepare_nats
from proctor.stack.state import write_private
from proctor.stack.supervision.addresses import choose_addresses, split_address
from proctor.stack.supervision.child import ChildSpec


@dataclass(frozen=True, slots=True)
class NatsCluster(NatsServer):
    """The servers by the names of their nodes. A client gets the addresses of all."""

    servers: Mapping[str, NatsServer] = field(default_factory=dict)

    def url(self, user: str = "operator") -> str:
        return ",".join(server.url(user) for server in self.servers.values())

    def children(self) -> list[ChildSpec]:
        return [replace(server.child(), name=f"nats.{node}") for node, server in self.servers.items()]


def prepare_nats_cluster(folder: Path, nodes: Sequence[str], pools: Sequence[str]) -> NatsCluster:
    """Users and passwords are the same at each server."""
    addresses = choose_addresses(2 * len(nodes))
    clients, routes = addresses[: len(nodes)], addresses[len(nodes) :]
    first = prepare_nats(folder, clients[0], pools)
    settings = json.loads(first.config_file.read_text(encoding="utf-8"))
    servers = {}
    for node, client, route in zip(nodes, clients, routes, strict=True):
        host, port = split_address(client)
        own = {
            **settings,
            "server_name": node,
            "host": host,
            "port": port,
            "jetstream": {"store_dir": str(folder / f"store-{node}")},
            "cluster": {"name": "proctor", "listen": route, "routes": [f"nats://{each}" for each in routes]},
        }
        config_file = folder / f"nats-{node}.conf"
        write_private(config_file, json.dumps(own))
        servers[node] = replace(first, config_file=config_file, address=client)
    return NatsCluster(
        first.program, first.config_file, first.address, first.passwords, first.dispatch_proof_key, servers
    )
