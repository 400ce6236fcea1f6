"""A folder and a bucket do the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.scheduler.datasets.dataset_errors import ObjectStoreUnavailable
from services.scheduler.datasets.obstore_objects import ObstoreObjects
from tests.fakes.s3_server import BUCKET, s3_server


@pytest.fixture(params=["folder", "bucket"])
def objects(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObstoreObjects]:
    if request.param == "folder":
        yield ObstoreObjects((tmp_path / "objects").as_uri())
        return
    with s3_server() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield ObstoreObjects(f"s3://{BUCKET}/below")


def keys(objects: ObstoreObjects, prefix: str) -> list[str]:
    return sorted(stored.key for stored in objects.objects(prefix))


def test_what_was_put_is_there_whole_and_in_parts(objects: ObstoreObjects) -> None:
    content = bytes(range(256)) * 40_000
    objects.put("datasets/one/rows", content)
    assert objects.get("datasets/one/rows") == content
    assert objects.get_range("datasets/one/rows", 250, 10) == content[250:260]
    objects.put("datasets/one/rows", b"other")
    assert objects.get("datasets/one/rows") == b"other"


def test_deleting_takes_what_is_there_and_minds_nothing_else(objects: ObstoreObjects) -> None:
    for name in ("one/a", "one/b", "two/a"):
        objects.put(f"datasets/{name}", b"x")
    assert keys(objects, "datasets") == ["datasets/one/a", "datasets/one/b", "datasets/two/a"]
    objects.delete(["datasets/one/a", "datasets/one/b", "datasets/one/none"])
    objects.delete([])
    assert keys(objects, "datasets") == ["datasets/two/a"]
    assert keys(objects, "nothing") == []


def test_what_is_not_there_is_told_in_a_sentence(objects: ObstoreObjects) -> None:
    with pytest.raises(ObjectStoreUnavailable, match=r"cannot be used: .*none.* Nothing was changed"):
        objects.get("datasets/none")
