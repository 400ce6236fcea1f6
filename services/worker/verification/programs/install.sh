#!/bin/sh
# In the place of pip, uv, uvx and pipx.
exec python3 -B /opt/runner/install.py "${0##*/}" "$@"
