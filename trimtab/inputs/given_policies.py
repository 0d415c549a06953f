"""Reads the policies that a subcommand of `trimtab policies` is given."""

from collections.abc import Iterable

from trimtab.cluster.config_error import ConfigError
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import Policies


def load_given_policies(paths: Iterable[str], *, is_authoring: bool = False) -> Policies:
    """Returns the policies in these paths, or the shipped policies if there is no path. Raises UsageError with every
    mistake. `is_authoring`: rules count that a stored policy may break."""
    paths = tuple(paths)
    contents = (
        live_cluster.read_paths(paths)
        if paths
        else [*live_cluster.shipped_policies("recommended"), *live_cluster.shipped_policies("library")]
    )
    loaded = load_policies(contents, is_authoring=is_authoring)
    if loaded.mistakes:
        raise UsageError(loaded.mistakes)
    if not loaded.policies.all:
        names = ", ".join(name for name, _ in contents)
        raise UsageError([ConfigError(file=names, expected="a PodPolicy", got="none")])
    return loaded.policies
