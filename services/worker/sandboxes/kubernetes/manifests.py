"""The manifest of a pod: as the standard "restricted" of Kubernetes asks for, and with limits."""

from collections.abc import Mapping
from typing import Any

from services.common.sandboxes.sandbox import Network, SandboxSpec
from services.worker.sandboxes.container.programs import HOME, first_process, relay_process

LABEL = "proctor.dev/sandbox"
POLICY = "proctor-sandboxes"
SANDBOX, RELAY = "sandbox", "relay"
_MIB = 1024**2
_TMP_BYTES, _HOME_BYTES = 64 * _MIB, 16 * _MIB
_SLACK_SECONDS = 120

Manifest = dict[str, Any]


def pod(spec: SandboxSpec, name: str, image: str, relay_image: str, runtime_class: str) -> Manifest:
    """`relay_image` has python3; the relay shares the pod's network and nothing else."""
    folders = dict.fromkeys((*spec.writable, spec.workdir), spec.limits.disk_bytes)
    if not spec.shows_image:
        folders |= {"/tmp": _TMP_BYTES, HOME: _HOME_BYTES}  # noqa: S108  # inside
    containers = [_sandbox(spec, image, list(folders))]
    if spec.network is Network.MODEL:
        containers.append(_relay(relay_image))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {LABEL: "true"}, "annotations": dict(_named(spec.labels))},
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": int(spec.lifetime_seconds) + _SLACK_SECONDS,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostname": "sandbox",
            # No name is resolved: a server of names could pass on what is asked for.
            "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["127.0.0.1"]},
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10_000,
                "runAsGroup": 10_000,
                "fsGroup": 10_000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": containers,
            "volumes": [_volume(number, size) for number, size in enumerate(folders.values())],
            **({"runtimeClassName": runtime_class} if runtime_class else {}),
        },
    }


def policy() -> Manifest:
    """No traffic, in or out, for any pod of the namespace, which is for sandboxes alone."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": POLICY},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }


def _sandbox(spec: SandboxSpec, image: str, folders: list[str]) -> Manifest:
    limits = spec.limits
    # Folders in memory count as memory of the container. Requests equal limits, so it is evicted last.
    amounts = {
        "cpu": f"{int(limits.cpus * 1000)}m",
        "memory": str(limits.memory_bytes),
        "ephemeral-storage": "64Mi",
    }
    return {
        "name": SANDBOX,
        "image": image,
        "command": first_process(spec.lifetime_seconds),
        "workingDir": "/",
        "resources": {"limits": amounts, "requests": amounts},
        "volumeMounts": [{"name": f"folder-{at}", "mountPath": path} for at, path in enumerate(folders)],
        **_held(),
    }


def _relay(image: str) -> Manifest:
    amounts = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "16Mi"}
    return {
        "name": RELAY,
        "image": image,
        "command": relay_process(),
        "resources": {"limits": amounts, "requests": {**amounts, "cpu": "10m", "memory": "32Mi"}},
        **_held(),
    }


def _held() -> Manifest:
    """Standard input closes when the worker's connection does, which ends the first process."""
    return {
        "stdin": True,
        "stdinOnce": True,
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "privileged": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _volume(number: int, size: int) -> Manifest:
    return {"name": f"folder-{number}", "emptyDir": {"medium": "Memory", "sizeLimit": str(size)}}


def _named(labels: Mapping[str, str]) -> Mapping[str, str]:
    return {name if "/" in name else f"proctor.dev/{name}": value for name, value in labels.items()}
