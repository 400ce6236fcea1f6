"""Texts that a writer of files may stumble over. Postgres keeps no NUL, so there is none."""

NASTY_TEXTS = (
    "",
    "plain",
    'quotes " and \\ backslashes \\" \\n',
    "line\nbreaks\r\nand\rreturns\n",
    "\x01\x08\x0b\x0c\x1f\x7f\t control",
    "separators \u2028 \u2029 \x85 \u200b",
    "emoji 👩‍👩‍👧 and e\u0301, ü, 漢字, \U0010ffff",
    "=1+1, 'csv';\ttabs, ,commas",
    "  spaces around  ",
    '{"a": [1, null]}',
    "%s {0} $1 :name",
    "long " * 200_000,
)
