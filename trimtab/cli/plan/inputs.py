"""What a person gives a plan: one list of options for `trimtab plan` and `trimtab simulate`.

What does the snapshot tell of the cluster autoscaler: its status, its flags?

What does a plan lean on that the snapshot does not show?

What did a compactor see before this snapshot was taken? Its state, where the snapshot has it.

What a plan is made of, read from files: the cluster, its pools, the moment. Every mistake of every file together.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import click

from trimtab.cli import live_cluster
from trimtab.cli.main import UsageError
from trimtab.cli.plan import pools
from trimtab.cli.plan.readmission import Readmission
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import get
from trimtab.cluster.cluster_autoscaler import NAME, UPDATED, Autoscaler, by_flags, wrong_flags
from trimtab.cluster.cluster_autoscaler import read as read_autoscaler_status
from trimtab.cluster.cluster_state import ASSUMED_REQUESTS, Inventory, snapshot_inventory
from trimtab.cluster.config_error import ConfigError, first_mistakes
from trimtab.cluster.garbage_collection import uncollected
from trimtab.cluster.pool import Pool, schedulers_of
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import Snapshot, build
from trimtab.cluster.timestamps import Seconds, seconds
from trimtab.cluster.yaml_documents import Document
from trimtab.cluster.yaml_documents import read as read_documents
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.plan_types import Observations
from trimtab.machines.prices import PriceFile, together
from trimtab.machines.prices import read as read_prices
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import KIND
from trimtab.runtime import clock
from trimtab.scheduling.cluster_model import Again

__all__ = ["PlanInputs", "documents", "moment", "read"]


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """As it stands on the command line: nothing of it is read yet."""

    cluster: live_cluster.ClusterOptions
    pool_paths: tuple[str, ...] = ()
    policy_paths: tuple[str, ...] = ()
    overhead: str = "server"
    now: str | None = None
    named: tuple[str, ...] = ()
    autoscaler_flags: str = ""
    price_paths: tuple[str, ...] = ()

    @property
    def terms(self) -> AdmissionSettings:
        """As the webhook is set."""
        return AdmissionSettings(overhead="webhook" if self.overhead == "webhook" else "server")


def inputs(function: F) -> F:
    """The options, given to the verb as one `given`."""

    @wraps(function)
    def verb(
        *, cluster: live_cluster.ClusterOptions, pool_paths: tuple[str, ...], policy_paths: tuple[str, ...],
        overhead: str,
        now: str | None, named: tuple[str, ...], autoscaler_flags: str, price_paths: tuple[str, ...],
        **more: Any,
    ) -> Any:  # fmt: skip
        given = PlanOptions(
            cluster=cluster, pool_paths=pool_paths, policy_paths=policy_paths, overhead=overhead, now=now,
            named=named, autoscaler_flags=autoscaler_flags, price_paths=price_paths,
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
        click.option("--prices", "price_paths", multiple=True, metavar="FILE",
                     help="What nodes really cost, as OpenCost's CSV; before labels, settings and list prices."),
        click.option("--pools", "pool_paths", multiple=True, metavar="PATH",
                     help="Pool ConfigMaps, or an estafette configuration. Default: those of the snapshot."),
        live_cluster.options,
    ):  # fmt: skip
        made = option(made)
    return made  # type: ignore[no-any-return]


BINARY = "cluster-autoscaler"


def observed_autoscaler(
    inventory: Inventory, documents: Sequence[Document], given: Sequence[str], at: Seconds | None
) -> tuple[Autoscaler | None, list[str]]:
    """The autoscaler as the snapshot shows it and as flags were `given`, with notes; None where nothing is known."""
    status = next((found for found in inventory.config_maps if found.metadata.name == NAME), None)
    if status is None:
        note = "only the autoscaler's flags are known: it is taken for healthy and quiet"
        return (by_flags(given, at), [note]) if given else (None, [])
    updated = get(status.metadata.annotations, {}).get(UPDATED, "")
    arguments: Sequence[str] | None = list(given) or next(_arguments(documents), None)
    found = read_autoscaler_status(status.data.get("status", ""), updated, arguments or ())
    if isinstance(found, Unreadable):
        return None, [f"the cluster autoscaler's status cannot be understood and is left out: {found}"]
    notes = [f"the cluster autoscaler's status was read: {'healthy' if found.healthy else 'not healthy'}"]
    if arguments is None:
        notes.append(
            "the cluster autoscaler's own flags are not in the snapshot (a capture leaves command lines out): "
            "its defaults are taken; --autoscaler-flags tells them"
        )
    return found, notes


def _arguments(documents: Sequence[Document]) -> Iterator[list[str]]:
    """Of every container that runs its binary."""
    for document in documents:
        for container in _containers(document.value):
            words = [*_texts(container.get("command")), *_texts(container.get("args"))]
            if any(word.rpartition("/")[2] == BINARY for word in words):
                yield [word for word in words if word.rpartition("/")[2] != BINARY]


def _containers(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict) or value.get("kind") not in ("Pod", "Deployment"):
        return
    spec = value.get("spec")
    if value["kind"] == "Deployment":
        template = spec.get("template") if isinstance(spec, dict) else None
        spec = template.get("spec") if isinstance(template, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    yield from (c for c in (containers if isinstance(containers, list) else ()) if isinstance(c, dict))


def _texts(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


HOW = "kubectl get nodes,pods,pdb,… -A -o json prints one"


def snapshot_mistakes(inventory: Inventory, paths: Sequence[str]) -> Iterator[ConfigError]:
    """Mistakes that a snapshot as a whole makes.

    What has no name cannot be told apart. Without nodes there is nothing to plan; without any pod every node would look
    empty, and none of them is. A live cluster was asked for its pods: there no answer is an answer.
    """
    where = ", ".join(paths)
    for kind, found in (("node", inventory.nodes), ("pod", inventory.pods)):
        if nameless := sum(not each.name for each in found):
            yield ConfigError(file=where, expected=f"a name for every {kind}", got=f"{nameless} without one")
    if not inventory.nodes:
        yield ConfigError(file=where, expected="a snapshot with nodes", got="none", todo=HOW)
    elif not inventory.pods and live_cluster.LIVE not in paths:
        expected = "a snapshot with pods: without any, every node would look empty"
        yield ConfigError(file=where, expected=expected, got="none", todo=HOW)


def snapshot_notes(inventory: Inventory, paths: Sequence[str]) -> Iterator[str]:
    """What was taken for absent because nothing of its kind is there."""
    if live_cluster.LIVE not in paths and len({pod.namespace for pod in inventory.pods}) == 1:
        namespace = inventory.pods[0].namespace
        yield f"all pods are of namespace {namespace}: were all namespaces read (-A)? Without it nodes look emptier"
    if not inventory.budgets:
        yield "no PodDisruptionBudget is in the snapshot: no pod is taken for protected by one"
    if any(claim.driver for claim in inventory.claims.values()) and not any(n.attachable for n in inventory.nodes):
        yield "no CSINode with a limit is in the snapshot: nodes are taken to attach any number of volumes"


@dataclass(frozen=True, slots=True)
class PastObservations:
    observations: Observations | None = None
    """None: no compactor has left any, and pools are taken for settled."""
    moved: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def observed(inventory: Inventory) -> PastObservations:
    """Read from the ConfigMaps trimtab-state-*; one that makes no sense is told and left out."""
    read = {
        get(shape.metadata.labels, {})[memories.LABEL]: memories.read(shape.metadata.name, shape.data)
        for shape in inventory.config_maps
        if memories.LABEL in get(shape.metadata.labels, {})
    }
    found = {pool: memory for pool, memory in read.items() if isinstance(memory, PoolState)}
    notes = tuple(f"left out: {memory}" for memory in read.values() if not isinstance(memory, PoolState))
    if not found:
        return PastObservations(notes=notes)
    told = f"the compactor's own observations were read for {', '.join(sorted(found))}, unverified: no key is at hand"
    return PastObservations(memories.together(found, {}), memories.moved(found.values()), (told, *notes))


LATEST = 32_503_680_000
"""The year 3000: at the end of all years there is no tomorrow in any time zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputs:
    """Everything that was read, before anything is planned."""

    inventory: Inventory
    pools: tuple[Pool, ...]
    now: PlanningContext
    again: Again | None = None
    """What pods would ask for if they were admitted again; None: what they ask for now."""
    notes: tuple[str, ...]
    """Where the pools came from, and what else was assumed."""
    assumed: bool = False
    """No pool settings were found: the first run."""


