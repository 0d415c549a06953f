"""Counts as text: a number with its noun."""


def format_count(count: int, name: str, plural: str = "") -> str:
    """Returns the count with its noun, as in "1 node", "1,234 nodes" and "2 policies"; `plural`: if -s does not do."""
    return f"{count:,} {name if count == 1 else plural or f'{name}s'}"
