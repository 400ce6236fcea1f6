"""The memory of GPUs in the metrics, from what NVML reported on a machine with two H100."""

import math
from collections.abc import Iterator
from types import SimpleNamespace

import pynvml
import pytest
from prometheus_client import REGISTRY

from services.worker.engines.vllm.gpu_memory import open_nvml, watch_gpu_memory
from services.worker.metrics import GPU_MEMORY

# UUID, and bytes in use of 80 GiB.
RECORDED = (
    ("GPU-8f6f2b0c-1c5c-2a8e-94d1-6d1f3b9e4a11", 77_309_411_328),
    ("GPU-31c7a9d2-77e4-5b02-a6cf-0e5b8d2f9c43", 514_850_816),
)
TOTAL = 85_520_809_984


class RecordedNvml:
    NVMLError = pynvml.NVMLError

    def __init__(self) -> None:
        self.is_lost = False

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802  # names of the library
        return len(RECORDED)

    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> int:  # noqa: N802  # NVML's name
        return index

    def nvmlDeviceGetUUID(self, handle: int, /) -> str:  # noqa: N802  # NVML's name
        return RECORDED[handle][0]

    def nvmlDeviceGetMemoryInfo(self, handle: int, /) -> SimpleNamespace:  # noqa: N802  # NVML's name
        if self.is_lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        used = RECORDED[handle][1]
        return SimpleNamespace(total=TOTAL, used=used, free=TOTAL - used)


@pytest.fixture(autouse=True)
def empty_gauge() -> Iterator[None]:
    yield
    GPU_MEMORY.clear()


def shown(gpu: str, state: str) -> float | None:
    return REGISTRY.get_sample_value("proctor_gpu_memory_bytes", {"gpu": gpu, "state": state})


def test_each_gpu_is_shown_with_what_it_has_and_what_is_used() -> None:
    watch_gpu_memory(RecordedNvml(), None)
    assert (shown("0", "used"), shown("0", "total")) == (77_309_411_328, TOTAL)
    assert (shown("1", "used"), shown("1", "total")) == (514_850_816, TOTAL)


@pytest.mark.parametrize("visible", ["1", " 1 ", "GPU-31c7a9d2", RECORDED[1][0]])
def test_gpus_of_others_are_left_out(visible: str) -> None:
    watch_gpu_memory(RecordedNvml(), visible)
    assert (shown("0", "used"), shown("1", "used")) == (None, 514_850_816)


def test_no_gpu_is_visible_where_the_variable_is_empty() -> None:
    watch_gpu_memory(RecordedNvml(), "")
    assert shown("0", "used") is None


def test_gpu_that_is_lost_leaves_the_other_metrics() -> None:
    nvml = RecordedNvml()
    watch_gpu_memory(nvml, None)
    nvml.is_lost = True
    lost = shown("0", "used")
    assert lost is not None
    assert math.isnan(lost)


def test_library_has_what_is_asked_of_it() -> None:
    names = [name for name in vars(RecordedNvml) if name.startswith(("nvml", "NVML"))]
    assert all(hasattr(pynvml, name) for name in (*names, "nvmlInit"))
    assert {"total", "used"} <= {name for name, _ in pynvml.c_nvmlMemory_t._fields_}


def test_machine_without_a_driver_has_no_such_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", refuse)
    assert open_nvml() is None
