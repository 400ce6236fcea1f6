#!/bin/sh
PYTHONPATH=/opt/runner/packages.zip:/opt/runner/site${PYTHONPATH:+:$PYTHONPATH} exec python3 -m pytest "$@"
