"""`python -m proctor.stack`: the local stack in the foreground, configured by PROCTOR_* variables alone."""

import asyncio
import os
import sys

from proctor.stack.errors import StackError
from proctor.stack.foreground import serve_until_stopped
from proctor.stack.stack_options import RemotePool, options_from_environment


def main() -> int:
    base_url = os.environ.get("PROCTOR_REMOTE_BASE_URL")
    pools = (RemotePool(base_url),) if base_url else ()
    try:
        asyncio.run(serve_until_stopped(options_from_environment(os.environ, pools)))
    except StackError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
