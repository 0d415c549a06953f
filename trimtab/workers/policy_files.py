"""Policies from files, for processes that do not read them in the cluster."""

from pathlib import Path

from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import Policies
from trimtab.runtime import files
from trimtab.runtime.files import InvalidPolicyFiles


def load_policy_files(paths: tuple[Path, ...]) -> Policies | None:
    """Returns the policies in these files, or None if there are no files. Raises UnreadableFiles or
    InvalidPolicyFiles."""
    if not paths:
        return None
    loaded = load_policies(files.read_files(paths))
    if loaded.mistakes:
        raise InvalidPolicyFiles(loaded.mistakes)
    return loaded.policies
