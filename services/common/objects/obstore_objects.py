"""Objects in a local folder or in a bucket of S3, Google Cloud Storage or Azure."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from obstore.store import LocalStore, ObjectStore, from_url

from services.common.errors import InvalidSetting, ObjectStoreUnavailable
from services.common.structured_logs import get_logger

log = get_logger()

_SCHEMES = ("s3", "gs", "az")
# A store that is away is reported within the time that a caller waits.
_CONNECT = timedelta(seconds=5)
_REQUEST = timedelta(seconds=60)
_RETRY_TIMEOUT = timedelta(seconds=30)
# In a folder, an object is first written beside its place, under its name, this sign and a number.
_STAGED = "#"
# The library reports these errors of a folder only as text: ENOSPC, EFBIG and EDQUOT.
_SIGNS_OF_NO_ROOM = ("(os error 28)", "(os error 27)", "(os error 122)")


class ObstoreObjects:
    """Credentials come from the environment, as for the clouds' own tools."""

    def __init__(self, url: str, setting: str = "PROCTOR_SCHEDULER_OBJECT_STORE") -> None:
        """`setting` is what named the store. Raises `InvalidSetting`."""
        self._folder: Path | None = None
        parts = urlsplit(url)
        try:
            if parts.scheme == "file" and parts.netloc in {"", "localhost"}:
                self._folder = Path(unquote(parts.path))
                self._store: ObjectStore = _opened_folder(self._folder)
            elif parts.scheme in _SCHEMES and parts.netloc:
                self._store = _opened_bucket(url)
            else:
                raise _refusal(setting, f"{url} is not an address of a folder or bucket")
        except (BaseError, OSError, ValueError) as error:
            raise _refusal(setting, _reason(error)) from error

    def put(self, key: str, chunks: Sequence[bytes]) -> None:
        with _translated_errors():
            # A few MiB in one request, so no unfinished multipart upload can remain.
            obstore.put(self._store, key, chunks, use_multipart=False)

    def get(self, key: str) -> bytes:
        with _translated_errors():
            return bytes(obstore.get(self._store, key).bytes())

    def get_range(self, key: str, start: int, length: int) -> bytes:
        with _translated_errors():
            return bytes(obstore.get_range(self._store, key, start=start, length=length))

    def keys(self, prefix: str) -> Iterator[str]:
        with _translated_errors():
            for page in obstore.list(self._store, prefix):
                for meta in page:
                    yield meta["path"]
            yield from self._staged(prefix)

    def has(self, key: str) -> bool:
        with _translated_errors():
            try:
                obstore.head(self._store, key)
            except (NotFoundError, FileNotFoundError):
                return False
            return True

    def folders(self) -> Sequence[str]:
        """The first parts of the keys, each once."""
        with _translated_errors():
            return obstore.list_with_delimiter(self._store)["common_prefixes"]

    def delete(self, keys: Sequence[str]) -> None:
        with _translated_errors():
            if self._folder is None:
                obstore.delete(self._store, list(keys))
                return
            for key in keys:
                self._delete_file(self._folder, key)

    def _delete_file(self, folder: Path, key: str) -> None:
        if _STAGED in key:
            (folder / key).unlink(missing_ok=True)
            return
        with suppress(FileNotFoundError):
            obstore.delete(self._store, key)

    def _staged(self, prefix: str) -> Iterator[str]:
        """Unfinished files of a killed process, which the library does not list."""
        if self._folder is None:
            return
        for path in (self._folder / prefix).rglob(f"*{_STAGED}*"):
            yield path.relative_to(self._folder).as_posix()


def is_unfinished(key: str) -> bool:
    """Whether it is what a killed process left of an object."""
    return _STAGED in key


def is_missing(error: ObjectStoreUnavailable) -> bool:
    """Whether the store answered that it has no such object."""
    return isinstance(error.__cause__, NotFoundError | FileNotFoundError)


def _refusal(setting: str, problem: str) -> InvalidSetting:
    forms = "give file:///…, s3://…, gs://… or az://…"
    return InvalidSetting(setting=setting, problem=f"{problem}; {forms}")


def _opened_folder(folder: Path) -> LocalStore:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return LocalStore(folder, automatic_cleanup=True)


def _opened_bucket(url: str) -> ObjectStore:
    return from_url(
        url,
        # An endpoint with http:// is the operator's choice.
        client_options={"connect_timeout": _CONNECT, "timeout": _REQUEST, "allow_http": True},
        retry_config={"max_retries": 5, "retry_timeout": _RETRY_TIMEOUT},
    )


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        log.warning("object store failed", problem=_reason(error))
        raise ObjectStoreUnavailable(problem=_public_problem(error)) from error


def _public_problem(error: Exception) -> str:
    """A description without addresses, folders and answers of a bucket, which are only logged."""
    if isinstance(error, NotFoundError | FileNotFoundError):
        return "something that was stored there is not there any more"
    if isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError):
        return "it refuses the credentials of this service"
    text = str(error)
    return "it has no room" if any(sign in text for sign in _SIGNS_OF_NO_ROOM) else "it failed or is away"


def _reason(error: Exception) -> str:
    """The first line; the rest is debug output of the library."""
    first = str(error).strip().splitlines()[:1]
    return " ".join(first).rstrip(".") or type(error).__name__
