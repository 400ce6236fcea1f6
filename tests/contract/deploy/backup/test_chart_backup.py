"""Backups of a release: off by default, where they go, and what is at rest while one is restored."""

from typing import Any

from tests.contract.deploy.rendered import of_kind, pods
from tests.contract.deploy.settings import SETTINGS

BUCKET, VOLUME = "backups in a bucket", "a backup of a volume that is restored"


def command(name: str, pod_name: str) -> list[str]:
    [container] = dict(pods(name))[pod_name]["spec"]["containers"]
    words: list[str] = container["command"]
    return words[4:]


def mounted(name: str, pod_name: str) -> dict[str, Any]:
    pod = dict(pods(name))[pod_name]["spec"]
    claims = {each["name"]: each.get("persistentVolumeClaim", {}).get("claimName") for each in pod["volumes"]}
    return {
        each["mountPath"]: claims[each["name"]]
        for container in pod["containers"]
        for each in container["volumeMounts"]
        if claims[each["name"]]
    }


def test_no_backup_unless_it_is_asked_for() -> None:
    for name in SETTINGS.keys() - {BUCKET, VOLUME}:
        assert not of_kind(name, "CronJob", "Job"), name


def test_backups_lie_beside_each_other_in_the_bucket() -> None:
    assert command(BUCKET, "proctor-backup") == ["save", "s3://proctor-backups/production", "7"]
    [job] = of_kind(BUCKET, "CronJob")
    assert (job["spec"]["concurrencyPolicy"], job["spec"]["schedule"]) == ("Forbid", "17 2 * * *")


def test_a_volume_of_backups_outlives_the_release() -> None:
    place = "file:///var/lib/proctor/backups"
    claims = {"/var/lib/proctor/backups": "proctor-backup", "/var/lib/proctor/objects": "proctor-objects"}
    assert command(VOLUME, "proctor-backup") == ["save", place, "7"]
    assert mounted(VOLUME, "proctor-backup") == claims
    [claim] = [
        each
        for each in of_kind(VOLUME, "PersistentVolumeClaim")
        if each["metadata"]["name"] == "proctor-backup"
    ]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_nothing_writes_while_a_backup_is_restored() -> None:
    name = "proctor-restore-2026-11-29t02-17-00z"
    place = "file:///var/lib/proctor/backups/2026-11-29T02-17-00Z"
    assert command(VOLUME, name) == ["restore", place]
    replicas = {each["metadata"]["name"]: each["spec"]["replicas"] for each in of_kind(VOLUME, "Deployment")}
    assert (replicas["proctor-scheduler"], replicas["proctor-results"]) == (0, 0)
