"""Checkpoints of a training run in a folder or a bucket: folders with a config and all of their weights."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

from proctor.client.errors import Refused

# What was written later may be written still: one look does not see a file grow.
QUIET = timedelta(seconds=60)
_CONFIG = "config.json"
_WEIGHTS = (".safetensors", ".bin", ".gguf")
_INDEX = (".safetensors.index.json", ".bin.index.json")
# "model-00001-of-00004.safetensors": the others are known by its name.
_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.\w+)")
# Other files of trainers with these endings: states of optimizers, random generators and arguments.
_NO_WEIGHTS = re.compile(r"(optimizer|scheduler|training_args|rng_state|scaler)")
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`path` is that of its folder or prefix, `name` its last part."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class _File:
    size: int
    written_at: datetime


def find_checkpoints(place: str, now: datetime) -> Sequence[Checkpoint]:
    """Those that are complete, by name, with numbers in it as numbers: step-900 comes before step-1000.

    `place` is a folder, or a URL of a bucket with a prefix, such as s3://bucket/runs/a. Complete: it has
    config.json and weights, all shards that their names or an index tell of, no empty one, and nothing
    written in the last minute. Raises Refused.
    """
    if "://" in place:
        found = _complete(_of_bucket(place), now)
        return [Checkpoint(name, f"{place.rstrip('/')}/{name}") for name in found]
    folder = Path(place).expanduser()
    if not folder.is_dir():
        raise Refused(f"{place} is no folder; name one with a folder for each checkpoint.")
    return [Checkpoint(name, str((folder / name).resolve())) for name in _complete(_of_folder(folder), now)]


def _complete(folders: Mapping[str, Mapping[str, "_File"]], now: datetime) -> Sequence[str]:
    complete = [name for name, files in folders.items() if _is_complete(files, now)]
    return sorted(complete, key=natural)


def _is_complete(files: Mapping[str, _File], now: datetime) -> bool:
    weights = [name for name in files if name.endswith(_WEIGHTS) and not _NO_WEIGHTS.match(name)]
    has_index = any(name.endswith(_INDEX) for name in files)
    wanted = {_CONFIG, *weights, *(shard for name in weights for shard in _shards(name))}
    if not weights or (has_index and not any(_SHARD.fullmatch(name) for name in weights)):
        return False
    if any(name not in files or not files[name].size for name in wanted):
        return False
    return max(file.written_at for file in files.values()) <= now - QUIET


def _shards(name: str) -> Iterator[str]:
    if found := _SHARD.fullmatch(name):
        stem, _, count, ending = found.groups()
        for number in range(1, int(count) + 1):
            yield f"{stem}-{number:05}-of-{count}{ending}"


def _of_folder(folder: Path) -> Mapping[str, Mapping[str, _File]]:
    found: dict[str, dict[str, _File]] = {}
    for one in folder.iterdir():
        try:
            found[one.name] = dict(_files(one.iterdir())) if one.is_dir() else {}
        except OSError:
            # Deleted meanwhile, as a trainer does with older ones, or not to be read.
            continue
    return found


def _files(paths: Iterable[Path]) -> Iterator[tuple[str, _File]]:
    for path in paths:
        try:
            state = path.stat()
        except OSError:
            # A trainer renames and deletes meanwhile.
            continue
        yield path.name, _File(state.st_size, datetime.fromtimestamp(state.st_mtime, UTC))


def _of_bucket(url: str) -> Mapping[str, Mapping[str, _File]]:
    """Raises Refused without the library, and for a bucket that cannot be read."""
    try:
        import obstore  # noqa: PLC0415  # of the extras of services only
        from obstore.exceptions import BaseError  # noqa: PLC0415  # as above
        from obstore.store import from_url  # noqa: PLC0415  # as above
    except ImportError as error:
        raise Refused("Buckets need the package obstore: pip install obstore.") from error
    found: dict[str, dict[str, _File]] = {}
    try:
        # An endpoint with http:// is the user's choice, as of the services.
        is_file = url.startswith("file:")
        store = from_url(url) if is_file else from_url(url, client_options={"allow_http": True})
        for page in obstore.list(store):
            for one in page:
                parts = PurePosixPath(one["path"]).parts
                # Only what lies directly in a folder of the prefix.
                if len(parts) == 2:
                    file = _File(one["size"], one["last_modified"])
                    found.setdefault(parts[0], {})[parts[1]] = file
    except (BaseError, ValueError) as error:
        raise Refused(f"{url} cannot be read: {str(error).splitlines()[0]}") from error
    return found


def natural(name: str) -> list[tuple[int, str]]:
    """A key to sort by, with numbers as numbers: step-900 is before step-1000."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(name)]


def model_of(checkpoint: Checkpoint, form: str) -> str:
    """The model by which a pool serves it. `form`: such as "ours/{path}" or "ours/{name}"."""
    return form.replace("{path}", checkpoint.path).replace("{name}", checkpoint.name)
