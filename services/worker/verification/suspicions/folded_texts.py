"""Texts that code puts together of constants, as they are once it runs: `"_ex" + "it"`, `"tixe_"[::-1]`.

Each node is computed once, of what its parts are, so hostile code takes a time that grows with its length.
"""

import ast
import base64
import binascii
import codecs
import operator
import re
import string
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

# Stands for a part that is not known before the code runs.
UNKNOWN = "\ufffd"
_MAX_CHARACTERS = 4096
_MAX_PARTS = 512
Folded: TypeAlias = str | bytes | int | list["Folded"]

# Methods that give a text of a text.
_OF_TEXTS = frozenset({"lower", "upper", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip"})
_OF_TEXTS |= {"casefold", "removeprefix", "removesuffix", "replace"}
_PATHS = frozenset({"Path", "PurePath", "PosixPath", "PurePosixPath"})
_CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "b64decode": base64.b64decode,
    "urlsafe_b64decode": base64.urlsafe_b64decode,
    "standard_b64decode": base64.b64decode,
    "b32decode": base64.b32decode,
    "b16decode": base64.b16decode,
    "b85decode": base64.b85decode,
    "a85decode": base64.a85decode,
    "unhexlify": binascii.unhexlify,
    "a2b_hex": binascii.unhexlify,
    "a2b_base64": binascii.a2b_base64,
    "decompress": lambda content: zlib.decompressobj(wbits=47).decompress(content, _MAX_CHARACTERS),
}
_ENCODINGS = frozenset({"utf-8", "utf8", "ascii", "latin1", "latin-1", "rot13", "rot_13", "unicode_escape"})
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.BitXor: operator.xor,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
}
_FORMATS = string.Formatter()
_PLACES = re.compile(r"%[sdr]")
# A width makes a long text of a short one.
_WIDE = re.compile(r"%[^%a-zA-Z]*(?:\d{3}|\*)")


