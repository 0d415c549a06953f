"""Whom we work with: RuntimeClass admission, the autoscaler, where usage comes from, the VPA."""

import shlex
from collections.abc import Iterator, Mapping

from trimtab.cluster.autoscaler import ENABLED, THRESHOLD, Autoscaler, flags_of
from trimtab.cluster.reason import Code, Unreadable
from trimtab.command.doctor.finding import Check, Finding, error, ok, unknown, warn
from trimtab.command.doctor.seen import Seen

WRONG_OVERHEAD = Code(
    "overhead-set-otherwise",
    "Who fills pod overhead in is set otherwise than this API server does it: pods would be refused, or have none.",
    "Set `TRIMTAB_OVERHEAD` of webhook and watchdog to what the sentence says.",
)
NO_SCALER = Code(
    "autoscaler-not-found",
    "Pools are to be compacted, and no cluster autoscaler tells of itself: nobody would take the nodes that are "
    "emptied, so nothing is begun.",
    "Install one, or let it write its status (`--write-status-configmap`); where it cannot, set "
    "TRIMTAB_AUTOSCALER=assumed.",
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
    "Set TRIMTAB_AUTOSCALER_FLAGS of the compactor to the flags of the autoscaler.",
)
NO_SOURCE = Code(
    "usage-source-missing",
    "There is no metrics API, and the recommender was given no Prometheus: it has nothing to learn from.",
    "Install metrics-server, or set TRIMTAB_PROMETHEUS of the recommender.",
)
SOURCE_FAILS = Code(
    "usage-source-failing",
    "Where usage comes from does not answer, or knows of no pod.",
    "`kubectl get apiservice v1beta1.metrics.k8s.io`, or the Prometheus that TRIMTAB_PROMETHEUS names.",
)
VPA_DEAD = Code(
    "vpa-webhook-dead",
    "The VPA is installed and its own webhook cannot act: pods it manages are given P95, not P5.",
    "See its admission controller: a ready endpoint and a caBundle are what it needs.",
)


def runtime_class(seen: Seen) -> Iterator[Finding]:
    trial = seen.runtime_class
    if isinstance(trial, Unreadable):
        yield unknown(trial)
        return
    refused = trial.status >= 300
    if refused and "RuntimeClass" not in trial.message:
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


def autoscaler(seen: Seen) -> Iterator[Finding]:
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


def _untold(seen: Seen, settings: Mapping[str, str]) -> Finding:
    if settings.get("TRIMTAB_AUTOSCALER") == "assumed":
        return ok("it tells nothing of itself, and is assumed (TRIMTAB_AUTOSCALER)")
    if isinstance(seen.pools, Unreadable):
        return unknown(seen.pools)
    if not seen.pools.pools:
        return ok("none is seen, and there is no pool to compact")
    return warn(NO_SCALER, f"{len(seen.pools.pools)} pools, and no ConfigMap kube-system/cluster-autoscaler-status")


def _told(found: Autoscaler, seen: Seen) -> Finding:
    now = seen.here if isinstance(seen.there, Unreadable) else seen.there
    seconds = int(now.timestamp())
    if found.silent(seconds):
        age = f"{seconds - found.updated} s ago" if found.updated is not None else "never"
        ahead = found.updated is not None and found.updated > seconds
        return error(ILL, f"it {found.silence(seconds)}" if ahead else f"it last reported {age}")
    return ok(f"it reports: {len(found.groups)} groups") if found.healthy else error(ILL, "it calls itself unhealthy")


def _flags(flags: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[Finding]:
    if flags.get(ENABLED) == "false":
        yield error(KEEPS, f"--{ENABLED}=false")
    told = flags_of(shlex.split(settings.get("TRIMTAB_AUTOSCALER_FLAGS", "")))
    timers = {n for n in (*flags, *told) if n.startswith("scale-down") or n == THRESHOLD}
    other = sorted(name for name in timers if flags.get(name) != told.get(name))
    if other:
        needed = " ".join(f"--{name}={flags[name]}" for name in sorted(timers) if name in flags)
        yield warn(FLAGS, f"--{', --'.join(other)}", f"TRIMTAB_AUTOSCALER_FLAGS={shlex.quote(needed)} of the compactor")


_PROMETHEUS = "TRIMTAB_PROMETHEUS"


def usage(seen: Seen) -> Iterator[Finding]:
    found, process = seen.source, seen.processes["recommender"]
    if isinstance(process, Unreadable):
        yield unknown(process)
    elif process is None:
        yield ok("nobody gathers usage here: there is no recommender")
    elif process.settings.get("TRIMTAB_KUBELETS", "").lower() == "true" and not process.settings.get(_PROMETHEUS):
        yield unknown(Unreadable("kubelets", "they are asked with a right of the recommender's alone"))
    elif isinstance(found, Unreadable):
        yield unknown(found, "Look at it from inside of the cluster, then leave this out: --without usage-source.")
    elif found.status == 404 and found.name == "metrics API":
        yield warn(NO_SOURCE, "no metrics API, and no TRIMTAB_PROMETHEUS")
    elif found.status >= 300 or found.empty:
        said = "answers, and knows of no pod" if found.empty else f"answers {found.status}: {found.said}"
        yield error(SOURCE_FAILS, f"{found.name} {said}")
    else:
        yield ok(f"{found.name} answers")


def vpa(seen: Seen) -> Iterator[Finding]:
    if isinstance(seen.vpa, Unreadable):
        yield unknown(seen.vpa)
    elif seen.vpa.installed and not seen.vpa.acts:
        yield warn(VPA_DEAD, "the VPA is installed, its webhook cannot act")
    else:
        yield ok("its webhook can act" if seen.vpa.installed else "there is none")


def _settings(seen: Seen, process: str) -> Mapping[str, str] | Unreadable:
    found = seen.processes[process]
    return found if isinstance(found, Unreadable) else found.settings if found is not None else {}


CHECKS = (
    Check(
        name="runtime-class", asks="Who fills pod overhead in, and is it set so?", judge=runtime_class,
        may=(WRONG_OVERHEAD,),
    ),
    Check(
        name="autoscaler", asks="Is there anybody to take emptied nodes?", judge=autoscaler,
        may=(NO_SCALER, ILL, KEEPS, FLAGS),
    ),
    Check(name="usage-source", asks="Is there usage to learn from?", judge=usage, may=(NO_SOURCE, SOURCE_FAILS)),
    Check(name="vpa", asks="Can the VPA take over?", judge=vpa, may=(VPA_DEAD,)),
)  # fmt: skip