def read(given: PlanOptions) -> PlanInputs:
    """Raises Wrong, naming every mistake of every file and option; Failed where a live cluster cannot be read."""
    with uncollected():
        return _read(given)


def _read(given: PlanOptions) -> PlanInputs:
    cluster = given.cluster
    if not cluster.paths:
        expected = "--cluster SNAPSHOT: files of `trimtab capture` or kubectl, or live"
        raise UsageError([ConfigError(file="command line", expected=expected, got="none")])
    unread: list[ConfigError] = []
    standing, mistakes = documents(
        _tried(
            lambda: live_cluster.read_live_objects(
                cluster, live_cluster.WITH_POLICIES, templates=bool(given.policy_paths)
            ),
            unread,
        )
    )
    settings, more = documents(_tried(lambda: live_cluster.read(given.pool_paths), unread))
    built = build(standing)
    at, when = moment(given.now)
    inventory = snapshot_inventory(built.snapshot)
    found = pools.found(settings if given.pool_paths and not unread else None, standing, inventory, given.named)
    paid, unpaid = _paid(given.price_paths, unread)
    inventory = replace(inventory, nodes=tuple(replace(node, price=paid.price(node)) for node in inventory.nodes))
    schedulers = schedulers_of(found.pools, inventory.schedulers)
    inventory = replace(inventory, schedulers=schedulers, assumed=ASSUMED_REQUESTS)
    words, odd = flags_given(given.autoscaler_flags)
    readmitted = _readmission(standing, built.snapshot, given, at, unread)
    mistakes += [*unread, *more, *unpaid, *built.mistakes, *found.mistakes, *when, *odd, *readmitted.mistakes]
    mistakes += () if mistakes else snapshot_mistakes(inventory, cluster.paths)
    if mistakes:
        raise UsageError(mistakes)
    scaler, told = observed_autoscaler(inventory, standing, words, at)
    seen = observed(inventory)
    now_ = PlanningContext(at=at, autoscaler=scaler, observations=seen.observations, moved=seen.moved)
    notes = (*found.notes, *told, *seen.notes, *readmitted.notes, *snapshot_notes(inventory, cluster.paths))
    return PlanInputs(
        inventory=inventory, pools=found.pools, now=now_, again=readmitted.again, notes=notes, assumed=found.assumed
    )


