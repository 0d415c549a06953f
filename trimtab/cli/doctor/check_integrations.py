"""Whom we work with: RuntimeClass admission, the autoscaler, where usage comes from, the VPA."""

import shlex
from collections.abc import Iterable, Iterator, Mapping

from trimtab.cli.doctor.finding import Check, DoctorFinding, error, ok, unknown, warn
from trimtab.cli.doctor.observed import ObservedCluster
from trimtab.cluster.cluster_autoscaler import (
    ENABLED,
    READ_FLAGS,
    THRESHOLD,
    Autoscaler,
    by_flags,
    flags_of,
    with_options,
)
from trimtab.cluster.pool import Pool, Precedence
from trimtab.cluster.reason import Code, Unreadable

WRONG_OVERHEAD = Code(
    "overhead-set-otherwise",
    "Who fills pod overhead in is set otherwise than this API server does it: pods would be refused, or have none.",
    "Set `TRIMTAB_OVERHEAD` of webhook and watchdog to what the sentence says.",
)
HANDING_OVER = 30
"""Percent of requests: at such a threshold the autoscaler takes little but empty nodes."""
NO_SCALER = Code(
    "autoscaler-not-found",
    "Pools are to be compacted, and no cluster autoscaler tells of itself: nobody would take the nodes that are "
    "emptied, so nothing is begun.",
    "Install one, or let it write its status (`--write-status-configmap`); where it cannot, set "
    "TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS=false.",
)
ILL = Code(
    "autoscaler-ill",
    "The cluster autoscaler does not report, reports nonsense, or calls itself unhealthy: no drain is begun.",
    "`kubectl -n kube-system logs deploy/cluster-autoscaler`",
)
KEEPS = Code(
    "autoscaler-keeps-nodes",
    "The cluster autoscaler runs with --scale-down-enabled=false: nodes that are emptied stay.",
    "Start it with --scale-down-enabled=true, or leave the pools in rehearsal.",
)
FLAGS = Code(
    "autoscaler-flags-differ",
    "The compactor was told other flags of the autoscaler than those it runs with.",
    "Set TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS of the compactor to the flags of the autoscaler.",
)
HANDS_OVER = Code(
    "autoscaler-does-not-hand-over",
    "A pool says `autoscaler: lead`, and the cluster autoscaler would empty the same nodes in its own order.",
    "Start the cluster autoscaler with the flag that the sentence names.",
)
BESIDE = Code(
    "estafette-runs-beside",
    "An estafette node-compactor runs in this cluster. It deletes pods whatever their budgets say, on nodes that "
    "Trimtab plans with, and pods move twice.",
    "`trimtab pools import FILE --apply --take-over` makes pools of its configuration, stops it and opens what it left "
    "cordoned.",
)
STRANDED = Code(
    "estafette-left-cordons",
    "Nodes are still cordoned by an estafette node-compactor that no longer runs: they take no pods, and nothing plans "
    "with them.",
    "`trimtab pools import FILE --apply --take-over` opens them.",
)
NO_SOURCE = Code(
    "usage-source-missing",
    "There is no metrics API, and the recommender was given no Prometheus: it has nothing to learn from.",
    "Install metrics-server, or set TRIMTAB_RECOMMENDER_PROMETHEUS_URL of the recommender.",
)
SOURCE_FAILS = Code(
    "usage-source-failing",
    "Where usage comes from does not answer, or knows of no pod.",
    "`kubectl get apiservice v1beta1.metrics.k8s.io`, or the Prometheus that TRIMTAB_RECOMMENDER_PROMETHEUS_URL names.",
)
VPA_DEAD = Code(
    "vpa-webhook-dead",
    "The VPA is installed and its own webhook cannot act: pods it manages are given P95, not P5.",
    "See its admission controller: a ready endpoint and a caBundle are what it needs.",
)


