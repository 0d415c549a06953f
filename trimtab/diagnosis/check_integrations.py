"""Checks of the components that Trimtab works with: RuntimeClass admission, the autoscaler, estafette, the usage
source, the VPA."""

import shlex
from collections.abc import Iterable, Iterator, Mapping

from trimtab.cluster.autoscaler_flags import ENABLED, NAMESPACE, OBEYED_FLAGS, STATUS_CONFIG_MAP
from trimtab.cluster.autoscaler_processes import (
    Processes,
    arguments_of_status,
    format_processes,
    key_of_process,
    split_processes,
)
from trimtab.cluster.cluster_autoscaler import (
    THRESHOLD_FLAG,
    Autoscaler,
    autoscaler_from_flags,
    parse_flags,
    split_status_names,
)
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.overhead_writer import BY_SERVER, BY_WEBHOOK
from trimtab.cluster.pool import Pool, Precedence
from trimtab.cluster.processes import PROCESSES
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.several_autoscalers import highest_threshold, join_autoscalers, with_process_flags
from trimtab.diagnosis.finding import Check, DoctorFinding, report_error, report_ok, report_unknown, report_warning
from trimtab.diagnosis.observed import DeploymentState, ObservedCluster, Read
from trimtab.diagnosis.process_states import find_compactor, find_recommender
from trimtab.diagnosis.reasons import (
    AUTOSCALER_COMPETES,
    AUTOSCALER_FLAGS_DIFFER,
    AUTOSCALER_KEEPS_NODES,
    AUTOSCALER_MISSING,
    AUTOSCALER_STATUS_UNREAD,
    AUTOSCALER_UNHEALTHY,
    ESTAFETTE_CORDONS,
    ESTAFETTE_RUNS,
    OVERHEAD_MISMATCH,
    USAGE_SOURCE_FAILS,
    USAGE_SOURCE_MISSING,
    VPA_WEBHOOK_DOWN,
)

MAX_LEAD_THRESHOLD_PERCENT = 30
"""The largest scale-down threshold, in percent of requests, at which the autoscaler removes almost only empty nodes."""


