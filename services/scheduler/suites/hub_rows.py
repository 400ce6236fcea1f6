"""Rows of hub data sets through the `datasets` library, which caches what it has fetched."""

import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from services.scheduler.suites.row_source import Provenance, Row, RowSet, RowsNotHere, RowsReference

DEFAULT_ENDPOINT = "https://huggingface.co"


class HubRows:
    def __init__(self, connect_timeout_seconds: float = 5.0) -> None:
        self._connect_timeout_seconds = connect_timeout_seconds

    def open(self, reference: RowsReference) -> RowSet:
        """Fetch the whole split (once); rows are then read from the cache, a few at a time."""
        if not Path(reference.dataset_id).is_dir():
            _refuse_unreachable_hub(self._connect_timeout_seconds)
        try:
            # Slow to import and an optional extra: only where the hub is needed.
            import datasets  # noqa: PLC0415
            from datasets.exceptions import DatasetsError  # noqa: PLC0415
            from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415
        except ImportError as error:
            raise RowsNotHere("the hub needs the package 'datasets' (pip install 'proctor[hub]')") from error
        try:
            split = datasets.load_dataset(
                reference.dataset_id,
                reference.config or None,
                split=reference.split,
                revision=reference.revision,
            )
        except (DatasetsError, HfHubHTTPError, OSError, ValueError, RuntimeError) as error:
            raise RowsNotHere(f"the hub does not give it ({_in_one_line(error)})") from error
        provenance = Provenance(
            source="hub",
            location=str(reference),
            # The library gives the digest of the rows no public name.
            revision=reference.revision or f"fingerprint:{split._fingerprint}",  # noqa: SLF001
            row_count=split.num_rows,
        )
        return RowSet(_rows(split), provenance)


def _refuse_unreachable_hub(timeout_seconds: float) -> None:
    """Tell at once what the library tells after half a minute; in offline mode it reads its cache."""
    if os.environ.get("HF_HUB_OFFLINE") or "https" in getproxies():
        return
    endpoint = urlsplit(os.environ.get("HF_ENDPOINT", DEFAULT_ENDPOINT))
    port = endpoint.port or (80 if endpoint.scheme == "http" else 443)
    try:
        socket.create_connection((endpoint.hostname or "", port), timeout=timeout_seconds).close()
    except OSError as error:
        raise RowsNotHere(f"the hub {endpoint.geturl()} cannot be reached ({_in_one_line(error)})") from error


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _rows(split: Iterable[Row]) -> Iterator[Row]:
    yield from split
