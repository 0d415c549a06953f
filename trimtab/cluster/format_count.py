"""Writes counts and lists as text: a number with its noun, and the first few of many names."""

from collections.abc import Sequence


def format_count(count: int, name: str, plural: str = "") -> str:
    """Returns the count with its noun, as in "1 node", "1,234 nodes" and "2 policies"; `plural` is needed where the
    plural is more than an added "s"."""
    return f"{count:,} {name if count == 1 else plural or f'{name}s'}"


def join_first(names: Sequence[str], max_count: int) -> str:
    """Returns the first `max_count` names, separated by commas, followed by an ellipsis if there are more."""
    return ", ".join(names[:max_count]) + (", …" if len(names) > max_count else "")
