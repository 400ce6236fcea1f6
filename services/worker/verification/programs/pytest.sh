#!/bin/sh
here=$(readlink -f "$0")
own=${here%/bin/*}
PYTHONPATH=$own/packages.zip:$own/lib:$own/site${PYTHONPATH:+:$PYTHONPATH} exec python3 -m pytest "$@"
