"""How many bytes, for people."""

_UNITS = ("kB", "MB", "GB", "TB", "PB")


def byte_text(count: int) -> str:
    """In the powers of a thousand by which files are sold and downloaded: 1.3 GB."""
    if count < 1000:
        return f"{count} bytes"
    value = float(count)
    for unit in _UNITS:
        value /= 1000
        if value < 999.95 or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}"
