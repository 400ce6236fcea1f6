"""`python -m proctor.stack`: the local stack in the foreground, configured by PROCTOR_* variables alone."""

import asyncio
import os
import sys
from pathlib import Path

from proctor.stack.default_pools import default_pools
from proctor.stack.errors import StackError
from proctor.stack.foreground import serve_until_stopped
from proctor.stack.stack_options import options_from_environment


def main() -> int:
    options = options_from_environment(os.environ, default_pools(os.environ, Path.cwd()))
    try:
        asyncio.run(serve_until_stopped(options))
    except StackError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