def _paid(paths: Sequence[str], unread: list[ConfigError]) -> tuple[PriceFile, list[ConfigError]]:
    """The price files as one, and what in them cannot be understood."""
    found, mistakes = [], []
    for name, content in _tried(lambda: live_cluster.read(paths, (".csv",)), unread):
        read, wrong = read_prices(name, content.decode("utf-8", "replace"))
        found.append(read)
        mistakes += first_mistakes(wrong)
    return together(found), mistakes


def _readmission(
    standing: list[Document], snapshot: Snapshot, given: PlanOptions, at: Seconds | None, unread: list[ConfigError]
) -> Readmission:
    """The steps of admission are only loaded where a policy or a VPA has a say."""
    has_policies = given.policy_paths or any(document.kind == KIND for document in standing)
    if not has_policies and not snapshot.all(VerticalPodAutoscaler):
        return Readmission()
    from trimtab.cli.plan.readmission import readmission

    try:
        return readmission(standing, snapshot, given.policy_paths, given.terms, at)
    except UsageError as wrong:
        unread += wrong.mistakes
        return Readmission()


def _tried(read: Callable[[], list[live_cluster.Content]], unread: list[ConfigError]) -> list[live_cluster.Content]:
    """What could be read; what could not is told with all other mistakes."""
    try:
        return read()
    except UsageError as wrong:
        unread += wrong.mistakes
        return []


def documents(contents: Iterable[live_cluster.Content]) -> tuple[list[Document], list[ConfigError]]:
    """All documents of all files, and all that could not be read."""
    found: list[Document] = []
    mistakes: list[ConfigError] = []
    for name, content in contents:
        reading = read_documents(name, content)
        found += reading.documents
        mistakes += reading.mistakes
    return found, mistakes


def flags_given(text: str) -> tuple[list[str], list[ConfigError]]:
    """--autoscaler-flags, split as a shell does."""
    expected = "the cluster autoscaler's flags, such as --scale-down-utilization-threshold=0.7"
    try:
        words = shlex.split(text)
    except ValueError as error:
        return [], [ConfigError(file="--autoscaler-flags", expected=expected, got=str(error))]
    return words, [ConfigError(file="--autoscaler-flags", expected=expected, got=wrong) for wrong in wrong_flags(words)]


def moment(text: str | None) -> tuple[Seconds | None, list[ConfigError]]:
    """--now: RFC 3339, or the word `now`."""
    if text == "now":
        return int(clock.utc().timestamp()), []
    found = seconds(text)
    if text is None or (found is not None and 0 <= found < LATEST):
        return found, []
    expected = "a time such as 2026-01-02T15:04:05Z, or now"
    return None, [ConfigError(file="--now", expected=expected, got=repr(text))]
