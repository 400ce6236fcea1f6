"""Removes what lies in the object store of one data set."""

from contextlib import suppress

from services.scheduler.datasets.dataset import DatasetId
from services.scheduler.datasets.dataset_errors import ObjectStoreUnavailable
from services.scheduler.datasets.ports import ObjectStore

PREFIX = "datasets"


def prefix_of(dataset_id: DatasetId) -> str:
    return f"{PREFIX}/{dataset_id}"


def delete_objects(objects: ObjectStore, prefix: str) -> None:
    """What cannot be removed now is swept later, since no data set names it."""
    with suppress(ObjectStoreUnavailable):
        objects.delete([stored.key for stored in objects.objects(prefix)])
