"""Prints as JSON what this machine can isolate: `proctor doctor` asks, and imports no service."""

import asyncio
import json
import sys
from dataclasses import asdict

from services.worker.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap


async def check() -> dict[str, object]:
    engine = BubblewrapEngine(find_bubblewrap())
    try:
        return asdict(await engine.check())
    finally:
        await engine.close()


def main() -> int:
    sys.stdout.write(json.dumps(asyncio.run(check())) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
