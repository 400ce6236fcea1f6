"""`python -m services.backup.program save TO [KEEP]` and `… restore PLACE`.

The last line of its log says what came of it.
"""

import asyncio
import signal
import sys

import asyncpg
from pydantic import ValidationError

from services.backup.errors import PostgresFailed
from services.backup.manifest import Manifest
from services.backup.restore import restore
from services.backup.save import save
from services.backup.settings import BackupSettings
from services.common.errors import DomainError
from services.common.structured_logs import configure_logs, get_logger

log = get_logger()


def main(arguments: list[str]) -> int:
    configure_logs("backup", "INFO")
    try:
        settings = BackupSettings()
        configure_logs("backup", settings.log_level)
        asyncio.run(_work(settings, arguments))
    except ValidationError as error:
        missing = ", ".join(str(each["loc"][0]) for each in error.errors())
        log.error("settings refused", message=f"These settings of backups are missing or wrong: {missing}.")
    except DomainError as error:
        log.error("failed", message=error.message, reason=error.reason)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError) as error:
        failed = PostgresFailed(problem=str(error).partition("\n")[0].rstrip("."))
        log.error("failed", message=failed.message, reason=failed.reason)
    except asyncio.CancelledError:
        log.error("failed", message="It was stopped before its end.", reason="STOPPED")
    else:
        return 0
    return 1


async def _work(settings: BackupSettings, arguments: list[str]) -> None:
    _cancel_at_signals()
    match arguments:
        case ["save", to, *keep] if len(keep) < 2 and all(map(str.isdecimal, keep)):
            saved = await save(settings, to, int(keep[0]) if keep else 0)
            _report("saved", saved.place, saved.manifest)
        case ["restore", place]:
            _report("restored", place, await restore(settings, place))
        case _:
            sys.exit(f"usage: {__doc__}")


def _cancel_at_signals() -> None:
    """What is stored of something half is deleted; a second signal, as of a terminal, does not stop that."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def stop() -> None:
        if not task.cancelling():
            task.cancel()

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)


def _report(event: str, place: str, manifest: Manifest) -> None:
    log.info(
        event,
        place=place,
        taken_at=manifest.taken_at.isoformat(),
        release=manifest.release,
        rows=manifest.rows,
        objects=manifest.objects,
        object_bytes=manifest.object_bytes,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
