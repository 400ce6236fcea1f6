"""Cost of rendering: rows of a file become hashed samples of MMLU, each size in a process of its own."""

import json
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table

from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rows.file_rows import FileRows
from services.scheduler.suites.rows.row_source import RowsReference
from services.scheduler.suites.suite import TaskDefinition
from services.scheduler.suites.yaml_installed_suites import load_suites

SUITES = Path(__file__).parents[3] / "suites"
SIZES = (20_000, 100_000)
SHOTS = (0, 5)
WARM_UP = 500


@dataclass(frozen=True)
class Rendered:
    """CPU seconds per 1,000 samples, and the highest memory of the process before and while it rendered."""

    cpu_seconds: float
    mib_before: float
    mib_peak: float


def write_rows(file: Path, count: int) -> None:
    """Rows as long as MMLU's: a question of some forty words and four options of a few."""
    with file.open("w", encoding="utf-8") as rows:
        for number in range(count):
            words = " ".join(f"word{(number * 7 + index) % 911}" for index in range(40))
            options = [f"option {number + index} of these" for index in range(4)]
            row = {
                "question": f"{number}: {words}?",
                "subject": "s",
                "choices": options,
                "answer": number % 4,
            }
            rows.write(json.dumps(row) + "\n")


def measure_rendering(file: Path, count: int, shots: int) -> Rendered:
    """The whole way of a run's rows: read, rendered, hashed, and let go."""
    task = _mmlu_task(file)
    for _ in open_task(task, FileRows(), shots, WARM_UP).samples:
        pass
    before, started, made = _peak_mib(), time.process_time(), 0
    for _ in open_task(task, FileRows(), shots, count).samples:
        made += 1
    if made != count:
        raise SystemExit(f"{made} samples of {count} rows")
    return Rendered((time.process_time() - started) / count * 1000, before, _peak_mib())


def _mmlu_task(file: Path) -> TaskDefinition:
    task = load_suites(SUITES).suite("mmlu").tasks[0]
    rows = RowsReference("mmlu", file=file)
    return replace(task, rows=rows, fewshot_rows=rows)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def print_rendering(measured: dict[tuple[int, int], Rendered]) -> None:
    table = Table(title="Rendering and hashing of MMLU-like samples (one process)")
    table.add_column("samples")
    table.add_column("shots", justify="right")
    table.add_column("CPU s per 1,000", justify="right")
    table.add_column("peak memory, MiB", justify="right")
    table.add_column("of it before, MiB", justify="right")
    for (size, shots), one in measured.items():
        figures = (f"{one.cpu_seconds:.4f}", f"{one.mib_peak:.0f}", f"{one.mib_before:.0f}")
        table.add_row(f"{size:,}", str(shots), *figures)
    Console(width=100).print(table)


async def main() -> None:
    measured: dict[tuple[int, int], Rendered] = {}
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        file = Path(folder) / "rows.jsonl"
        write_rows(file, max(SIZES))
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
            for shots in SHOTS:
                for size in SIZES:
                    asked = processes.submit(measure_rendering, file, size, shots)
                    measured[size, shots] = asked.result()
    print_rendering(measured)
