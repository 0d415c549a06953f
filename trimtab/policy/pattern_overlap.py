"""Whether two patterns of names can select the same name."""

from fnmatch import fnmatchcase


def can_meet_patterns(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Returns whether two lists of patterns can select the same name. An empty list selects everything."""
    return not a or not b or any(is_meeting(pattern, other_pattern) for pattern in a for other_pattern in b)


def is_meeting(a: str, b: str) -> bool:
    """Returns whether both patterns may match the same name. Two patterns with wildcards always may."""
    has_wildcards = [bool(set(pattern) & set("*?[")) for pattern in (a, b)]
    if all(has_wildcards):
        return True
    # A name without wildcards meets a pattern exactly where the pattern matches it.
    return fnmatchcase(a, b) if has_wildcards[1] else fnmatchcase(b, a)
