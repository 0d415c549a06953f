"""What a person gives a plan: one list of options for `trimtab plan` and `trimtab simulate`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from trimtab.command import live
from trimtab.policy.subject import Terms

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """As it stands on the command line: nothing of it is read yet."""

    cluster: live.Asked
    pool_paths: tuple[str, ...] = ()
    policy_paths: tuple[str, ...] = ()
    overhead: str = "server"
    now: str | None = None
    named: tuple[str, ...] = ()
    autoscaler_flags: str = ""

    @property
    def terms(self) -> Terms:
        """As the webhook is set."""
        return Terms(overhead="webhook" if self.overhead == "webhook" else "server")


def inputs(function: F) -> F:
    """The options, given to the verb as one `given`."""

    @wraps(function)
    def verb(
        *, cluster: live.Asked, pool_paths: tuple[str, ...], policy_paths: tuple[str, ...], overhead: str,
        now: str | None, named: tuple[str, ...], autoscaler_flags: str, **more: Any,
    ) -> Any:  # fmt: skip
        given = Given(
            cluster=cluster, pool_paths=pool_paths, policy_paths=policy_paths, overhead=overhead, now=now,
            named=named, autoscaler_flags=autoscaler_flags,
        )  # fmt: skip
        return function(given=given, **more)

    made: Any = verb
    for option in (
        click.option("--pool", "named", multiple=True, metavar="NAME=PRESET",
                     help="careful, balanced or keen for this pool; the pool `all` is every node."),
        click.option("--autoscaler-flags", metavar="FLAGS", default="",
                     help="As the cluster autoscaler runs with; a capture leaves command lines out."),
        click.option("--now", metavar="TIME", help="The moment to plan in, or `now`. Without it no clock is asked."),
        click.option("--overhead", type=click.Choice(["server", "webhook"]), default="server", show_default=True,
                     help="Who writes pod overhead, as the webhook is set; counts where there are policies."),
        click.option("--policies", "policy_paths", multiple=True, metavar="PATH",
                     help="What evicted pods would be given, admitted again. Default: PodPolicies of the snapshot."),
        click.option("--pools", "pool_paths", multiple=True, metavar="PATH",
                     help="Pool ConfigMaps, or an estafette configuration. Default: those of the snapshot."),
        live.options,
    ):  # fmt: skip
        made = option(made)
    return made  # type: ignore[no-any-return]
