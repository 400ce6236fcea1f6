"""The pools file and the allowed base URLs, as an operator sets them."""

from pathlib import Path

from proctor.values.providers.base_urls import BaseUrl, parse_allowed
from proctor.values.providers.errors import InvalidPools, NoBaseUrl
from proctor.values.providers.pools_file import PoolsFile, parse_pools
from services.common.errors import InvalidSetting


def read_pools(file: Path) -> PoolsFile:
    """Raises `InvalidSetting`."""
    try:
        return parse_pools(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InvalidPools) as error:
        raise InvalidSetting(setting="PROCTOR_POOLS_FILE", problem=f"{file}: {error}") from error


def read_allowed_base_urls(text: str) -> tuple[BaseUrl, ...]:
    """Servers that an order may name instead of its pool's own. Raises `InvalidSetting`."""
    try:
        return parse_allowed(text)
    except NoBaseUrl as error:
        problem = f"each address in it {error}"
        raise InvalidSetting(setting="PROCTOR_ALLOWED_BASE_URLS", problem=problem) from error