class FoldedTexts:
    """`nodes` are a tree, each before its parts."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._values: dict[int, Folded] = {}
        self._names: dict[str, Folded] = {}
        self._fold(nodes)
        self._names = self._assigned_once(nodes)
        if self._names:
            self._fold(nodes)

    def text(self, node: ast.AST) -> str | None:
        """With UNKNOWN for parts that are not known; None where no part is."""
        value = self._values.get(id(node))
        return value if isinstance(value, str) and value != UNKNOWN else None

    def known(self, node: ast.AST) -> str | None:
        """None where a part is not known."""
        text = self.text(node)
        return None if text is None or UNKNOWN in text else text

    def _fold(self, nodes: Sequence[ast.AST]) -> None:
        for node in reversed(nodes):
            try:
                value = self._value(node)
            except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, zlib.error):
                continue
            if value is not None and (isinstance(value, int) or len(value) <= _MAX_CHARACTERS):
                self._values[id(node)] = value

    def _assigned_once(self, nodes: Sequence[ast.AST]) -> dict[str, Folded]:
        bound = Counter(
            node.id if isinstance(node, ast.Name) else node.arg
            for node in nodes
            if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        )
        return {
            node.targets[0].id: self._values[id(node.value)]
            for node in nodes
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and id(node.value) in self._values
            if isinstance(node.targets[0], ast.Name) and bound[node.targets[0].id] == 1
        }

    def _of(self, node: ast.AST) -> Folded | None:
        return self._values.get(id(node))

    def _text_of(self, node: ast.AST) -> str:
        value = self._of(node)
        return value if isinstance(value, str) else UNKNOWN

    def _value(self, node: ast.AST) -> Folded | None:
        match node:
            case ast.Constant(value=str() | bytes() as constant):
                return constant
            case ast.Constant(value=int() as number) if abs(number) < 0x110000:
                return number
            case ast.Name() if isinstance(node.ctx, ast.Load):
                return self._names.get(node.id)
            case ast.Attribute(attr="sep"):
                return "/"
            case ast.FormattedValue():
                return self._of(node.value)
            case ast.JoinedStr():
                return "".join(map(self._text_of, node.values[:_MAX_PARTS]))
            case ast.List() | ast.Tuple() if len(node.elts) <= _MAX_PARTS:
                return [UNKNOWN if (part := self._of(each)) is None else part for each in node.elts]
        return self._computed(node)

    def _computed(self, node: ast.AST) -> Folded | None:
        match node:
            case ast.BinOp():
                return self._operated(node)
            case ast.Subscript():
                return self._sliced(node)
            case ast.GeneratorExp() | ast.ListComp():
                return self._mapped_by(node)
            case ast.Call():
                return self._called(node)
        return None

    def _operated(self, node: ast.BinOp) -> Folded | None:
        left, right = self._of(node.left), self._of(node.right)
        match node.op:
            case ast.Mod() if isinstance(left, str) and right is not None and not _WIDE.search(left):
                return left % (tuple(right) if isinstance(right, list) else right)
            case ast.Mod() if isinstance(left, str):
                return _PLACES.sub(UNKNOWN, left)
            case ast.Div() if isinstance(left, str) or isinstance(right, str):
                return f"{self._text_of(node.left)}/{self._text_of(node.right)}"
            case ast.Add():
                return self._added(node, left, right)
        return None

    def _added(self, node: ast.BinOp, left: Folded | None, right: Folded | None) -> Folded | None:
        if isinstance(left, bytes) and isinstance(right, bytes):
            return left + right
        if isinstance(left, str) or isinstance(right, str):
            return self._text_of(node.left) + self._text_of(node.right)
        return None

    def _sliced(self, node: ast.Subscript) -> Folded | None:
        """A part of a text, as its letters in turn."""
        value = self._of(node.value)
        if not isinstance(value, str | bytes) or not isinstance(node.slice, ast.Slice):
            return None
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        bounds = [None if part is None else ast.literal_eval(part) for part in parts]
        return value[slice(*bounds)]

    def _mapped_by(self, node: ast.GeneratorExp | ast.ListComp) -> Folded | None:
        """`chr(each) for each in […]`, with any arithmetic on the letter left out."""
        values = self._of(node.generators[0].iter)
        if isinstance(values, bytes):
            values = list(values)
        match node.elt:
            case ast.Call(func=ast.Name(id="chr"), args=[number]) if isinstance(values, list | str):
                return [chr(each) for each in _counted(number, values)]
            case ast.BinOp() if isinstance(values, list | str):
                return list(_counted(node.elt, values))
            case ast.Name():
                return values
        return None

    def _called(self, node: ast.Call) -> Folded | None:
        values = [self._of(each) for each in node.args]
        if len(values) > _MAX_PARTS:
            return None
        if isinstance(node.func, ast.Attribute):
            return self._called_of(node.func, node, values)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        match name, values:
            case "chr", [int() as number]:
                return chr(number)
            case (("str" | "list" | "tuple"), [value]):
                return value
            case "reversed", [str() | bytes() | list() as value]:
                return value[::-1]
            case (("bytes" | "bytearray"), [list() as numbers]):
                return bytes(each for each in numbers if isinstance(each, int))
            case (("bytes" | "bytearray"), [bytes() as content]):
                return content
            case "map", [_, list() | bytes() as numbers] if _is_named(node.args[0], "chr"):
                return [chr(each) for each in numbers if isinstance(each, int)]
        if name in _PATHS and node.args:
            return "/".join(map(self._text_of, node.args))
        return _decoded(name, values)

    def _called_of(
        self, func: ast.Attribute, node: ast.Call, values: Sequence[Folded | None]
    ) -> Folded | None:
        of = self._of(func.value)
        if func.attr == "format" and isinstance(of, str):
            return self._formatted(of, node)
        match func.attr, of, values:
            case "join", str(), [str() | list() as parts]:
                return of.join(each if isinstance(each, str) else UNKNOWN for each in parts)
            case name, _, _ if node.args and (name in _PATHS or (name == "join" and of is None)):
                # Also `os.path.join`.
                return "/".join(map(self._text_of, node.args))
            case (("decode" | "encode"), (bytes() | str()), _):
                return _in_encoding(func.attr, of, values)
            case "fromhex", _, [str() as digits]:
                return bytes.fromhex(digits)
            case "decode", _, [str() | bytes() as content, *rest]:
                return _in_encoding("decode", content, rest)
        if isinstance(of, str) and func.attr in _OF_TEXTS:
            given = [each for each in values if isinstance(each, str)]
            if len(given) == len(values) and len(of) * sum(map(len, given)) <= _MAX_CHARACTERS:
                changed: str = getattr(of, func.attr)(*given)
                return changed
        if func.attr in _PATHS and node.args:
            return "/".join(map(self._text_of, node.args))
        return _decoded(func.attr, values)

    def _formatted(self, of: str, node: ast.Call) -> str:
        given = [self._text_of(each) for each in node.args]
        named = {each.arg: self._text_of(each.value) for each in node.keywords if each.arg}
        parts: list[str] = []
        for number, (literal, field, _, _) in enumerate(_FORMATS.parse(of)):
            parts.append(literal)
            if field is not None:
                place = int(field) if field.isdigit() else number
                parts.append(named.get(field) or (given[place] if place < len(given) else UNKNOWN))
        return "".join(parts)


def _counted(node: ast.expr, values: str | list[Folded]) -> Iterator[int]:
    """A number of each value, by arithmetic with constants: `each ^ 7`. Raises ValueError for others."""
    for value in values:
        number = ord(value) if isinstance(value, str) else value
        yield _arithmetic(node, number if isinstance(number, int) else ord(str(number)))


def _arithmetic(node: ast.expr, value: int) -> int:
    match node:
        case ast.Name():
            return value
        case ast.Constant(value=int() as number) if abs(number) < 0x110000:
            return number
        case ast.Call(func=ast.Name(id="ord"), args=[ast.Name()]):
            return value
        case ast.BinOp() if type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](_arithmetic(node.left, value), _arithmetic(node.right, value))
    raise ValueError(node)


def _decoded(name: str, values: Sequence[Folded | None]) -> Folded | None:
    if name not in _CODECS or not values:
        return None
    content = values[0].encode() if isinstance(values[0], str) else values[0]
    return _CODECS[name](content) if isinstance(content, bytes) else None


def _in_encoding(how: str, of: str | bytes, values: Sequence[Folded | None]) -> Folded | None:
    """A text for the code of Unicode, of UTF-8 or of letters that are turned."""
    encoding = values[0] if values else "utf-8"
    if not isinstance(encoding, str) or encoding.lower() not in _ENCODINGS:
        return None
    if encoding.lower() in ("rot13", "rot_13"):
        return codecs.decode(of, "rot13") if isinstance(of, str) else None
    if how == "encode":
        return of.encode(encoding) if isinstance(of, str) else None
    return of.decode(encoding) if isinstance(of, bytes) else None


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
