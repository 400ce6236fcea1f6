"""Addresses of pages with their filters."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.responses import Response

from services.gateway.http.paths import MAX_QUERY_BYTES

# Parameters for a place in a list; a list with other filters begins at its start.
_PLACES = ("after", "row", "from")


def address(path: str, parameters: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    """Empty parameters are left out."""
    pairs = parameters.items() if isinstance(parameters, Mapping) else parameters
    query = urlencode([(name, value) for name, value in pairs if value])
    return f"{path}?{query}" if query else path


def keep_address(response: Response, form: str) -> None:
    """Shows the address of a form with all that is entered, unless no gateway would take it."""
    if len(form) <= MAX_QUERY_BYTES:
        # Replaced and not pushed: "back" would else step through every field that was changed.
        response.headers["HX-Replace-Url"] = form


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredPage:
    """The page at `path`; `filters` are those of its address, without empty ones."""

    path: str
    filters: Mapping[str, str]

    def get(self, name: str) -> str:
        return self.filters.get(name, "")

    def link(self, **changes: str) -> str:
        """The address of the page with other filters, from the start of its list."""
        return address(self.path, {**self.filters, **dict.fromkeys(_PLACES, ""), **changes})

    def export(self, form: str) -> str:
        """All of the list, as a file."""
        return address(f"{self.path.rstrip('/')}/export.{form}", {**self.filters, "after": ""})

    @property
    def socket(self) -> str:
        """The address of the socket that pushes the page, up to its last parameter."""
        return f"{self.path}/socket?{urlencode(self.filters)}{'&' if self.filters else ''}"
