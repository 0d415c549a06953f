"""The surroundings of a process under test."""

import os


def plain() -> dict[str, str]:
    """This process's environment without settings of ours: who runs the tests may have some for themselves."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TRIMTAB_")}
