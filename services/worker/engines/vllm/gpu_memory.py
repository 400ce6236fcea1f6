"""Memory of the worker's GPUs: NVIDIA's management library (NVML) is asked whenever metrics are read."""

from functools import partial
from importlib import import_module
from typing import Any, Protocol

from services.common.structured_logs import get_logger
from services.worker.metrics import GPU_MEMORY

log = get_logger()


class Nvml(Protocol):
    """The used part of the module `pynvml`, which has no types."""

    NVMLError: type[Exception]

    def nvmlDeviceGetCount(self) -> int: ...  # noqa: N802  # names of the library

    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> Any: ...  # noqa: N802  # NVML's name

    def nvmlDeviceGetUUID(self, handle: Any, /) -> str: ...  # noqa: N802  # NVML's name

    def nvmlDeviceGetMemoryInfo(self, handle: Any, /) -> Any: ...  # noqa: N802  # NVML's name


def open_nvml() -> Nvml | None:
    """None without the library (the extra `gpu`), or without a driver."""
    try:
        nvml: Any = import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        log.info("memory of gpus is unknown", reason=str(error))
        return None
    module: Nvml = nvml
    return module


def watch_gpu_memory(nvml: Nvml, visible: str | None) -> None:
    """`visible` is CUDA_VISIBLE_DEVICES: numbers or UUIDs of GPUs, by commas; None: all of them."""
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        if not _is_visible(index, nvml.nvmlDeviceGetUUID(handle), visible):
            continue
        for state in ("used", "total"):
            GPU_MEMORY.labels(str(index), state).set_function(partial(_bytes, nvml, handle, state))


def _is_visible(index: int, uuid: str, visible: str | None) -> bool:
    if visible is None:
        return True
    names = [name.strip() for name in visible.split(",") if name.strip()]
    # CUDA takes the beginning of a UUID for the whole.
    return any(name == str(index) or (name.startswith("GPU-") and uuid.startswith(name)) for name in names)


def _bytes(nvml: Nvml, handle: Any, state: str) -> float:
    try:
        return float(getattr(nvml.nvmlDeviceGetMemoryInfo(handle), state))
    except nvml.NVMLError:
        # A GPU that has fallen off the bus must not take the other metrics with it.
        return float("nan")
