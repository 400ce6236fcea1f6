"""The pools file and the allowed base URLs, as an operator sets them."""

from pathlib import Path

from proctor.values.pools import InvalidPools, PoolsFile, parse_pools
from proctor.values.providers import BaseUrl, NoBaseUrl, parse_allowed
from services.scheduler.workers.pool import InvalidAllowedBaseUrls, InvalidPoolsFile


def read_pools(file: Path) -> PoolsFile:
    """Raises `InvalidPoolsFile`."""
    try:
        return parse_pools(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InvalidPools) as error:
        raise InvalidPoolsFile(file=str(file), problem=str(error)) from error


def read_allowed_base_urls(text: str) -> tuple[BaseUrl, ...]:
    """Servers that an order may name instead of its pool's own. Raises `InvalidAllowedBaseUrls`."""
    try:
        return parse_allowed(text)
    except NoBaseUrl as error:
        raise InvalidAllowedBaseUrls(problem=str(error)) from error
