"""Refreshes the vendored scripts and font of the pages: `make assets`, by a person who has npm.

Each file is taken from the package and version that `vendored.toml` names, by `npm pack` from the registry
that npm is configured for, and has to have the digest there. For a new version, change both: the digest that
was found is printed.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "services/gateway/pages/assets/vendored"


def packed(package: str, version: str, folder: Path) -> Path:
    """The tarball of a package."""
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), f"{package}@{version}"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return folder / printed.split()[-1]


def main() -> int:
    listed = tomllib.loads((FOLDER / "vendored.toml").read_text())["files"]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, facts in listed.items():
            with tarfile.open(packed(facts["package"], facts["version"], Path(folder))) as tar:
                member = tar.extractfile(facts["path"])
                assert member, f"{facts['package']} has no {facts['path']}"
                body = member.read()
            digest = hashlib.sha256(body).hexdigest()
            is_right = digest == facts["sha256"]
            wrong += not is_right
            print(f"{name}: {'as listed' if is_right else f'has sha256 {digest}, not as listed'}")
            if is_right:
                (FOLDER / name).write_bytes(body)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
