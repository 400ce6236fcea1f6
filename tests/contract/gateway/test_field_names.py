"""A field of REST and the field of a contract that it is copied from, or to, have one name.

`present` copies fields of the same name, so a name that differs stands in a call, as `name=message.other`.
"""

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from google.protobuf.descriptor import Descriptor

import proctor.v1

ROOT = Path(__file__).parents[3]
# Calls that change the form of a field and not its meaning.
_CONVERTERS = frozenset({"json_value", "moment", "number_of", "optional", "value_of", "word_of"})
# Beginnings and ends that say the form of a field on the wire, which JSON shows by itself.
_BEGINNINGS, _ENDS = ("is_", "has_"), ("_json",)
_PROMISED = "the name that clients of REST were promised"
_OPENAI = "the name in OpenAI's API"
# (REST, contract): why they differ.
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("benchmark_suite", "benchmark"): _PROMISED,
    ("code", "failure_class"): _PROMISED,
    ("completed", "recorded"): _PROMISED,
    ("completed_at", "finished_at"): _PROMISED,
    ("count", "row_count"): _PROMISED,
    ("current_step", "phase"): _PROMISED,
    ("cursor", "page_token"): _PROMISED,
    ("custom_id", "row_id"): _PROMISED,
    ("id", "dataset_id"): _PROMISED,
    ("id", "model"): "what an order calls model_id, as promised",
    ("job_id", "run_id"): _PROMISED,
    ("like", "like_run_id"): "a word of the address, as the flag --like of the command line",
    ("limit", "max_entries"): _PROMISED,
    ("row_id", "id"): "the word of the address is id, which is a function of Python",
    ("mapping", "name"): "a word of the address, as the flag --mapping of the command line",
    ("limit", "page_size"): _PROMISED,
    ("memory_needed", "memory_bytes"): _PROMISED,
    ("model_id", "model"): _PROMISED,
    ("model_name", "model"): _PROMISED,
    ("next_cursor", "next_page_token"): _PROMISED,
    ("rollout", "first_rollout"): "a list that begins at this answer and ends with it",
    ("sample", "first_sample"): "a list that begins at this answer and ends with it",
    ("repetitions", "rollouts"): "of a judge: verdicts on one answer, which may be one of several rollouts",
    ("size", "size_bytes"): _PROMISED,
    ("status", "state"): _PROMISED,
    ("suite", "benchmark"): _PROMISED,
    ("total_runs", "total"): _PROMISED,
    ("total_samples", "answered"): _PROMISED,
    ("truncate", "truncation"): _PROMISED,
    ("after", "after_file_id"): _OPENAI,
    ("bytes", "size_bytes"): _OPENAI,
    ("completed", "answered"): _OPENAI,
    ("filename", "name"): _OPENAI,
    ("id", "batch_id"): _OPENAI,
    ("id", "file_id"): _OPENAI,
    ("previous_job_id", "previous_run_id"): "a run is a job in these bodies, as promised",
    ("left_out_jobs", "left_out_runs"): "a run is a job in these bodies, as promised",
    ("against_job_id", "against_run_id"): "a run is a job in these bodies, as promised",
    ("row", "doc_id"): "the number of the row, which lm-eval calls doc_id",
    ("id", "row_id"): "the key in a line of a data set",
    ("document", "text"): "the text of the YAML document, which has files beside it",
    ("metric", "name"): "the key of a metric in a suite file, as in what a rescoring is sent",
    ("force", "is_forced"): "an instruction in a request",
    ("form", "format"): "a parameter in Python, whose name over HTTP is format",
    ("total_bytes", "size_bytes"): "an argument and no field of REST",
    ("user", "name"): "of the caller, and of no contract",
    ("verdicts", "answered"): "of a judge: its answers are verdicts, beside those of the judged run",
}


def known_fields() -> frozenset[str]:
    """The names of all fields of the contracts."""
    found: set[str] = set()

    def add(messages: Iterable[Descriptor]) -> None:
        for message in messages:
            found.update(message.fields_by_name)
            add(message.nested_types)

    for module in pkgutil.iter_modules(proctor.v1.__path__):
        if module.name.endswith("_pb2"):
            contract = importlib.import_module(f"proctor.v1.{module.name}").DESCRIPTOR
            add(contract.message_types_by_name.values())
    return frozenset(found)


def copied_field(value: ast.expr) -> str | None:
    """The attribute that an expression copies, perhaps converted; None for what is computed."""
    match value:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if not owner.endswith("_pb2"):
            return name
        case ast.BoolOp(op=ast.Or(), values=[first, ast.Constant()]):
            return copied_field(first)
        case ast.Call(func=ast.Name(id="optional"), args=[_, ast.Constant(value=str(name))]):
            return name
        case ast.Call(func=ast.Name(id=called), args=[*_, last]) if called in _CONVERTERS:
            return copied_field(last)
    return None


def copies(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Pairs of a field of REST and the attribute or field that it is copied from or to."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = ast.unparse(call.func)
        is_message = "_pb2." in called
        if not (is_message or called == "present" or called[0].isupper()):
            continue
        for keyword in call.keywords:
            field = copied_field(keyword.value)
            if keyword.arg and field:
                yield (field, keyword.arg) if is_message else (keyword.arg, field)


def is_one_name(shown: str, field: str) -> bool:
    forms = {f"{beginning}{shown}{end}" for beginning in ("", *_BEGINNINGS) for end in ("", *_ENDS)}
    return field in forms


def differing_names() -> dict[tuple[str, str], str]:
    """Pairs of names that differ, each with a file that has it."""
    fields = known_fields()
    return {
        (shown, field): str(path.relative_to(ROOT))
        for path in sorted((ROOT / "services" / "gateway" / "api").rglob("*.py"))
        for shown, field in copies(ast.parse(path.read_text()))
        if field in fields and not is_one_name(shown, field)
    }


def test_fields_of_rest_have_the_names_of_the_contract() -> None:
    found = differing_names()
    unexplained = {names: path for names, path in found.items() if names not in EXCEPTIONS}
    assert not unexplained, "give them one name, or say in EXCEPTIONS why they have two"


def test_exceptions_are_still_needed() -> None:
    assert not EXCEPTIONS.keys() - differing_names().keys()


def test_a_differing_name_is_found_in_all_forms_of_a_copy() -> None:
    tree = ast.parse(
        "present(Shown, message, a=message.b)\n"
        "Shown(c=optional(message, 'd'), e=word_of(run_pb2.RunState, message.f), same=message.same)\n"
        "run_pb2.Run(g=self.h or None, i=number_of(self.j), computed=len(self.k))\n"
        "other(l=message.m)\n"
    )
    assert list(copies(tree)) == [
        ("a", "b"),
        ("c", "d"),
        ("e", "f"),
        ("same", "same"),
        ("h", "g"),
        ("j", "i"),
    ]
