"""Settings of a worker, read from environment variables."""

import os
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Literal

from pydantic import Field

from proctor.values.providers.worker import DEFAULT_DRAIN_SECONDS
from services.common.nats.streams import MAX_HEARTBEAT_SECONDS
from services.common.shared_settings import AllowedBaseUrls, NatsServiceSettings, PoolsFilePath, settings_of

DEFAULT_ACK_WAIT_SECONDS = 15.0


def _sandbox_backend() -> Any:
    return os.environ.get("SANDBOX_BACKEND", "").strip().lower() or "process"


class WorkerSettings(NatsServiceSettings):
    """Read once, at the start. Keys of providers are read from the variables that the pools file names."""

    model_config = settings_of("worker")

    pools_file: PoolsFilePath = Path("pools.yaml")
    allowed_base_urls: AllowedBaseUrls = ""
    pool: str = "local"
    """Name of the worker's pool in the pools file."""
    pod_name: str = ""
    """Name of the worker's pod on Kubernetes, of which the scheduler can set the deletion cost."""
    health_address: str = "127.0.0.1:8084"
    """host:port of the gRPC health service."""
    ack_wait_seconds: float = Field(default=DEFAULT_ACK_WAIT_SECONDS, ge=1)
    """NATS redelivers a shard whose ack deadline was not extended for this time."""
    max_tries: int = Field(default=8, ge=1)
    """Tries of a sample that fails at the provider. A 429 is not a try: only the run's deadline bounds it."""
    # As in OpenAI's own client: long answers of reasoning models take minutes.
    request_timeout_seconds: float = Field(default=600.0, gt=0)
    """Time limit of one request to an engine or provider."""
    drain_seconds: float = Field(default=DEFAULT_DRAIN_SECONDS, ge=0)
    """Time for requests in flight after SIGTERM. What is left is redelivered to another worker."""
    switch_when_idle_seconds: float = Field(default=2.0, gt=0)
    """An idle worker loads another model after this time without work for its own."""
    min_model_residency_seconds: float = Field(default=60.0, gt=0)
    """A worker with work for its model keeps it for at least this time."""
    retry_load_seconds: float = Field(default=60.0, gt=0)
    """Time until a model that could not be loaded is tried again."""
    list_models_timeout_seconds: float = Field(default=8.0, gt=0)
    """Time limit for listing the models of the pool."""
    sandbox_engine: Literal["process", "docker", "kubernetes", "modal"] = Field(
        default_factory=_sandbox_backend, validate_default=True
    )
    """Engine of sandboxes: `process` (bubblewrap), `docker` (or podman), `kubernetes` (pods) or `modal`.
    Where it is not set, `SANDBOX_BACKEND` counts."""
    sandbox_socket: Path = Path("/var/run/docker.sock")
    """Socket of the container engine; podman's service usually has /run/podman/podman.sock."""
    sandbox_namespace: str = Field(
        default="proctor-sandboxes", pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
    )
    """Kubernetes namespace of sandboxes, for nothing else."""
    sandbox_runtime_class: str = ""
    """RuntimeClass of the pods of sandboxes, such as gvisor; empty means the cluster's default."""
    sandbox_app: str = Field(default="proctor-sandboxes", pattern=r"^[A-Za-z0-9._-]{1,63}$")
    """App of Modal that has the sandboxes; it is made where it is missing."""
    sandbox_image: str = Field(default="docker.io/library/python:3.13-slim", min_length=1)
    """Image of sandboxes in containers, pods and at Modal: a shell, tar and python3 are needed in it."""
    sandbox_images: str = ""
    """Images that tasks and orders may name beside it, as prefixes with commas, such as
    registry.example.org/tasks/; * allows all. A worker pulls them with the rights of its operator."""
    sandbox_builds: Literal["no", "offline", "network"] = "no"
    """Whether the docker engine builds the Dockerfiles of tasks, as root of its containers: `offline` without
    a network. Images that they begin with must be allowed too."""
    sandbox_slots: int = Field(default=0, ge=0)
    """Sandboxes that are open at a time, for answers that are code; 0 means one per core."""
    sandbox_max_memory_bytes: int = Field(default=16 * 1024**3, gt=0)
    """Memory of one sandbox: a task that asks for more fails. Each task sets its own need."""
    sandbox_max_cpus: float = Field(default=0, ge=0)
    """CPUs of one sandbox: a task that asks for more fails. 0 means all that the machine has, and no bound
    for pods and Modal."""
    verifier_wheels: Path | None = None
    """Folder of wheels for tests, and agents of process sandboxes, that install packages by pip, uv or pipx,
    and for those that a Dockerfile installs: a sandbox has no network. Tests that need more than it holds
    give no score."""
    agent_programs: Path | None = None
    """Folder with a folder for each program of agents, such as mini-swe-agent or qwen-code: its wheels, or
    tar archives of its files. Sandboxes get programs from it; those that it lacks must be in the image."""
    rollout_max_bytes: int = Field(default=256 * 1024**2, gt=0, le=1024**3)
    """Bytes of the files that an agent leaves in its working folder. A rollout with more has no score."""
    rollout_max_files: int = Field(default=100_000, gt=0, le=1_000_000)
    """Files, folders and links that an agent leaves there. A rollout with more has no score."""
    rollout_slots: int = Field(default=0, ge=0)
    """Rollouts at a time, each with one open sandbox; 0 means four per core. Never more than the
    concurrency of the pool."""
    rollout_rest_seconds: float = Field(default=60, gt=0)
    """Seconds that a rollout waits for its provider, by a limit of the rate or between tries, before it gives
    its place to others. Its working folder is kept until the answer is there; a program's sandbox stays open
    once it had an answer, and is closed before."""
    rollout_provider_seconds: float = Field(default=1800, gt=0)
    """A run of rollouts fails after so many seconds without an answer of its provider; a retry goes on."""
    bundle_cache_dir: Path = Path(gettempdir()) / f"proctor-bundles-{os.getuid()}"
    """Folder where files of tasks are kept for further rollouts. It may be emptied at any time."""
    bundle_cache_bytes: int = Field(default=2 * 1024**3, ge=0)
    """Bytes of tasks that are kept; those used last stay."""
    heartbeat_seconds: float = Field(default=3.0, gt=0, le=MAX_HEARTBEAT_SECONDS)
    """Interval of the worker's heartbeats. A worker without a heartbeat for 15 s is taken for dead."""
