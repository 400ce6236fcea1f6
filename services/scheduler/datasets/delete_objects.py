"""Removes what lies in the object store of one data set."""

from contextlib import suppress

from services.scheduler.datasets.dataset import DatasetId
from services.scheduler.datasets.dataset_errors import ObjectStoreUnavailable
from services.scheduler.datasets.ports import ObjectStore


def prefix_of(dataset_id: DatasetId) -> str:
    return f"datasets/{dataset_id}"


def delete_objects(objects: ObjectStore, prefix: str) -> None:
    objects.delete([stored.key for stored in objects.objects(prefix)])


def try_to_delete_objects(objects: ObjectStore, prefix: str) -> None:
    """What cannot be removed now is swept later, since the prefix stays loose."""
    with suppress(ObjectStoreUnavailable):
        delete_objects(objects, prefix)
