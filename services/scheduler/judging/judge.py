"""The judge of an order: which answers are judged, by which prompt, on which scale."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Judge:
    """`run_id` is the judged run. An order gives the name of an installed `prompt`, or a `document`.

    Once accepted it has the whole document, its name, `version` and SHA-256 (`digest`, in hexadecimal), and
    the `scale` as words. `is_constrained`: the engine is told the form of the verdict as a JSON schema.
    `rollouts` are those of the judged run. Each answer is compared with that of `against_run_id`, if any, or
    with the target of its sample (`against_target`).
    """

    run_id: str
    prompt: str = ""
    scale: str = ""
    document: str = ""
    version: str = ""
    digest: str = ""
    is_constrained: bool = False
    rollouts: int = 1
    against_run_id: str = ""
    against_target: bool = False

    @property
    def is_of_pairs(self) -> bool:
        return bool(self.against_run_id) or self.against_target
