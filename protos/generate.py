"""Generates proctor/v1 and proctor/keda from protos: messages, services, types. `--check` only compares."""

import argparse
import filecmp
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
# Our own contracts, and the one that KEDA calls.
PACKAGES = (Path("proctor/v1"), Path("proctor/keda"))

_SERVICE = re.compile(r"^service ", re.MULTILINE)


def generate(out: Path) -> None:
    """Writes the generated packages below `out`."""
    paths = sorted(path for package in PACKAGES for path in (PROTOS / package).glob("*.proto"))
    files = [str(path.relative_to(PROTOS)) for path in paths]
    services = [
        name
        for name, path in zip(files, paths, strict=True)
        if _SERVICE.search(path.read_text(encoding="utf-8"))
    ]
    bin_folder = Path(sys.executable).parent
    protoc = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"--proto_path={PROTOS}",
        f"--plugin=protoc-gen-mypy={bin_folder / 'protoc-gen-mypy'}",
        f"--plugin=protoc-gen-mypy_grpc={bin_folder / 'protoc-gen-mypy_grpc'}",
    ]
    subprocess.run([*protoc, f"--python_out={out}", f"--mypy_out=quiet:{out}", *files], check=True)
    subprocess.run(
        [*protoc, f"--grpc_python_out={out}", f"--mypy_grpc_out=quiet:{out}", *services], check=True
    )
    for package in PACKAGES:
        (out / package / "__init__.py").write_text(
            f'"""Generated from protos/{package} by `make protos`; never edited."""\n'
        )


def differences(generated: Path, committed: Path) -> list[str]:
    """Names of files that are missing, stale or different."""
    wanted = {path.name for path in generated.iterdir()}
    present = {path.name for path in committed.glob("*") if path.is_file()}
    changed = {
        name
        for name in wanted & present
        if not filecmp.cmp(generated / name, committed / name, shallow=False)
    }
    return sorted((wanted ^ present) | changed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    is_check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        generate(out)
        if is_check:
            stale = [name for package in PACKAGES for name in differences(out / package, ROOT / package)]
            if stale:
                print(f"Generated code is not current: {', '.join(stale)}. Run `make protos`.")
            return 1 if stale else 0
        for package in PACKAGES:
            shutil.rmtree(ROOT / package, ignore_errors=True)
            shutil.copytree(out / package, ROOT / package)
    return 0


if __name__ == "__main__":
    sys.exit(main())
