"""The small model examined by Proctor and by lm-evaluation-harness: figures and differences side by side."""

import os

from rich.console import Console

from tests.real_model.parity import compare_on_real_model, side_by_side


async def main() -> None:
    if "PROCTOR_DATA_DIR" not in os.environ:
        print("parity: PROCTOR_DATA_DIR is not set, so there are no real rows to compare over.")
        return
    Console(width=120).print(side_by_side(await compare_on_real_model()))
