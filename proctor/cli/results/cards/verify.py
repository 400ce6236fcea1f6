"""`proctor verify`: checks a result card, with the export of its run or without, and needs no server."""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from proctor.cli.render.terminal import Terminal, execute, say
from proctor.cli.render.words import counted
from proctor.cli.results.cards.figures import ReadLines, count_recomputed, group_differences
from proctor.client.errors import Refused
from proctor.exit_codes import ExitCode
from proctor.wire.result_card import FORMAT, SECTIONS, signed_content

_MAX_CARD_BYTES = 64 * 1024 * 1024
# Of values in another form, and of numbers that no figure has.
_NOT_IN_FORM = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Checked:
    """`faults`: why the card does not hold; `notes`: what was checked, a sentence each."""

    faults: list[str]
    notes: list[str]


def verify(
    card: Annotated[Path, typer.Argument(metavar="CARD", help="A file of `proctor card`.")],
    export: Annotated[
        Path | None,
        typer.Argument(metavar="EXPORT", help="The run's JSONL: its figures are computed again."),
    ] = None,
    *,
    key: Annotated[
        str, typer.Option(help="Public key of the installation in base64, known from elsewhere.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify a result card: its signature, its digests, and with the export its figures."""
    terminal = Terminal(as_json)

    async def checked() -> ExitCode:
        read = read_card(card)
        found = check(read, export, key)
        run = read["run"] if isinstance(read["run"], dict) else {}
        facts = {
            "run_id": run.get("run_id"),
            "key": read["key"],
            "holds": not found.faults,
            "signer_verified": bool(key and not found.faults),
        }
        sentences = [*(f"FAULT: {fault}" for fault in found.faults), *found.notes]
        if as_json:
            terminal.emit({**facts, "faults": [*found.faults], "notes": [*found.notes]})
        else:
            for sentence in sentences:
                say(terminal.out, sentence, style="red" if sentence.startswith("FAULT") else "")
            say(terminal.out, _conclusion(found, key), style="" if key or found.faults else "yellow")
        return ExitCode.FAILED if found.faults else ExitCode.OK

    execute(terminal, checked)


def _conclusion(found: Checked, key: str) -> str:
    if found.faults:
        return "The card does not hold."
    if key:
        return "The card holds."
    return "The contents are intact. Who signed them is not verified: give the installation's key by --key."


def read_card(path: Path) -> Mapping[str, Any]:
    """Raises Refused for a file that is no card."""
    try:
        if path.stat().st_size > _MAX_CARD_BYTES:
            raise Refused(f"{path} is larger than any result card.")
        card = json.loads(path.read_bytes(), object_pairs_hook=_once_each, parse_constant=_no_constant)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path} is no result card: {error}.") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise Refused(f"{path} is no result card of the format {FORMAT}.")
    if missing := [name for name in (*SECTIONS, "signature") if name not in card]:
        raise Refused(f"{path} is no result card: {', '.join(missing)} is missing.")
    return card


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Readers differ in which of two members of one name counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member stands twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def check(card: Mapping[str, Any], export: Path | None, key: str) -> Checked:
    found = Checked([], [])
    found.faults.extend(_signature_faults(card))
    if unsigned := sorted(set(card) - {*SECTIONS, "signature"}):
        found.faults.append(f"the signature does not cover {', '.join(unsigned)}")
    if key and card["key"] != key:
        found.faults.append("it is signed by another key than the given one")
    elif key:
        found.notes.append("It is signed by the given key.")
    else:
        found.notes.append(f"It is signed by the key {card['key']}: compare it with the installation's.")
    if not found.faults:
        # What is not signed may have any form.
        _check_figures(card, export, found)
    return found


def _signature_faults(card: Mapping[str, Any]) -> Iterator[str]:
    try:
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(card["key"], validate=True))
        public.verify(base64.b64decode(card["signature"], validate=True), signed_content(card))
    except InvalidSignature:
        yield "it was changed after it was signed, or its key is another one"
    except (UnicodeError, RecursionError):
        yield "it has texts or lists that no result card has"
    except (binascii.Error, TypeError, ValueError):
        yield "its key or its signature is no text of Ed25519 in base64"


def _check_figures(card: Mapping[str, Any], export: Path | None, found: Checked) -> None:
    try:
        found.faults.extend(group_differences(card))
        again, signed = count_recomputed(card)
    except _NOT_IN_FORM:
        # Any key signs anything: only Proctor's are known to have this form.
        found.faults.append("its figures are not in the form of a result card")
        return
    if export is None:
        found.notes.append(
            "Figures of groups follow from those of tasks. With the export, those are checked too."
        )
        return
    try:
        with export.open("rb") as lines:
            read = ReadLines.of(card, lines)
        found.faults.extend(read.differences(card))
    except OSError as error:
        raise Refused(f"{export} cannot be read: {error.strerror or error}.") from error
    except _NOT_IN_FORM:
        found.faults.append("the export has lines that are no outcomes of this run")
        return
    verb = "is" if signed == 1 else "are"
    rest = f"; {signed} {verb} only signed, as are all intervals" if signed else "; intervals are only signed"
    figures = f"{counted(again, 'figure')} of tasks {'was' if again == 1 else 'were'} computed again"
    found.notes.append(f"{figures} from {counted(read.outcomes.leaves, 'outcome')}{rest}.")
