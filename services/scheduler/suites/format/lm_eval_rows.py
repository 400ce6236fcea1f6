"""Where the rows of a task of lm-evaluation-harness come from: its data set, its files and their options."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from services.scheduler.suites.format.metric_checks import Fields
from services.scheduler.suites.format.suite_document import ValueFault, path_problem

SPLIT_KEYS = ("test_split", "validation_split", "training_split")
DATA_KEYS = ("dataset_path", "dataset_name", "dataset_kwargs", *SPLIT_KEYS, "fewshot_split")
# What rows would be asked with.
MEDIA = {"doc_to_image": "images", "doc_to_audio": "sound"}
FILE_FORMATS = frozenset({"json", "csv", "parquet"})
# How the library loads rows, not which.
_WITHOUT_EFFECT = frozenset(
    {
        *("trust_remote_code", "streaming", "verification_mode", "ignore_verifications", "num_proc"),
        *("keep_in_memory", "download_mode", "save_infos", "cache_dir"),
    }
)
_DELIMITERS = ("sep", "delimiter")
_TABLES = (".csv", ".tsv")
_HUB_FILE = re.compile(r"hf://datasets/(?P<id>[^/@]+/[^/@]+)(@(?P<revision>[^/]+))?/(?P<path>.+)")
# Types that values of JSON have already; a list of them is a `sequence`.
_PLAIN_TYPE = re.compile(r"string|large_string|bool|u?int(8|16|32|64)|float(16|32|64)")


@dataclass
class ConvertedRows:
    """`dataset` is ours; faults have the original keys."""

    dataset: dict[str, object] = field(default_factory=dict)
    faults: list[ValueFault] = field(default_factory=list)


def convert_rows(given: Fields) -> ConvertedRows:
    """Samples come from the test split, or else from the validation split."""
    split = first(given, "test_split", "validation_split")
    rows = ConvertedRows({"id": "none", "split": split or "none"})
    is_custom = "custom_dataset" in given
    if "dataset_path" not in given and not is_custom:
        rows.faults.append(ValueFault(("dataset_path",), "is missing"))
        return rows
    if not split:
        problem = "a test_split or validation_split is needed, as in lm-evaluation-harness"
        rows.faults.append(ValueFault(("custom_dataset" if is_custom else "dataset_path",), problem))
        return rows
    if is_custom:
        # Code has the rows, by these splits.
        rows.dataset |= _if_any("fewshot_split", pool_split(given))
        return rows
    options = dict(cast("Fields", given.get("dataset_kwargs", {})))
    options = {key: value for key, value in options.items() if key not in _WITHOUT_EFFECT}
    if _is_plain(options.get("features")):
        del options["features"]
    _set_rows(rows, given, split, options)
    rows.faults += [
        ValueFault(("dataset_kwargs", key), "rows are read without this option") for key in options
    ]
    return rows


def _set_rows(rows: ConvertedRows, given: Fields, split: str, options: dict[str, object]) -> None:
    pool = pool_split(given)
    revision = options.pop("revision", None)
    files = _files_by_split(options.pop("data_files", None))
    form = _csv_form(given["dataset_path"], files, options)
    if given["dataset_path"] in FILE_FORMATS and not any("://" in path for path in _paths(files)):
        rows.dataset = _own_files(files, split, pool)
    else:
        rows.dataset = _hub_rows(given, split, pool)
        if given["dataset_path"] in FILE_FORMATS:
            revision = _name_hub_files(rows, files) or revision
        elif files:
            rows.dataset["data_files"] = files
    pinned = {"revision": revision} if revision is not None and "id" in rows.dataset else {}
    rows.dataset |= {**pinned, **({"csv": form} if form else {})}


def _hub_rows(given: Fields, split: str, pool: str) -> dict[str, object]:
    config = {"config": str(given["dataset_name"])} if "dataset_name" in given else {}
    return {"id": given["dataset_path"], **config, "split": split, **_if_any("fewshot_split", pool)}


def _own_files(files: Mapping[str, object], split: str, pool: str) -> dict[str, object]:
    return {**_if_any("file", files.get(split)), **_if_any("fewshot_file", files.get(pool))}


def _name_hub_files(rows: ConvertedRows, files: Mapping[str, object]) -> object:
    """Files by their addresses on the hub: all of one data set. Returns the revision that they name."""
    found = {path: _HUB_FILE.fullmatch(path) for path in _paths(files)}
    sources = {(match["id"], match["revision"]) if match else None for match in found.values()}
    if len(sources) != 1 or None in sources:
        problem = "files are those of the suite's folder, or of one data set as hf://datasets/owner/name/path"
        rows.faults.append(ValueFault(("dataset_kwargs", "data_files"), problem))
        return None
    [(hub_id, revision)] = cast("set[tuple[str, str | None]]", sources)
    in_set = {path: match["path"] for path, match in found.items() if match}
    rows.dataset.pop("config", None)
    rows.dataset |= {
        "id": hub_id,
        "data_files": {
            name: [in_set[path] for path in _paths({name: paths})] for name, paths in files.items()
        },
    }
    return revision


def _files_by_split(data_files: object) -> dict[str, object]:
    """Files without a split are the training split, as in the `datasets` library."""
    files = data_files if isinstance(data_files, dict) else {"train": data_files}
    return {str(name): _one(paths) for name, paths in files.items() if paths}


def _one(paths: object) -> object:
    """A list of one file is the file."""
    return paths[0] if isinstance(paths, list) and len(paths) == 1 else paths


def _paths(files: Mapping[str, object]) -> Sequence[str]:
    listed = [paths if isinstance(paths, list) else [paths] for paths in files.values()]
    return [str(path) for paths in listed for path in paths]


def _csv_form(dataset_path: object, files: Mapping[str, object], options: dict[str, object]) -> Fields:
    """How tables are written; their columns have types, as pandas infers them. Takes its options."""
    if dataset_path != "csv" and not any(path.endswith(_TABLES) for path in _paths(files)):
        return {}
    form: dict[str, object] = {"infer_types": True}
    if isinstance(options.get("column_names"), list):
        form["column_names"] = options.pop("column_names")
        # Where names are given, a header is one only if the option says so.
        form["header"] = options.pop("header", None) == 0
    elif options.get("header") in (0, "infer"):
        del options["header"]
    for key in _DELIMITERS:
        if key in options:
            form["delimiter"] = options.pop(key)
    return form


def _is_plain(features: object) -> bool:
    """Whether the columns have types of JSON, so that naming them changes no row."""
    return isinstance(features, dict) and all(
        isinstance(each, dict)
        and _PLAIN_TYPE.fullmatch(str(each.get("dtype")))
        and not each.keys() - {"dtype", "sequence", "_type"}
        for each in features.values()
    )


def _if_any(key: str, value: object) -> dict[str, object]:
    return {key: value} if value else {}


def pool_split(given: Fields) -> str:
    """Split of the few-shot examples; "" if the task file contains them."""
    own = named_pool(given)
    if own or examples_config(given).get("samples") is not None:
        return own
    return first(given, "training_split", "validation_split", "test_split")


def named_pool(given: Fields) -> str:
    split = examples_config(given).get("split")
    return str(split) if split is not None else str(given.get("fewshot_split", ""))


def examples_config(given: Fields) -> Fields:
    config = given.get("fewshot_config")
    return config if isinstance(config, dict) else {}


def first(given: Fields, *keys: str) -> str:
    return next((str(given[key]) for key in keys if key in given), "")


def media_problem(key: str, counted: str = "") -> str:
    return (
        f"its rows{counted} are asked with {MEDIA[key]}, and models are asked in text only: run it in"
        " lm-evaluation-harness, and import its log"
    )


def with_row_counts(
    faults: Sequence[ValueFault], dataset: Fields, count: Callable[[str], int | None]
) -> list[ValueFault]:
    """`dataset` is that of the task; a data set of the hub is not asked for its rows.

    `count` counts the rows of the suite's file with this path. It may raise OSError.
    """
    keys = {(key,): key for key in MEDIA}
    if all(found.path not in keys for found in faults):
        return list(faults)
    counted = _counted(dataset, count)
    return [
        replace(found, problem=media_problem(keys[found.path], counted)) if found.path in keys else found
        for found in faults
    ]


def _counted(dataset: Fields, count: Callable[[str], int | None]) -> str:
    path = dataset.get("file")
    if not isinstance(path, str) or path_problem(path):
        return ""
    try:
        found = count(path)
    except OSError:
        return ""
    return "" if found is None else f" ({found:,} in {path})"
