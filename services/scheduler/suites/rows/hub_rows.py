"""Rows of hub data sets through the `datasets` library, which caches its downloads."""

import os
import re
import socket
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from pkgutil import iter_modules
from threading import Lock
from urllib.parse import urlsplit
from urllib.request import getproxies

from services.scheduler.suites.own_folder import make_own_folder
from services.scheduler.suites.rows.errors import RowsMissing, UnreadableRow
from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsReference, SourceRow

DEFAULT_ENDPOINT = "https://huggingface.co"
_COMMIT = re.compile(r"[0-9a-f]{40}")


class HubRows:
    """One thread at a time downloads a data set; waiting threads then find it in the cache.

    HF_TOKEN is the operator's, and a suite may be any user's: the token is used only for `token_datasets`.
    A data set whose files have more than `max_bytes` is not downloaded: it would fill the disk. Downloads
    lie in `cache_dir`, and are found there; None means the library's own folder, which other programs of the
    account fill too.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        token_datasets: Collection[str] = (),
        cache_dir: Path | None = None,
        connect_timeout_seconds: float = 5.0,
    ) -> None:
        self._token_datasets = frozenset(token_datasets)
        self._max_bytes = max_bytes
        self._cache_dir = cache_dir
        self._connect_timeout_seconds = connect_timeout_seconds
        self._fetching: defaultdict[str, Lock] = defaultdict(Lock)

    def open(self, reference: RowsReference) -> RowSet:
        """Downloads the whole split once; rows are then read from the cache, a few at a time."""
        folder = Path(reference.hub_id)
        if folder.exists() and not folder.is_absolute():
            # The library would read a folder of the working directory.
            raise RowsMissing("a local data set is named by its absolute path, and this is one of the hub's")
        if not folder.is_dir():
            _refuse_unreachable_hub(self._connect_timeout_seconds)
        try:
            # Slow to import and an optional extra: only if needed.
            import datasets  # noqa: PLC0415  # an optional extra
            from datasets import packaged_modules  # noqa: PLC0415  # an optional extra
            from datasets.exceptions import DatasetsError  # noqa: PLC0415  # an optional extra
            from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415  # an optional extra
        except ImportError as error:
            raise RowsMissing(
                "the hub needs the package 'datasets' (pip install 'proctor-eval[hub]')"
            ) from error
        if reference.hub_id in {module.name for module in iter_modules(packaged_modules.__path__)}:
            # The library would read files of the working directory.
            raise RowsMissing("this names a way to read files, and files of a suite are named by `file`")
        if self._cache_dir is not None:
            make_own_folder(self._cache_dir, "PROCTOR_SCHEDULER_HUB_CACHE_DIR")
        try:
            with self._fetching[reference.hub_id]:
                builder = datasets.load_dataset_builder(
                    reference.hub_id,
                    reference.config or None,
                    revision=reference.revision,
                    cache_dir=None if self._cache_dir is None else str(self._cache_dir),
                    # None uses HF_TOKEN, False uses no token at all.
                    token=None if reference.hub_id in self._token_datasets else False,
                    **_named_files(reference),
                )
                if not folder.is_dir():
                    files = builder.config.data_files or {}
                    refuse_local_files(files)
                    refuse_large_files(files, token=builder.token, max_bytes=self._max_bytes)
                builder.download_and_prepare()
                split = builder.as_dataset(split=reference.split)
        except (DatasetsError, HfHubHTTPError, OSError, ValueError, RuntimeError) as error:
            raise RowsMissing(f"the hub does not give it ({_in_one_line(error)})") from error
        revision = pinned_revision(reference, builder.hash, split._fingerprint)  # noqa: SLF001  # the library has no public name for this digest
        provenance = Provenance(source="hub", location=str(reference), revision=revision)
        return RowSet(_rows(split), provenance)


def _named_files(reference: RowsReference) -> dict[str, object]:
    """Options of the library for the files that a task names, and for how they are written."""
    if not reference.data_files:
        return {}
    options: dict[str, object] = {"data_files": {reference.split: list(reference.data_files)}}
    if reference.csv.column_names:
        options["column_names"] = list(reference.csv.column_names)
    if not reference.csv.has_header:
        options["header"] = None
    elif reference.csv.column_names:
        options["header"] = 0
    return {**options, **({"sep": reference.csv.delimiter} if reference.csv.delimiter else {})}


def pinned_revision(reference: RowsReference, fetched: str | None, fingerprint: str) -> str:
    """The downloaded commit, whatever branch was requested; else the requested revision or a fingerprint."""
    if fetched is not None and _COMMIT.fullmatch(fetched):
        return fetched
    return reference.revision or f"fingerprint:{fingerprint}"


def refuse_local_files(data_files: Mapping[str, Iterable[str]]) -> None:
    """The card of a hub data set can name any local path, and the library would read it."""
    if not all(str(file).startswith("hf://") for files in data_files.values() for file in files):
        raise RowsMissing("it reads files that are not its own")


def refuse_large_files(
    data_files: Mapping[str, Iterable[str]], *, token: str | bool | None, max_bytes: int
) -> None:
    """All splits are downloaded, whichever is asked for. The card's own figure can be wrong."""
    from huggingface_hub import HfFileSystem  # noqa: PLC0415  # an optional extra, as above

    if os.environ.get("HF_HUB_OFFLINE"):
        return
    hub = HfFileSystem(token=token)
    total = 0
    for file in (file for files in data_files.values() for file in files):
        total += hub.info(str(file).removeprefix("hf://"))["size"]
        if total > max_bytes:
            advice = "an operator raises PROCTOR_SCHEDULER_MAX_HUB_BYTES"
            raise RowsMissing(f"its files have more than {max_bytes} bytes; {advice}")


def _refuse_unreachable_hub(timeout_seconds: float) -> None:
    """Fails at once, where the library takes half a minute. Offline mode reads the cache."""
    if os.environ.get("HF_HUB_OFFLINE") or "https" in getproxies():
        return
    endpoint = urlsplit(os.environ.get("HF_ENDPOINT", DEFAULT_ENDPOINT))
    port = endpoint.port or (80 if endpoint.scheme == "http" else 443)
    try:
        socket.create_connection((endpoint.hostname or "", port), timeout=timeout_seconds).close()
    except OSError as error:
        raise RowsMissing(f"the hub {endpoint.geturl()} cannot be reached ({_in_one_line(error)})") from error


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _rows(split: Iterable[SourceRow]) -> Iterator[SourceRow]:
    """The library memory-maps its cache and reads ten rows at a time (images and sounds need more)."""
    number = 0
    try:
        for number, row in enumerate(split, start=1):  # noqa: B007  # the row that broke
            yield row
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise UnreadableRow(number + 1, _in_one_line(error)) from error
