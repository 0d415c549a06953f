"""Checks of options that several verbs share."""

from __future__ import annotations

import re

from trimtab.cluster.config_error import ConfigError


def parse_minor_version(text: str) -> tuple[int, int] | None:
    """Returns the version as numbers, (1, 37) for "1.37", "v1.37.2" and "1.37+", or None if the text is no version."""
    pieces = text.removeprefix("v").split(".")
    minor = pieces[1].rstrip("+") if len(pieces) > 1 else ""
    return (int(pieces[0]), int(minor)) if pieces[0].isdecimal() and minor.isdecimal() else None


WINDOW = re.compile(r"[1-9]\d*(s|m|h)")
"""The syntax of a range in PromQL, such as 5m."""


def check_maximum(flag: str, value: int, maximum: int) -> list[ConfigError]:
    """Returns the mistake of a number that is too large for this verb, although other verbs allow it."""
    return [ConfigError(file=flag, expected=f"at most {maximum}", got=str(value))] if value > maximum else []


def needs_cluster(option: str) -> ConfigError:
    """Returns the mistake of asking for manifests of workloads of which only the usage is known."""
    todo = (
        "add --cluster with a snapshot or with your manifests: Trimtab cannot derive the kind of a workload from the "
        "names of its pods, and usage contains no limits"
    )
    return ConfigError(file=option, expected="--cluster", got="none", todo=todo)
