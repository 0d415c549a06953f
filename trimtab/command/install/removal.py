"""Who takes back what the processes wrote, before a package manager takes them away: a Job, with an account for it.

`trimtab install --remove` does the same with the login of the person who calls it, and needs none of this.
"""

from collections.abc import Iterator

from trimtab.command.install.names import Manifest, account, manifest
from trimtab.command.install.pods import job
from trimtab.command.install.rbac import granted
from trimtab.command.install.values import Values

NAME = "uninstall"
DEADLINE = 240
"""Seconds for all tries: the processes may take 60 to end, and Helm waits five minutes by default."""


def removal(values: Values) -> Iterator[Manifest]:
    """The account and its rights first."""
    yield manifest("v1", "ServiceAccount", account(NAME), values, component=NAME)
    yield from granted(NAME, values)
    yield job(NAME, values, container=_container(values), backoffLimit=3, activeDeadlineSeconds=DEADLINE)


def _container(values: Values) -> Manifest:
    return {
        "name": NAME,
        "image": values.image,
        "args": ["install", "--remove", "--traces", "--namespace", values.namespace],
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
    }
