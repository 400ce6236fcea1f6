"""A stack of stand-in services as a program: for tests that kill it, stop it or run it as somebody else."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from proctor.stack.errors import StackError
from proctor.stack.foreground import serve_until_stopped
from proctor.stack.options import RemotePool, options_from_environment
from tests.fakes.stack.standin_service import STANDIN_MODULES


def main() -> int:
    options = options_from_environment(os.environ, pools=(RemotePool("http://127.0.0.1:9/v1"),))
    options = replace(options, modules=STANDIN_MODULES, python=Path(sys.executable))
    try:
        asyncio.run(serve_until_stopped(options))
    except StackError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