def check_runtime_class(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the webhook and the watchdog are configured for the way this API server handles pod overhead.

    RuntimeClass admission refuses a pod whose RuntimeClass does not exist; if such a pod is admitted, that plugin is
    off.
    """
    trial = cluster.runtime_class_trial
    if isinstance(trial, Unreadable):
        yield report_unknown(trial)
        return
    is_refused = trial.status >= 300
    # A required action of a PodPolicy may deny the pod, too; its sentence may name a class.
    if is_refused and ("RuntimeClass" not in trial.message or "denied the request" in trial.message):
        yield report_unknown(
            f"a pod in {cluster.trial_namespace} was refused: {trial.message}",
            "Correct what the message names, or name another namespace with --ask-in.",
        )
        return
    writer = BY_SERVER if is_refused else BY_WEBHOOK
    sentence = (
        "the API server writes pod overhead"
        if is_refused
        else "RuntimeClass admission is off: the webhook writes pod overhead"
    )
    for process in (declaration.name for declaration in PROCESSES if declaration.sets_overhead):
        settings = _settings_of(cluster.processes[process])
        if isinstance(settings, Unreadable):
            yield report_unknown(settings)
        elif settings.get("TRIMTAB_OVERHEAD", "server") != writer:
            yield report_error(
                OVERHEAD_MISMATCH,
                f"{sentence}; the {process} is configured with another value",
                f"TRIMTAB_OVERHEAD={writer} of {process}",
            )
        else:
            yield report_ok(f"{sentence}, as the {process} is configured")


def check_autoscaler(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the autoscaler reports that it is healthy, and whether its flags suit the pools.

    If there is no pool, a missing autoscaler is no finding.
    """
    settings = _settings_of(find_compactor(cluster.processes))
    for part in (cluster.autoscaler, settings):
        if isinstance(part, Unreadable):
            yield report_unknown(part)
    if isinstance(cluster.autoscaler, Unreadable) or isinstance(settings, Unreadable):
        return
    status, processes = cluster.autoscaler.status_report, cluster.autoscaler.processes
    if isinstance(status, Unreadable):
        yield report_error(AUTOSCALER_UNHEALTHY, f"the cluster autoscaler's status is invalid: {status}")
    elif status is None:
        yield _check_missing_status(cluster, settings)
    else:
        yield from (_check_status(member, cluster) for member in status.each)
    yield from _check_flags(processes, settings)
    yield from _check_status_names(processes, settings)
    if not isinstance(cluster.pools, Unreadable):
        known_processes = processes or _configured_processes(settings)
        yield from _check_thresholds(cluster.pools.pools, _autoscaler_with_flags(status, known_processes))


def _autoscaler_with_flags(status: Autoscaler | Unreadable | None, processes: Processes) -> Autoscaler:
    if isinstance(status, Autoscaler):
        return with_process_flags(status, processes)
    joined = join_autoscalers([autoscaler_from_flags(arguments, None) for arguments in processes])
    return joined or Autoscaler()


def _check_missing_status(cluster: ObservedCluster, settings: Mapping[str, str]) -> DoctorFinding:
    if settings.get("TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS", "").lower() in ("false", "0"):
        return report_ok(
            "the cluster autoscaler reports no status, and the setting "
            "TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS does not require a status"
        )
    if isinstance(cluster.pools, Unreadable):
        return report_unknown(cluster.pools)
    if not cluster.pools.pools:
        return report_ok("the cluster has no cluster autoscaler, and Trimtab has no pool to compact")
    count = format_count(len(cluster.pools.pools), "pool")
    return report_warning(
        AUTOSCALER_MISSING,
        f"there are pools ({count}), but the ConfigMap kube-system/cluster-autoscaler-status does not exist",
    )


def _check_status(status: Autoscaler, cluster: ObservedCluster) -> DoctorFinding:
    now = cluster.local_time if isinstance(cluster.server_time, Unreadable) else cluster.server_time
    seconds = int(now.timestamp())
    if status.is_silent(seconds):
        if status.updated is None:
            problem = "the cluster autoscaler has never reported its status"
        elif status.updated > seconds:
            problem = status.silence_reason(seconds)
        else:
            problem = f"the cluster autoscaler last reported its status {seconds - status.updated} s ago"
        return report_error(AUTOSCALER_UNHEALTHY, problem)
    return (
        report_ok(
            f"the cluster autoscaler reports {len(status.groups)} node group{'s' if len(status.groups) != 1 else ''}"
        )
        if status.healthy
        else report_error(AUTOSCALER_UNHEALTHY, "the cluster autoscaler reports that it is unhealthy")
    )


def _check_thresholds(pools: Iterable[Pool], autoscaler: Autoscaler) -> Iterator[DoctorFinding]:
    """Yields for each pool with `autoscaler: lead` whether its autoscalers leave the nodes with pods to Trimtab."""
    flag = f"--{THRESHOLD_FLAG}={MAX_LEAD_THRESHOLD_PERCENT / 100:g}"
    for pool in pools:
        if pool.autoscaler is not Precedence.LEAD:
            continue
        threshold = highest_threshold(autoscaler, pool.name, (), pool.group_options)
        if threshold > pool.lead_max_threshold:
            sentence = (
                f"pool {pool.name} has `autoscaler: lead` and starts no drain: the autoscaler removes nodes "
                f"under {threshold} %"
            )
            yield report_warning(
                AUTOSCALER_COMPETES,
                f"{sentence}; with {flag} the autoscaler would leave these nodes to Trimtab",
                f"start the cluster autoscaler with {flag}",
            )
        elif threshold > MAX_LEAD_THRESHOLD_PERCENT:
            yield report_ok(
                f"pool {pool.name} has `autoscaler: lead`; with {flag} the autoscaler would leave to Trimtab the "
                f"nodes that it drains under {threshold} %"
            )
        else:
            yield report_ok(
                f"pool {pool.name} has `autoscaler: lead`, and the autoscaler drains no node above {threshold} %"
            )


def _check_flags(processes: Processes, settings: Mapping[str, str]) -> Iterator[DoctorFinding]:
    configured = _configured_processes(settings)
    differing: dict[str, None] = {}
    all_flags = [parse_flags(arguments) for arguments in processes]
    for arguments, flags in zip(processes, all_flags, strict=True):
        if not ENABLED.is_true_in(flags):
            yield report_error(AUTOSCALER_KEEPS_NODES, f"--{ENABLED.name}={flags[ENABLED.name]}")
        own = parse_flags(arguments_of_status(configured, key_of_process(arguments)) or ())
        differing |= {name: None for name in _followed_names(flags, own) if flags.get(name) != own.get(name)}
    if differing:
        names = _LOCATING_FLAGS if len(processes) > 1 else ()
        required = format_processes(
            [f"--{name}={flags[name]}" for name in (*names, *_followed_names(flags, {})) if name in flags]
            for flags in all_flags
        )
        yield report_warning(
            AUTOSCALER_FLAGS_DIFFER,
            f"--{', --'.join(sorted(differing))}",
            f"TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS={shlex.quote(required)} of the compactor",
        )


_LOCATING_FLAGS = (NAMESPACE.name, STATUS_CONFIG_MAP.name)
"""Flags that say where an autoscaler writes its status."""


def _followed_names(*flags: Mapping[str, str]) -> list[str]:
    """Returns the names of the flags that Trimtab follows, of those that are set."""
    followed = {flag.name for flag in OBEYED_FLAGS} - {*_LOCATING_FLAGS}
    return sorted({name for one in flags for name in one if name in followed})


def _check_status_names(processes: Processes, settings: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yields a finding if an autoscaler writes a status that the compactor does not read."""
    read = split_status_names(settings.get("TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP", ""))
    names = tuple(dict.fromkeys(key_of_process(arguments)[1] for arguments in processes))
    if unread := [name for name in names if name not in read]:
        yield report_warning(
            AUTOSCALER_STATUS_UNREAD,
            f"the compactor does not read ConfigMap {join_first(unread, MAX_NAMES)}",
            f"TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP={','.join(names)} of the compactor, and "
            f"`trimtab install --autoscaler-status {','.join(names)}`",
        )


def _configured_processes(settings: Mapping[str, str]) -> Processes:
    try:
        return split_processes(settings.get("TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS", ""))
    except ValueError:
        # The compactor does not start with such a setting; another check reports that.
        return ()


MAX_NAMES = 3
"""The largest number of nodes that a sentence names."""


def check_estafette(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields a finding if an estafette node-compactor runs: an error if a pool of Trimtab is in mode act, otherwise a
    warning.

    If none runs, it yields the nodes that estafette left cordoned."""
    estafette, pools = cluster.estafette, cluster.pools
    if isinstance(estafette, Unreadable):
        yield report_unknown(estafette)
        return
    acting_pools = [] if isinstance(pools, Unreadable) else [pool.name for pool in pools.pools if not pool.dry_run]
    if estafette.running:
        sentence = f"{' and '.join(estafette.running)} runs"
        yield (
            report_error(ESTAFETTE_RUNS, f"{sentence} while pools are in mode act: {', '.join(acting_pools)}")
            if acting_pools
            else report_warning(ESTAFETTE_RUNS, sentence)
        )
    elif estafette.stranded:
        count, names = len(estafette.stranded), join_first(estafette.stranded, MAX_NAMES)
        yield report_warning(
            ESTAFETTE_CORDONS,
            f"an estafette node-compactor that no longer runs left {count} node{'' if count == 1 else 's'} "
            f"cordoned ({names})",
        )
    else:
        yield report_ok("no estafette node-compactor runs in this cluster")


_PROMETHEUS = "TRIMTAB_RECOMMENDER_PROMETHEUS_URL"


def check_usage_source(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the recommender's source of usage answers and has pods."""
    source, process = cluster.usage_source, find_recommender(cluster.processes)
    if isinstance(process, Unreadable):
        yield report_unknown(process)
    elif process is None:
        yield report_ok("there is no recommender, so no usage is collected")
    elif process.settings.get("TRIMTAB_RECOMMENDER_USE_KUBELETS", "").lower() == "true" and not process.settings.get(
        _PROMETHEUS
    ):
        yield report_unknown(Unreadable("kubelets", "only the recommender's account may read the metrics of kubelets"))
    elif isinstance(source, Unreadable):
        yield report_unknown(
            source, "Check the source of usage from inside the cluster, then skip this check: --without usage-source."
        )
    elif source.status == 404 and source.name == "metrics API":
        yield report_warning(
            USAGE_SOURCE_MISSING, "there is no metrics API, and TRIMTAB_RECOMMENDER_PROMETHEUS_URL is not set"
        )
    elif source.status >= 300 or source.empty:
        failure = f"does not answer as expected (status {source.status}): {source.message}"
        problem = "answers, but has no usage of any pod" if source.empty else failure
        yield report_error(USAGE_SOURCE_FAILS, f"{source.name} {problem}")
    else:
        yield report_ok(f"{source.name} answers")


def check_vpa(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the webhook of an installed VerticalPodAutoscaler can change pods."""
    if isinstance(cluster.vpa, Unreadable):
        yield report_unknown(cluster.vpa)
    elif cluster.vpa.installed and not cluster.vpa.acts:
        yield report_warning(VPA_WEBHOOK_DOWN, "the VPA is installed, but its webhook cannot change pods")
    else:
        yield report_ok("the VPA's webhook can change pods" if cluster.vpa.installed else "the VPA is not installed")


def _settings_of(state: Read[DeploymentState | None]) -> Mapping[str, str] | Unreadable:
    return state if isinstance(state, Unreadable) else state.settings if state is not None else {}


CHECKS = (
    Check(
        name="runtime-class",
        asks="Does the setting TRIMTAB_OVERHEAD match the component that writes pod overhead?",
        judge=check_runtime_class,
        may=(OVERHEAD_MISMATCH,),
    ),
    Check(
        name="autoscaler",
        asks="Does a cluster autoscaler remove drained nodes?",
        judge=check_autoscaler,
        may=(
            AUTOSCALER_MISSING,
            AUTOSCALER_UNHEALTHY,
            AUTOSCALER_KEEPS_NODES,
            AUTOSCALER_FLAGS_DIFFER,
            AUTOSCALER_STATUS_UNREAD,
            AUTOSCALER_COMPETES,
        ),
    ),
    Check(
        name="estafette",
        asks="Does another compactor drain nodes of this cluster?",
        judge=check_estafette,
        may=(ESTAFETTE_RUNS, ESTAFETTE_CORDONS),
    ),
    Check(
        name="usage-source",
        asks="Does the recommender's source of usage answer?",
        judge=check_usage_source,
        may=(USAGE_SOURCE_MISSING, USAGE_SOURCE_FAILS),
    ),
    Check(
        name="vpa", asks="If a VPA is installed, can its webhook change pods?", judge=check_vpa, may=(VPA_WEBHOOK_DOWN,)
    ),
)
