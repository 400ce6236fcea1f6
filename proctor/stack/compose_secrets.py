"""Passwords of `compose.yaml`: made once and kept, each in the folder of the service that has to know it.

`python -m proctor.stack.compose_secrets POOLS_FILE FOLDER` is the service `secrets` there.
"""

import json
import secrets
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from proctor.stack.servers.nats_permissions import authorization_block, password_variable, permissions_of
from proctor.values import messaging
from proctor.values.providers.pools_file import parse_pools

_ALL = "all"
# Each has a role of Postgres, which `postgres-roles.sql` of the chart makes.
_WITH_SCHEMA = (messaging.SCHEDULER_USER, "results")
_MADE_BYTES = 24


def write_secrets(folder: Path, pools: Sequence[str]) -> None:
    """Each folder in `folder` is a volume: `env` is read by a shell, the others by the servers themselves."""
    users = permissions_of(pools)
    names = (
        *("postgres", "dispatch-proof", "caller"),
        *(f"postgres-{service}" for service in _WITH_SCHEMA),
        *(f"nats-{user}" for user in users),
    )
    kept = _made_once(folder / _ALL / "secrets.json", names)
    addresses = {
        user: {"PROCTOR_NATS_URL": f"nats://{user}:{kept[f'nats-{user}']}@nats:4222"} for user in users
    }
    shared = {
        "PROCTOR_DISPATCH_PROOF_KEY": kept["dispatch-proof"],
        "PROCTOR_CALLER_KEY": kept["caller"],
    }
    _write_environment(folder / "gateway", {"PROCTOR_CALLER_KEY": kept["caller"]})
    for service in _WITH_SCHEMA:
        password = kept[f"postgres-{service}"]
        dsn = {"PROCTOR_POSTGRES_DSN": f"postgresql://proctor_{service}:{password}@postgres:5432/proctor"}
        _write_environment(folder / service, {**dsn, **shared, **addresses[service]})
        _write(folder / "postgres" / service, password)
    for pool in pools:
        user = messaging.worker_user(pool)
        _write_environment(folder / user, addresses[user])
    _write(folder / "postgres" / "password", kept["postgres"])
    # The configuration has its variables in the file that uses them.
    variables = "".join(f"{password_variable(user)}: {kept[f'nats-{user}']}\n" for user in users)
    _write(folder / "nats" / "users.conf", variables + authorization_block(pools))


def _made_once(file: Path, names: Iterable[str]) -> Mapping[str, str]:
    """A password begins with a letter: NATS reads what begins with a digit as a number."""
    known = json.loads(file.read_text(encoding="ascii")) if file.exists() else {}
    made = {name: known.get(name) or f"p{secrets.token_hex(_MADE_BYTES)}" for name in names}
    # What another pools file needed is needed again when it is back.
    _write(file, json.dumps({**known, **made}))
    return made


def _write_environment(folder: Path, variables: Mapping[str, str]) -> None:
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    _write(folder / "env", "".join(lines))


def _write(file: Path, text: str) -> None:
    """Readable by the user of each image: who mounts the volume has to know what is in it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(text, encoding="ascii")
    new.replace(file)


if __name__ == "__main__":
    pools_file, made_in = map(Path, sys.argv[1:])
    parsed = parse_pools(pools_file.read_text(encoding="utf-8"))
    try:
        write_secrets(made_in, [pool.name for pool in parsed.pools])
    except OSError as error:
        sys.exit(f"{error.filename} cannot be written: mount a volume for it, as compose.yaml does.")
