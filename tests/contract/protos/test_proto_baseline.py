"""`protos/baseline` names the decision that last restarted the contracts."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_baseline_of_the_contracts_names_a_decision() -> None:
    decision = (ROOT / "protos/baseline").read_text().strip()
    assert (ROOT / "docs/decisions" / f"{decision}.md").is_file()
