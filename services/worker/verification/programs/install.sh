#!/bin/sh
# In the place of pip, uv, uvx and pipx. Other folders have links to it.
here=$(readlink -f "$0")
exec python3 -B "${here%/bin/*}/install.py" "${0##*/}" "$@"
