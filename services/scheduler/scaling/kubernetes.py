"""Deletion costs of pods, by the API of Kubernetes: the scheduler's only use of it."""

import asyncio
import json
import ssl
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import quote, urlsplit

from services.common.errors import DomainError, ErrorKind

# Kubernetes mounts them into a pod whose service account has a token, and renews them there.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
_SECONDS = 5.0
_OK, _GONE = 200, 404
_ADVICE = {
    401: "it refuses the token of the service account",
    403: "the service account needs the verb patch on pods",
}


class DeletionCostNotSet(DomainError, kind=ErrorKind.UNAVAILABLE):
    """Kubernetes at {url} fails: {problem}. Correct it, or set PROCTOR_SCHEDULER_SET_DELETION_COSTS=false."""


class KubernetesPodCosts:
    """Patches pods of the scheduler's own namespace, with the token of its service account."""

    def __init__(self, url: str, account: Path = SERVICE_ACCOUNT) -> None:
        self._url = url.rstrip("/")
        self._account = account

    async def put(self, pod: str, cost: int) -> None:
        """Raises DeletionCostNotSet."""
        try:
            status = await asyncio.to_thread(self._patch, pod, cost)
        except (OSError, HTTPException) as error:  # an ssl.SSLError is an OSError
            raise DeletionCostNotSet(url=self._url, problem=str(error) or repr(error)) from error
        if status not in (_OK, _GONE):
            raise DeletionCostNotSet(url=self._url, problem=_ADVICE.get(status, f"it answers {status}"))

    def _patch(self, pod: str, cost: int) -> int:
        namespace, token = self._read("namespace"), self._read("token")
        address = urlsplit(self._url)
        context = ssl.create_default_context(cafile=str(self._account / "ca.crt"))
        connection = HTTPSConnection(
            address.hostname or "", address.port or 443, context=context, timeout=_SECONDS
        )
        try:
            connection.request(
                "PATCH",
                f"{address.path}/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(pod, safe='')}",
                body=json.dumps({"metadata": {"annotations": {ANNOTATION: str(cost)}}}),
                headers={
                    "Authorization": f"Bearer {token}",
                    "Content-Type": "application/merge-patch+json",
                },
            )
            return connection.getresponse().status
        finally:
            connection.close()

    def _read(self, name: str) -> str:
        return (self._account / name).read_text(encoding="utf-8").strip()
