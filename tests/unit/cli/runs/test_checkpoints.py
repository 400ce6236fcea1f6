"""Which folders are complete checkpoints, in which order, and by which models they are served."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from proctor.cli.runs.checkpoints import QUIET, Checkpoint, find_checkpoints, model_of
from proctor.client.errors import Refused
from tests.fakes.storage.s3_server import BUCKET, s3_server

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def write(folder: Path, *names: str, age: timedelta = QUIET, content: str = "x") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(content)
        at = (NOW - age).timestamp()
        os.utime(folder / name, (at, at))


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same files by both ways: the store of files of obstore stands for a bucket."""
    return str(tmp_path) if request.param == "folder" else tmp_path.as_uri()


def found(place: str) -> list[str]:
    return [one.name for one in find_checkpoints(place, NOW)]


def test_complete_ones_are_found_by_their_steps(tmp_path: Path, place: str) -> None:
    for step in (1000, 900, 20000):
        write(tmp_path / f"step-{step}", "config.json", "model.safetensors", "optimizer.bin")
    assert found(place) == ["step-900", "step-1000", "step-20000"]
    first = find_checkpoints(place, NOW)[0]
    assert first.path == f"{place}/step-900"


def test_folders_with_any_name_and_unreadable_ones_stop_no_look(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("step²", "step2²", "gone"):
        write(tmp_path / name, "config.json", "model.safetensors")
    assert len(found(place)) == 3
    if "://" in place:
        return
    listed = Path.iterdir

    def deleted_meanwhile(folder: Path) -> Iterator[Path]:
        if folder.name == "gone":
            raise FileNotFoundError(folder)
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", deleted_meanwhile)
    assert found(place) == ["step2²", "step²"]


def test_what_misses_a_part_or_is_still_written_waits(tmp_path: Path, place: str) -> None:
    shards = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    index = "model.safetensors.index.json"
    write(tmp_path / "no-config", "model.safetensors")
    write(tmp_path / "no-weights", "config.json", "optimizer.bin", "training_args.bin")
    write(tmp_path / "half", "config.json", index, *shards[:2])
    write(tmp_path / "index", "config.json", index)
    write(tmp_path / "whole", "config.json", index, *shards)
    write(tmp_path / "pytorch", "config.json", "pytorch_model.bin")
    write(tmp_path / "empty", "config.json")
    write(tmp_path / "empty", "model.safetensors", content="")
    write(tmp_path / "written", "config.json")
    write(tmp_path / "written", "model.safetensors", age=QUIET - timedelta(seconds=1))
    write(tmp_path / "nested" / "deeper", "config.json", "model.safetensors")
    (tmp_path / "notes.txt").write_text("not a folder")
    assert found(place) == ["pytorch", "whole"]


def test_a_bucket_is_read_below_its_prefix_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server() as bucket:
        for name, value in (
            ("AWS_ENDPOINT_URL", bucket.endpoint),
            ("AWS_ACCESS_KEY_ID", "any"),
            ("AWS_SECRET_ACCESS_KEY", "any"),
            ("AWS_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        for name in ("step-1000", "step-900", "sharded"):
            bucket.put(f"run-7/{name}/config.json", b"{}")
        for name in ("step-1000/model", "step-900/model", "sharded/model-00001-of-00002"):
            bucket.put(f"run-7/{name}.safetensors", b"x")
        # Another prefix with the same beginning.
        bucket.put("run-70/step-1/config.json", b"{}")
        bucket.put("run-70/step-1/model.safetensors", b"x")
        place = f"s3://{BUCKET}/run-7"
        whole = [Checkpoint(name, f"{place}/{name}") for name in ("step-900", "step-1000")]
        assert find_checkpoints(place, NOW) == find_checkpoints(f"{place}/", NOW) == whole
        assert find_checkpoints(place, bucket.written_at + QUIET - timedelta(seconds=1)) == []
        bucket.put("run-7/sharded/model-00002-of-00002.safetensors", b"x")
        assert found(place) == ["sharded", "step-900", "step-1000"]
        bucket.delete(b"<Key>run-7/step-900/model.safetensors</Key>")
        assert found(place) == ["sharded", "step-1000"]
        assert found(f"s3://{BUCKET}/absent") == []


def test_model_of_a_checkpoint_has_its_path_or_name() -> None:
    one = Checkpoint("step-7", "/data/run/step-7")
    assert model_of(one, "ours/{path}") == "ours//data/run/step-7"
    assert model_of(one, "ours/run-{name}") == "ours/run-step-7"


def test_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is no folder"):
        find_checkpoints(str(tmp_path / "absent"), NOW)
    with pytest.raises(Refused, match="cannot be read"):
        find_checkpoints("nowhere://bucket/x", NOW)
