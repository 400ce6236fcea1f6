"""Lines of JSON stay lines for every reader."""

import json

import orjson

from proctor.values.plain import with_line_feeds_only


def test_lines_have_no_break_but_the_line_feed_and_keep_their_values() -> None:
    values = ["".join(map(chr, range(0x100))), "a\u2028b\u2029c\x85d", "\\u2028", "é\x85", "漢\u202a"]
    written = with_line_feeds_only(b"".join(orjson.dumps(value) + b"\n" for value in values))
    assert [json.loads(line) for line in written.decode().splitlines()] == values
    assert written.decode().splitlines() == written.decode().split("\n")[:-1]
