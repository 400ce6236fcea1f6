"""The Python code that a task of lm-evaluation-harness names, with its files from the suite's folder."""

from proctor.code_files import function_file
from services.scheduler.suites.format.lm_eval_task import ConvertedTask
from services.scheduler.suites.format.suite_document import ValueFault
from services.scheduler.suites.format.yaml_files import Declaration, SuiteFiles
from services.scheduler.suites.rows.task_code import PROCESS_DOCS, CodeFunction, TaskCode


def read_code(files: SuiteFiles, declaration: Declaration, task: ConvertedTask) -> TaskCode | None:
    """None where there is none, or a fault is added. The keys of the task then name columns of its code."""
    functions: list[CodeFunction] = []
    needed: dict[str, bytes] = {}
    for key, name in task.functions.items():
        named_in = declaration.location((key,)).file
        path, function = function_file(name, named_in, lambda path: bool(files.code_files(path)))
        found = files.code_files(path) if path else {}
        if not found:
            problem = f"!function {name}: {path or 'its file'} is not in the suite's folder"
            task.faults.append(ValueFault((key,), problem))
            continue
        functions.append(CodeFunction(key, path, function))
        needed |= found
        if key != PROCESS_DOCS:
            task.fields[key] = functions[-1].column
    return TaskCode(declaration.text("task"), tuple(functions), needed) if functions else None
