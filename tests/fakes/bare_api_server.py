"""An API server that knows the core kinds, has no objects, and takes none."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

_KINDS = {
    "v1": {"Secret": "secrets"},
    "apps/v1": {"Deployment": "deployments"},
}


def _answer(path: str) -> dict[str, Any] | None:
    if path == "/version":
        return {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        apps = {"groupVersion": "apps/v1", "version": "v1"}
        group = {"name": "apps", "versions": [apps], "preferredVersion": apps}
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}
    for version, kinds in _KINDS.items():
        if path in (f"/api/{version}", f"/apis/{version}"):
            resources = [
                {
                    "name": plural,
                    "singularName": "",
                    "namespaced": True,
                    "kind": kind,
                    "verbs": ["get", "list"],
                }
                for kind, plural in kinds.items()
            ]
            return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
    if path.endswith("/secrets"):
        return {"kind": "SecretList", "apiVersion": "v1", "metadata": {}, "items": []}
    return None


class _Requests(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = _answer(self.path.partition("?")[0])
        status = HTTPStatus.OK if found else HTTPStatus.NOT_FOUND
        missing = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": int(status)}
        body = json.dumps(found or missing).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named by its base
        """Nothing: tests read what helm says."""


@contextmanager
def bare_api_server() -> Iterator[str]:
    """Its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Requests) as server:
        serving = Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()
