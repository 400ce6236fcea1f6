"""A stack of stand-in services as a program: for tests that kill it, stop it or run it as another user."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from proctor.stack.errors import StackError
from proctor.stack.local_stack import serve_until_stopped
from proctor.stack.options import options_from_environment, remote_pool
from proctor.values.providers.pool import Provider
from tests.fakes.stack.standin_service import standin_modules


def main() -> int:
    pool = remote_pool(Provider("openai", "http://127.0.0.1:9/v1", "OPENAI_API_KEY"))
    options = options_from_environment(os.environ, pools=(pool,))
    options = replace(options, modules=standin_modules(), python=Path(sys.executable))
    try:
        asyncio.run(serve_until_stopped(options))
    except StackError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
