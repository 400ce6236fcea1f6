"""audit.py [--offline] PINS…: exits with 1 where an advisory names a pinned version.

So it does where a version could not be looked up, unless it is told that it may be offline.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def main(arguments: list[str]) -> int:
    may_be_offline = "--offline" in arguments
    pins = [each for each in arguments if each != "--offline"]
    found, unknown, total = [], 0, 0
    for path in pins:
        for dependency in _audited(path):
            total += 1
            unknown += "skip_reason" in dependency
            found += [(path, dependency, advisory) for advisory in dependency.get("vulns", [])]
    for path, dependency, advisory in found:
        mended = ", ".join(advisory["fix_versions"]) or "no version yet"
        print(f"{path}: {dependency['name']} {dependency['version']}: {advisory['id']}, mended in {mended}")
    print(f"Audited {total - unknown} of {total} pinned versions; {len(found)} advisories.")
    if unknown:
        print(f"{unknown} could not be looked up: the advisory service has no answer from here.")
    return 1 if found or (unknown and not may_be_offline) else 0


def _audited(path: str) -> list[dict[str, Any]]:
    pip_audit = str(Path(sys.executable).with_name("pip-audit"))
    command = [pip_audit, "-r", path, "--no-deps", "--disable-pip", "-f", "json"]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    if not run.stdout:
        raise SystemExit(f"pip-audit could not read {path}:\n{run.stderr}")
    dependencies: list[dict[str, Any]] = json.loads(run.stdout)["dependencies"]
    return dependencies


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