def runtime_class(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    trial = seen.runtime_class
    if isinstance(trial, Unreadable):
        yield unknown(trial)
        return
    refused = trial.status >= 300
    # A required action of ours may deny the pod, too; its sentence may name a class.
    if refused and ("RuntimeClass" not in trial.message or "denied the request" in trial.message):
        yield unknown(f"a pod in {seen.asked_in} was refused: {trial.message}")
        return
    fills = "server" if refused else "webhook"
    told = "the API server fills overhead in" if refused else "RuntimeClass admission is off: we fill overhead in"
    for process in ("webhook", "watchdog"):
        settings = _settings(seen, process)
        if isinstance(settings, Unreadable):
            yield unknown(settings)
        elif settings.get("TRIMTAB_OVERHEAD", "server") != fills:
            yield error(WRONG_OVERHEAD, f"{told}; {process} says otherwise", f"TRIMTAB_OVERHEAD={fills} of {process}")
        else:
            yield ok(f"{told}, as {process} takes it")


def autoscaler(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    """What counts for pools: without any, nothing is asked of it."""
    settings = _settings(seen, "compactor")
    for part in (seen.scaler, settings):
        if isinstance(part, Unreadable):
            yield unknown(part)
    if isinstance(seen.scaler, Unreadable) or isinstance(settings, Unreadable):
        return
    told, flags = seen.scaler.told, seen.scaler.flags
    if isinstance(told, Unreadable):
        yield error(ILL, f"its status makes no sense: {told}")
    elif told is None:
        yield _untold(seen, settings)
    else:
        yield _told(told, seen)
    if flags is not None:
        yield from _flags(flags, settings)
    if not isinstance(seen.pools, Unreadable):
        told_flags = shlex.split(settings.get("TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS", ""))
        yield from _handed_over(seen.pools.pools, flags if flags is not None else flags_of(told_flags))


def _untold(seen: ObservedCluster, settings: Mapping[str, str]) -> DoctorFinding:
    if settings.get("TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS", "").lower() in ("false", "0"):
        return ok("it tells nothing of itself, and is assumed (TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS)")
    if isinstance(seen.pools, Unreadable):
        return unknown(seen.pools)
    if not seen.pools.pools:
        return ok("none is seen, and there is no pool to compact")
    return warn(NO_SCALER, f"{len(seen.pools.pools)} pools, and no ConfigMap kube-system/cluster-autoscaler-status")


def _told(found: Autoscaler, seen: ObservedCluster) -> DoctorFinding:
    now = seen.here if isinstance(seen.there, Unreadable) else seen.there
    seconds = int(now.timestamp())
    if found.silent(seconds):
        age = f"{seconds - found.updated} s ago" if found.updated is not None else "never"
        ahead = found.updated is not None and found.updated > seconds
        return error(ILL, f"it {found.silence(seconds)}" if ahead else f"it last reported {age}")
    return ok(f"it reports: {len(found.groups)} groups") if found.healthy else error(ILL, "it calls itself unhealthy")


def _handed_over(pools: Iterable[Pool], flags: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """For each pool that leads: does the autoscaler leave to it what is not empty?"""
    scaler = by_flags([f"--{name}={text}" for name, text in flags.items()], None)
    flag = f"--{THRESHOLD}={HANDING_OVER / 100:g}"
    for pool in pools:
        if pool.autoscaler is not Precedence.LEAD:
            continue
        threshold = with_options(scaler, pool.group_options).threshold
        if threshold > pool.lead_max_threshold:
            told = f"pool {pool.name} leads and begins nothing: the autoscaler removes nodes under {threshold} %"
            yield warn(HANDS_OVER, f"{told}; {flag} hands them over", f"start the cluster autoscaler with {flag}")
        elif threshold > HANDING_OVER:
            yield ok(f"pool {pool.name} leads; {flag} would hand over what the autoscaler empties under {threshold} %")
        else:
            yield ok(f"pool {pool.name} leads, and the autoscaler leaves it all above {threshold} %")


def _flags(flags: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[DoctorFinding]:
    if flags.get(ENABLED) == "false":
        yield error(KEEPS, f"--{ENABLED}=false")
    told = flags_of(shlex.split(settings.get("TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS", "")))
    timers = {n for n in (*flags, *told) if n.startswith("scale-down") or n in READ_FLAGS}
    other = sorted(name for name in timers if flags.get(name) != told.get(name))
    if other:
        needed = " ".join(f"--{name}={flags[name]}" for name in sorted(timers) if name in flags)
        yield warn(
            FLAGS,
            f"--{', --'.join(other)}",
            f"TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS={shlex.quote(needed)} of the compactor",
        )


MOST_NAMES = 3
"""Nodes that a sentence names."""


def estafette(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    """An error where both would empty nodes: one of Trimtab's pools acts."""
    found, pools = seen.estafette, seen.pools
    if isinstance(found, Unreadable):
        yield unknown(found)
        return
    acts = [] if isinstance(pools, Unreadable) else [pool.name for pool in pools.pools if not pool.dry_run]
    if found.running:
        told = f"{' and '.join(found.running)} runs"
        yield error(BESIDE, f"{told} beside pools that act: {', '.join(acts)}") if acts else warn(BESIDE, told)
    elif found.stranded:
        count, names = len(found.stranded), ", ".join(found.stranded[:MOST_NAMES])
        more = ", …" if count > MOST_NAMES else ""
        yield warn(STRANDED, f"{count} node{'' if count == 1 else 's'} ({names}{more})")
    else:
        yield ok("there is none")


_PROMETHEUS = "TRIMTAB_RECOMMENDER_PROMETHEUS_URL"


def usage(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    found, process = seen.source, seen.processes["recommender"]
    if isinstance(process, Unreadable):
        yield unknown(process)
    elif process is None:
        yield ok("nobody gathers usage here: there is no recommender")
    elif process.settings.get("TRIMTAB_RECOMMENDER_USE_KUBELETS", "").lower() == "true" and not process.settings.get(
        _PROMETHEUS
    ):
        yield unknown(Unreadable("kubelets", "they are asked with a right of the recommender's alone"))
    elif isinstance(found, Unreadable):
        yield unknown(found, "Look at it from inside of the cluster, then leave this out: --without usage-source.")
    elif found.status == 404 and found.name == "metrics API":
        yield warn(NO_SOURCE, "no metrics API, and no TRIMTAB_RECOMMENDER_PROMETHEUS_URL")
    elif found.status >= 300 or found.empty:
        said = "answers, and knows of no pod" if found.empty else f"answers {found.status}: {found.said}"
        yield error(SOURCE_FAILS, f"{found.name} {said}")
    else:
        yield ok(f"{found.name} answers")


def vpa(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    if isinstance(seen.vpa, Unreadable):
        yield unknown(seen.vpa)
    elif seen.vpa.installed and not seen.vpa.acts:
        yield warn(VPA_DEAD, "the VPA is installed, its webhook cannot act")
    else:
        yield ok("its webhook can act" if seen.vpa.installed else "there is none")


def _settings(seen: ObservedCluster, process: str) -> Mapping[str, str] | Unreadable:
    found = seen.processes[process]
    return found if isinstance(found, Unreadable) else found.settings if found is not None else {}


CHECKS = (
    Check(
        name="runtime-class", asks="Who fills pod overhead in, and is it set so?", judge=runtime_class,
        may=(WRONG_OVERHEAD,),
    ),
    Check(
        name="autoscaler", asks="Is there anybody to take emptied nodes?", judge=autoscaler,
        may=(NO_SCALER, ILL, KEEPS, FLAGS, HANDS_OVER),
    ),
    Check(
        name="estafette", asks="Does another compactor empty the same nodes?", judge=estafette, may=(BESIDE, STRANDED),
    ),
    Check(name="usage-source", asks="Is there usage to learn from?", judge=usage, may=(NO_SOURCE, SOURCE_FAILS)),
    Check(name="vpa", asks="Can the VPA take over?", judge=vpa, may=(VPA_DEAD,)),
)  # fmt: skip
