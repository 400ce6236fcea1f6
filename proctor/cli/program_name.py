"""How this program is called, so that the commands it prints can be typed as they stand."""

import shutil
import sys
from pathlib import Path

_NAME = "proctor"


def program_name() -> str:
    """`proctor` where the shell finds this very one, else its path: from the current folder where inside."""
    own = Path(sys.executable).absolute().with_name(_NAME)
    found = shutil.which(_NAME)
    if not own.exists() or (found and Path(found).samefile(own)):
        return _NAME
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)
