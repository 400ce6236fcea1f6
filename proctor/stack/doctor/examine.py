"""All checks of `proctor doctor`, in the order in which a person would repair what is missing."""

from collections.abc import Mapping
from pathlib import Path

from proctor.stack.defaults import DEFAULT_GATEWAY_GRPC, DEFAULT_GATEWAY_HTTP, default_state_dir
from proctor.stack.doctor import machine
from proctor.stack.doctor import machine as installed_parts
from proctor.stack.doctor import models as local_models
from proctor.stack.doctor.command_names import examine_command, examine_import_package
from proctor.stack.doctor.finding import Finding, Severity, fine, missing, warning
from proctor.stack.doctor.models import examine_providers
from proctor.stack.errors import StackError
from proctor.stack.state import StackState, read_stack_state
from proctor.stack.supervision.addresses import free_or_chosen

_ADDRESSES = {
    "PROCTOR_GATEWAY_HTTP_ADDRESS": DEFAULT_GATEWAY_HTTP,
    "PROCTOR_GATEWAY_GRPC_ADDRESS": DEFAULT_GATEWAY_GRPC,
}


async def examine_stack(environ: Mapping[str, str], current: Path) -> list[Finding]:
    state_dir = default_state_dir(environ, current)
    try:
        stack = read_stack_state(state_dir)
    except StackError as error:
        return [missing("stack", str(error), "set PROCTOR_STATE_DIR to a folder of your own")]
    if stack is None:
        return [fine("stack", f"none runs on {state_dir}: `proctor up` starts one"), *_examine_ports(environ)]
    return [await _examine_running(stack)]


async def _examine_running(stack: StackState) -> Finding:
    from proctor.stack.supervision.probes import http_is_ready  # noqa: PLC0415  # needs the extra `stack`

    ailing = [name for name, child in stack.children.items() if child.state != "ready"]
    message = f"{stack.phase} at http://{stack.gateway_http}"
    if stack.phase == "running" and not ailing and await http_is_ready(stack.gateway_http):
        return fine("stack", f"{message}: it serves")
    logs = ", ".join(stack.children[name].log for name in ailing) or "its logs"
    what = f"not ready: {', '.join(ailing)}" if ailing else "it does not answer as ready"
    return warning("stack", f"{message}; {what}", f"see {logs}, or `proctor down` and `proctor up`")


def _examine_ports(environ: Mapping[str, str]) -> list[Finding]:
    found: list[Finding] = []
    for setting, default in _ADDRESSES.items():
        address = environ.get(setting, default)
        try:
            free_or_chosen(address, setting, address)
        except StackError as error:
            problem, _, advice = str(error).partition(": ")
            found.append(missing("ports", problem, advice))
    free = ", ".join(environ.get(setting, default) for setting, default in _ADDRESSES.items())
    return found or [fine("ports", f"free: {free}")]


async def examine(environ: Mapping[str, str], current: Path) -> list[Finding]:
    found = [
        installed_parts.examine_python(),
        installed_parts.examine_packages(),
        *examine_import_package(),
        examine_command(),
        installed_parts.examine_postgres(),
        *await installed_parts.examine_postgres_server(environ),
        installed_parts.examine_nats(),
        machine.examine_data_folder(environ, current),
        machine.examine_disk(environ, current),
        machine.examine_memory(),
        *machine.examine_sandboxes(),
        local_models.examine_vllm(environ),
        local_models.examine_gpu(environ),
        local_models.examine_starter_model(environ),
        *await examine_providers(environ),
        *await examine_stack(environ, current),
    ]
    return [*found, *_nothing_to_examine(found)]


def _nothing_to_examine(found: list[Finding]) -> list[Finding]:
    """Reports that no model can be served. One source of models, vLLM or a provider, is enough."""
    fit = {finding.name for finding in found if finding.severity is Severity.OK}
    if "vllm" in fit or any(name.startswith("provider ") for name in fit):
        return []
    return [
        missing(
            "models",
            "neither vLLM nor a provider can serve one",
            "call `proctor vllm install`, or set the key or address of a provider",
        )
    ]
