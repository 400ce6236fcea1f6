"""A folder and a bucket do the same."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.common.errors import ObjectStoreUnavailable
from services.common.objects.obstore_objects import ObstoreObjects
from tests.fakes.storage.s3_server import BUCKET, s3_server


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
    return sorted(objects.keys(prefix))


def test_what_was_put_is_there_whole_and_in_parts(objects: ObstoreObjects) -> None:
    content = bytes(range(256)) * 40_000
    objects.put("datasets/one/rows", [content[:1000], content[1000:9_000_000], content[9_000_000:]])
    assert objects.get("datasets/one/rows") == content
    assert objects.get_range("datasets/one/rows", 250, 10) == content[250:260]
    objects.put("datasets/one/rows", [b"other"])
    assert objects.get("datasets/one/rows") == b"other"


def test_deleting_takes_what_is_there_and_minds_nothing_else(objects: ObstoreObjects) -> None:
    for name in ("one/a", "one/b", "two/a"):
        objects.put(f"datasets/{name}", [b"x"])
    assert keys(objects, "datasets") == ["datasets/one/a", "datasets/one/b", "datasets/two/a"]
    objects.delete(["datasets/one/a", "datasets/one/b", "datasets/one/none"])
    objects.delete([])
    assert keys(objects, "datasets") == ["datasets/two/a"]
    assert keys(objects, "nothing") == []


def test_what_is_not_there_is_reported_in_a_sentence_that_names_no_folder(objects: ObstoreObjects) -> None:
    with pytest.raises(ObjectStoreUnavailable) as reported:
        objects.get("datasets/none")
    problem = "something that was stored there is not there any more"
    assert str(reported.value).startswith(f"The object store cannot be used: {problem}. ")


def test_a_full_store_is_reported_as_full(tmp_path: Path) -> None:
    """A file may grow to a limit only, which is met as a full disk is."""
    objects = ObstoreObjects((tmp_path / "objects").as_uri())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(ObjectStoreUnavailable, match="cannot be used: it has no room"):
            objects.put("datasets/one/rows", [bytes(10_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
