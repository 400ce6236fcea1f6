"""Prints as JSON what the engines can isolate here: `proctor doctor` asks, and imports no service."""

import asyncio
import json
import sys
from dataclasses import asdict

from services.worker.sandboxes.wiring import ENGINES, make_sandboxes
from services.worker.settings import WorkerSettings


async def check(settings: WorkerSettings, name: str) -> dict[str, object]:
    engine = make_sandboxes(settings, name, pulls=False)
    try:
        return {**asdict(await engine.check()), "is_selected": name == settings.sandbox_engine}
    finally:
        await engine.close()


async def check_all() -> list[dict[str, object]]:
    settings = WorkerSettings()
    return [await check(settings, name) for name in ENGINES]


def main() -> int:
    sys.stdout.write(json.dumps(asyncio.run(check_all())) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
