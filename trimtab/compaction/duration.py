"""How long is "1h30m"?"""

import re

_PART = re.compile(r"(\d+)(h|m|s)")
_ALL = re.compile(r"(?:\d+(?:h|m|s))+")
_SECONDS = {"h": 3600, "m": 60, "s": 1}


def duration(text: str) -> int | None:
    """A Go duration of whole hours, minutes and seconds, in seconds; None when it is none."""
    if not _ALL.fullmatch(text.strip()):
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
