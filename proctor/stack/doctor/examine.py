"""All questions of `proctor doctor`, in the order in which one would mend things."""

from collections.abc import Mapping
from pathlib import Path

from proctor.stack.doctor import installed_parts, local_models, machine
from proctor.stack.doctor.finding import Finding, Verdict, missing
from proctor.stack.doctor.providers import examine_providers
from proctor.stack.doctor.running_stack import examine_stack


async def examine(environ: Mapping[str, str], current: Path) -> list[Finding]:
    found = [
        installed_parts.examine_python(),
        installed_parts.examine_packages(),
        installed_parts.examine_postgres(),
        installed_parts.examine_nats(),
        machine.examine_data_folder(environ, current),
        machine.examine_disk(environ, current),
        machine.examine_memory(),
        local_models.examine_vllm(environ, current),
        local_models.examine_gpu(environ, current),
        local_models.examine_starter_model(environ),
        *await examine_providers(environ),
        *await examine_stack(environ, current),
    ]
    return [*found, *_nothing_to_examine(found)]


def _nothing_to_examine(found: list[Finding]) -> list[Finding]:
    """Each alone may be missing; without any of them there is no model."""
    fit = {finding.name for finding in found if finding.verdict is Verdict.OK}
    if "vllm" in fit or any(name.startswith("provider ") for name in fit):
        return []
    return [
        missing(
            "models",
            "neither vLLM nor a provider can serve one",
            "make vLLM's environment, or set the key or address of a provider",
        )
    ]
