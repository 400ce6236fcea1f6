"""Which tool a log is of, by the names of its files and the fields of its document."""

from collections.abc import Callable
from typing import Protocol

from services.scheduler.imports.logged_run import LoggedRun, ReadOptions
from services.scheduler.imports.logs.document import LogProblem, as_list, as_object
from services.scheduler.imports.logs.every_eval_log import EveryEvalLog, looks_like_every_eval
from services.scheduler.imports.logs.harbor_job import HarborJob, looks_like_harbor
from services.scheduler.imports.logs.harness_log import HarnessLog, looks_like_harness
from services.scheduler.imports.logs.helm_log import HelmLog, looks_like_helm
from services.scheduler.imports.logs.inspect_log import InspectLog, looks_like_inspect
from services.scheduler.imports.logs.log_files import LogFiles
from services.scheduler.imports.logs.sample_writer import SampleWriter

FORMS = (
    "results and samples of lm-eval, a log of Inspect, a run folder of HELM, a job folder of Harbor, "
    "or samples in the form of Every Eval Ever"
)

_WRITE_OUT = "_write_out_info.json"
_EARLY_SAMPLES = (
    "It is what lm-eval before 0.4 writes with --write_out, which does not tell where a prompt ends and its "
    "answer begins. Evaluate again with lm-eval 0.4 or newer, and --log_samples."
)
_EARLY_RESULTS = (
    "It has figures of lm-eval before 0.4, without samples. "
    "Evaluate again with lm-eval 0.4 or newer, and --log_samples."
)


class LogReader(Protocol):
    def read(self) -> LoggedRun:
        """Raises `LogProblem`."""
        ...


def find_reader(files: LogFiles, options: ReadOptions, writer: SampleWriter) -> LogReader:
    """Raises `LogProblem` where the log is of no tool that is known."""
    # By names first: documents are read once more.
    readers: list[tuple[Callable[[LogFiles], bool], Callable[..., LogReader]]] = [
        (looks_like_harness, HarnessLog),
        (looks_like_helm, HelmLog),
        (looks_like_inspect, InspectLog),
        (_has_harness_results, HarnessLog),
        (looks_like_harbor, HarborJob),
        (looks_like_every_eval, EveryEvalLog),
    ]
    if not files.names:
        raise LogProblem("It is an archive without files.")
    for looks_like, reader in readers:
        if looks_like(files):
            return reader(files, options, writer)
    if problem := _of_early_harness(files):
        raise LogProblem(problem)
    if options.task:
        return HarnessLog(files, options, writer)
    raise LogProblem(f"It is no log that can be read: {FORMS}.")


def _of_early_harness(files: LogFiles) -> str:
    """What is wrong with a log of lm-eval before 0.4; "" for another one."""
    names = [name for name in files.names if name.endswith(".json")]
    if any(name.endswith(_WRITE_OUT) for name in names):
        return _EARLY_SAMPLES
    if not names:
        return ""
    document = files.document(names[0])
    listed = as_list(document)
    if listed and {"doc_id", "prompt_0"} <= as_object(listed[0]).keys():
        return _EARLY_SAMPLES
    found = as_object(document)
    # Of each task, or of BigScience's releases a list.
    has_results = isinstance(found.get("results"), dict | list)
    return _EARLY_RESULTS if has_results and isinstance(found.get("versions"), dict) else ""


def _has_harness_results(files: LogFiles) -> bool:
    names = [name for name in files.names if name.endswith(".json")]
    if len(names) != 1:
        return False
    document = as_object(files.document(names[0]))
    return isinstance(document.get("results"), dict) and ("samples" in document or "configs" in document)
