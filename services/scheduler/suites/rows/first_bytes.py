"""Files in another form than their names say, and tables without commas, by their first bytes."""

import re
from collections.abc import Sequence

# As much of a file as shows its form.
BEGINNING_BYTES = 512
_SAVE_CSV = "save it as CSV UTF-8"
_SAVE_UTF8 = "save it as UTF-8"
_UNPACK = "unpack it"
# In order: the first that fits names the form. A clause each, with what to do.
_FORMS: Sequence[tuple[bytes, str]] = (
    (b"PAR1", "a Parquet file: name it .parquet, or write its rows as JSON lines"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", f"an old Excel workbook (xls): {_SAVE_CSV}"),
    (b"\x1f\x8b", f"compressed with gzip: {_UNPACK}"),
    (b"\x28\xb5\x2f\xfd", f"compressed with zstd: {_UNPACK}"),
    (b"\xfd7zXZ\0", f"compressed with xz: {_UNPACK}"),
    (b"\x04\x22\x4d\x18", f"compressed with lz4: {_UNPACK}"),
    (b"7z\xbc\xaf\x27\x1c", f"a 7z archive: {_UNPACK}"),
    (b"Rar!\x1a\x07", f"a RAR archive: {_UNPACK}"),
    (b"SQLite format 3\0", "a SQLite database: export its rows as JSON lines"),
    (b"ARROW1\0\0", "an Arrow file: save it as Parquet"),
    (b"Obj\x01", "an Avro file: save it as Parquet"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file: save it as Parquet"),
    (b"\x93NUMPY", "a NumPy file: save its rows as JSON lines"),
    (b"%PDF-", "a PDF document: save its rows as CSV UTF-8"),
    (b"\xff\xfe\0\0", f"written in UTF-32: {_SAVE_UTF8}"),
    (b"\0\0\xfe\xff", f"written in UTF-32: {_SAVE_UTF8}"),
    (b"\xff\xfe", f"written in UTF-16: {_SAVE_UTF8}"),
    (b"\xfe\xff", f"written in UTF-16: {_SAVE_UTF8}"),
    (b"version https://git-lfs", "a pointer of Git LFS: fetch the file itself"),
)
_ZIP = b"PK\x03\x04"
_EXCEL = (b"xl/", b"[Content_Types].xml", b"_rels/")
_SPREADSHEET = b"opendocument.spreadsheet"
_BZIP2 = re.compile(rb"BZh[1-9]1AY&SY")
_TAR = 257, b"ustar"
_HTML = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html)\b", re.IGNORECASE)
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def foreign_form(first: bytes, *, with_parquet: bool = True) -> str:
    """Names the form of a file that has no lines of text; empty for one that may have."""
    if first.startswith(_ZIP):
        return _zip_form(first)
    for magic, form in _FORMS:
        if first.startswith(magic) and (with_parquet or magic != _FORMS[0][0]):
            return form
    if _BZIP2.match(first):
        return f"compressed with bzip2: {_UNPACK}"
    if first[_TAR[0] :].startswith(_TAR[1]):
        return f"a tar archive: {_UNPACK}"
    if _HTML.match(first):
        return "a page of HTML, perhaps of a server that asks to sign in: download the file itself"
    return _utf_16_form(first)


def _zip_form(first: bytes) -> str:
    if _SPREADSHEET in first:
        return f"an OpenDocument spreadsheet (ods): {_SAVE_CSV}"
    if any(name in first for name in _EXCEL):
        return f"an Excel workbook (xlsx): {_SAVE_CSV}"
    return f"a zip archive or an Excel workbook (xlsx): unpack it, or {_SAVE_CSV}"


def _utf_16_form(first: bytes) -> str:
    """Of text that has no byte order mark: every second byte of most letters is 0."""
    even, odd = first[0::2], first[1::2]
    least = len(first) // 4
    is_16 = len(first) >= 4 and max(even.count(0), odd.count(0)) > least > min(even.count(0), odd.count(0))
    return f"written in UTF-16: {_SAVE_UTF8}" if is_16 else ""


def other_separator(first: bytes) -> str:
    """The signs that separate the columns of a table instead of commas, by its header; empty for commas."""
    header = next((line for line in first.decode(errors="replace").splitlines() if line.strip()), "")
    if "," in header:
        return ""
    return next((signs for sign, signs in _SEPARATORS.items() if sign in header), "")
