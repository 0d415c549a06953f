"""Checks of the installation itself: processes, permissions, Leases, version, clock, namespace, CRD, policies and
pools."""

from collections.abc import Iterator
from datetime import UTC

from trimtab.admission.handler import PROBE_WARNING
from trimtab.cluster.format_count import format_count
from trimtab.cluster.processes import PROCESSES, ProcessDeclaration, account_name
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import format_age
from trimtab.diagnosis.finding import Check, DoctorFinding, report_error, report_ok, report_unknown, report_warning
from trimtab.diagnosis.lease_state import LeaseState, has_leader
from trimtab.diagnosis.observed import AccountPolicy, DeploymentState, DryRunResult, ObservedCluster, PolicyState, Read
from trimtab.diagnosis.process_states import find_compactor, find_watchdog, find_webhook, is_recommender_only
from trimtab.diagnosis.reasons import (
    ACCOUNT_POLICY_DIFFERENT,
    ACCOUNT_POLICY_MISSING,
    ALL_PAUSED,
    CLOCK_SKEW,
    CRD_MISSING,
    DRAIN_ORDER_MISSING,
    LEASE_FREE,
    LEASE_STALE,
    NAMESPACE_MISMATCH,
    NAMESPACE_MISSING,
    NOT_READY,
    PERMISSION_MISSING,
    POLICY_BRAKED,
    POLICY_FAILING,
    POLICY_INVALID,
    POOL_INVALID,
    POOL_STATUS_MISSING,
    POOL_WITHOUT_SCALING,
    PROCESS_MISSING,
    REQUIRED_CLASS_MISSING,
    SCALED_TO_ZERO,
    STATUS_BEHIND,
    TOO_OLD,
    UNTESTED,
    WEBHOOK_PAUSED,
)
from trimtab.installation.names import WORKERS
from trimtab.policy.schema import VERSION

PAUSED_SETTING = "TRIMTAB_WEBHOOK_PAUSED"


def check_processes(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the Deployment of each process exists, runs in the right namespace, and has ready replicas."""
    for process in PROCESSES:
        if is_recommender_only(cluster) and cluster.processes.get(process.name) is None:
            continue
        if not process.is_optional:
            yield _check_process(process, cluster.processes[process.name], cluster.namespace)


def _check_process(process: ProcessDeclaration, state: Read[DeploymentState | None], namespace: str) -> DoctorFinding:
    if isinstance(state, Unreadable):
        return report_unknown(state)
    name, report = process.name, report_error if process.is_needed_by_pods else report_warning
    if state is None:
        fix = (
            "trimtab install --apply, with the options of the installation; with Helm, set the value "
            f"{name}.enabled: true"
        )
        return report(PROCESS_MISSING, f"there is no Deployment {namespace}/{process.account}", fix)
    if state.replicas == 0:
        replica_count = 2 if process.is_needed_by_pods else 1
        fix = f"kubectl -n {namespace} scale deployment {process.account} --replicas={replica_count}"
        return report(SCALED_TO_ZERO, f"the Deployment {process.account} of the {name} is scaled to 0 replicas", fix)
    replicas = f"{state.ready_replicas} of {state.replicas} replicas of the {name} are ready"
    describe_command = f"kubectl -n {namespace} describe pods -l app.kubernetes.io/component={name}"
    configured_namespace = state.settings.get("TRIMTAB_NAMESPACE", namespace)
    if configured_namespace != namespace:
        return report_error(
            NAMESPACE_MISMATCH,
            f"the {name} runs in the namespace {namespace}, but its settings name the namespace {configured_namespace}",
        )
    if state.ready_replicas == 0:
        return report_error(NOT_READY, replicas, describe_command)
    return (
        report_warning(NOT_READY, replicas, describe_command)
        if state.ready_replicas < state.replicas
        else report_ok(replicas)
    )


def check_permissions(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the permissions that the account of each installed process lacks."""
    for name, missing in cluster.missing_permissions.items():
        if isinstance(missing, Unreadable):
            yield report_unknown(missing)
        elif missing:
            rest = f" and {len(missing) - 3} more permissions" if len(missing) > 3 else ""
            yield report_error(
                PERMISSION_MISSING, f"the account {account_name(name)} may not {', '.join(missing[:3])}{rest}"
            )
        else:
            yield report_ok(f"the account {account_name(name)} has all permissions that it needs")


def check_account_policies(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether an admission policy restricts the account of each installed process to its work."""
    policies = cluster.account_policies
    if isinstance(policies, Unreadable):
        yield report_unknown(policies)
    elif policies is None:
        yield report_warning(
            ACCOUNT_POLICY_MISSING,
            "this API server does not serve ValidatingAdmissionPolicies: accounts may do everything that RBAC allows",
        )
    else:
        # Policies of the metrics API, which is no part of every installation, are read only if it is installed.
        expected = [policy for policy in policies if cluster.processes.get(policy.process, policy) is not None]
        findings = [finding for policy in expected for finding in _check_account_policy(policy)]
        count = format_count(len(expected), "ValidatingAdmissionPolicy limits", "ValidatingAdmissionPolicies limit")
        yield from findings or [report_ok(f"{count} what Trimtab's ServiceAccounts may change")]


def _check_account_policy(policy: AccountPolicy) -> Iterator[DoctorFinding]:
    subject = f"the admission policy {policy.name}, which restricts the account {account_name(policy.process)},"
    if not policy.is_there:
        yield report_error(ACCOUNT_POLICY_MISSING, f"{subject} does not exist")
    elif not policy.is_bound:
        yield report_error(
            ACCOUNT_POLICY_MISSING, f"{subject} has no binding that denies requests, so it is not enforced"
        )
    elif not policy.is_ours:
        yield report_warning(
            ACCOUNT_POLICY_DIFFERENT, f"{subject} differs from the one that this version of Trimtab installs"
        )


def check_leases(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether one replica of each installed worker holds a Lease that it renews."""
    for name in WORKERS:
        process, lease = cluster.processes[name], cluster.leases[name]
        if isinstance(process, Unreadable):
            yield report_unknown(process)
        elif isinstance(lease, Unreadable):
            yield report_unknown(lease)
        elif process is not None and process.replicas:
            yield _check_leader(name, lease, cluster)
        elif process is not None:
            yield report_ok(f"the {name} is scaled to 0 replicas, so no replica leads")
        else:
            yield report_ok(f"the {name} is not installed")


def _check_leader(name: str, lease: LeaseState | None, cluster: ObservedCluster) -> DoctorFinding:
    if lease is None or not lease.holder:
        return report_error(
            LEASE_FREE,
            f"no replica of the {name} leads",
            f"kubectl -n {cluster.namespace} logs deploy/{account_name(name)}",
        )
    if lease.renewed_at is None:
        return report_error(LEASE_STALE, f"{lease.holder} holds the Lease of the {name}, but has never renewed it")
    if not has_leader(lease, cluster.present):
        age = format_age(int((cluster.present - lease.renewed_at).total_seconds()))
        renewed = lease.renewed_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return report_error(
            LEASE_STALE,
            f"{lease.holder} last renewed the Lease of the {name} at {renewed}, {age} ago, but the Lease expires "
            f"after {lease.duration_seconds} s",
            f"kubectl -n {cluster.namespace} describe pods -l app.kubernetes.io/component={name}; then kubectl -n"
            f" {cluster.namespace} logs deploy/{account_name(name)}",
        )
    return report_ok(f"{lease.holder} holds the Lease of the {name}")


PROCESS_CHECKS = (
    Check(
        name="processes",
        asks="Are the processes ready?",
        judge=check_processes,
        may=(PROCESS_MISSING, SCALED_TO_ZERO, NOT_READY, NAMESPACE_MISMATCH),
    ),
    Check(
        name="rights",
        asks="Do the processes have the permissions that they need?",
        judge=check_permissions,
        may=(PERMISSION_MISSING,),
    ),
    Check(
        name="account-policies",
        asks="Do admission policies restrict the accounts of Trimtab's processes?",
        judge=check_account_policies,
        may=(ACCOUNT_POLICY_MISSING, ACCOUNT_POLICY_DIFFERENT),
    ),
    Check(
        name="leases",
        asks="Does one replica of each process lead, that is, hold the Lease?",
        judge=check_leases,
        may=(LEASE_FREE, LEASE_STALE),
    ),
)


OLDEST, TESTED = (1, 30), ((1, 34), (1, 36))
"""The oldest Kubernetes version that Trimtab supports, and the oldest and the newest version that the end-to-end tests
run against.

From the first version on, API servers have all fields of the webhook configurations (matchConditions are stable since
1.30)."""
MAX_SKEW_SECONDS, MAX_TOLERATED_SKEW_SECONDS = 5, 60
"""The clock differences, in seconds, from which a warning and an error are reported.

Differences below five seconds are not reported: a Date header has no fractions of a second and takes time to arrive."""


def check_version(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether Trimtab supports the API server's version and is tested against it."""
    version = cluster.version
    if isinstance(version, Unreadable):
        yield report_unknown(version)
    elif version < OLDEST:
        yield report_error(
            TOO_OLD,
            f"Kubernetes {_format_version(version)} is older than {_format_version(OLDEST)}, the oldest version "
            "that Trimtab supports",
        )
    elif not TESTED[0] <= version <= TESTED[1]:
        yield report_warning(
            UNTESTED,
            f"Trimtab's tests run against Kubernetes {_format_version(TESTED[0])} to "
            f"{_format_version(TESTED[1])}, but this is version {_format_version(version)}",
        )
    else:
        yield report_ok(f"Kubernetes {_format_version(version)}")


def check_clock(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the difference between this machine's clock and the API server's."""
    if isinstance(cluster.server_time, Unreadable):
        yield report_unknown(cluster.server_time)
        return
    # A Date header has whole seconds (RFC 9110, section 5.6.7): on average it is half a second behind.
    skew_seconds = (cluster.local_time - cluster.server_time).total_seconds() - 0.5
    sentence = (
        f"the clock of this machine is {abs(skew_seconds):.0f} s {'ahead of' if skew_seconds > 0 else 'behind'} "
        "the API server's clock"
    )
    if abs(skew_seconds) > MAX_TOLERATED_SKEW_SECONDS:
        yield report_error(CLOCK_SKEW, sentence)
    elif abs(skew_seconds) > MAX_SKEW_SECONDS:
        yield report_warning(CLOCK_SKEW, sentence)
    else:
        yield report_ok(f"the clock of this machine is within {MAX_SKEW_SECONDS} s of the API server's clock")


def check_namespace(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether Trimtab's namespace exists, and whether its annotation pauses Trimtab."""
    if isinstance(cluster.own_namespace, Unreadable):
        yield report_unknown(cluster.own_namespace)
    elif cluster.own_namespace is None:
        yield report_error(NAMESPACE_MISSING, f"the namespace {cluster.namespace} does not exist")
    elif cluster.own_namespace.paused:
        yield report_warning(
            ALL_PAUSED, cluster.own_namespace.paused, "kubectl annotate namespace NAMESPACE trimtab.dev/paused-"
        )
    elif evidence := _webhook_pause(cluster):
        yield report_warning(
            WEBHOOK_PAUSED, f"the webhook admits every pod unchanged, because it is paused: {evidence}"
        )
    else:
        yield report_ok("neither the installation nor the webhook is paused")


def _webhook_pause(cluster: ObservedCluster) -> str:
    """Returns what says that a setting pauses the webhook; an empty string if nothing does."""
    webhook = find_webhook(cluster.processes)
    if isinstance(webhook, DeploymentState) and webhook.settings.get(PAUSED_SETTING, "").lower() in ("true", "1"):
        return f"its Deployment sets {PAUSED_SETTING} to true"
    trial = cluster.pod_trial
    warnings = trial.warnings if isinstance(trial, DryRunResult) else ()
    if any(text.startswith(PROBE_WARNING) and text.endswith(", paused") for text in warnings):
        return f"its answer to a trial pod says so (see {PAUSED_SETTING} in the settings of its process)"
    return ""


def check_crd(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the API server serves PodPolicy in the version that Trimtab reads."""
    crd = cluster.crd
    if isinstance(crd, Unreadable):
        yield report_unknown(crd)
    elif crd is None or not crd.established:
        yield report_error(
            CRD_MISSING,
            "the API server does not serve PodPolicy documents"
            if crd is None
            else "the API server has not accepted the definition of PodPolicy yet",
        )
    elif VERSION not in crd.served:
        yield report_error(
            CRD_MISSING,
            f"the API server serves PodPolicy as {', '.join(sorted(crd.served)) or 'no version'}, not as {VERSION}",
        )
    else:
        yield report_ok(f"the API server serves PodPolicy {VERSION}")
    pools = cluster.pool_status_crd
    if isinstance(pools, Unreadable):
        yield report_unknown(pools)
    elif pools is None or VERSION not in pools.served:
        yield report_warning(
            POOL_STATUS_MISSING,
            "the API server does not serve PoolStatus documents, so `kubectl get pools` shows nothing",
        )
    orders = cluster.drain_order_crd
    if isinstance(orders, Unreadable):
        yield report_unknown(orders)
    elif orders is None or VERSION not in orders.served:
        yield report_warning(
            DRAIN_ORDER_MISSING,
            "the API server does not serve DrainOrder documents, so the compactor drains no nodes on order",
        )


def _format_version(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


INSTALLATION_CHECKS = (
    Check(
        name="kubernetes-version", asks="Is this Kubernetes supported?", judge=check_version, may=(TOO_OLD, UNTESTED)
    ),
    Check(
        name="clock",
        asks="Do the clocks of this machine and of the API server agree?",
        judge=check_clock,
        may=(CLOCK_SKEW,),
    ),
    Check(
        name="namespace",
        asks="Does Trimtab's namespace exist, and is nothing paused?",
        judge=check_namespace,
        may=(NAMESPACE_MISSING, ALL_PAUSED, WEBHOOK_PAUSED),
    ),
    Check(
        name="crd",
        asks="Does the API server serve PodPolicy, PoolStatus and DrainOrder documents?",
        judge=check_crd,
        may=(CRD_MISSING, POOL_STATUS_MISSING, DRAIN_ORDER_MISSING),
    ),
)


def check_policies(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the problems that the status of each PodPolicy reports, missing RuntimeClasses first."""
    policies = cluster.policies
    if isinstance(policies, Unreadable):
        yield report_unknown(policies)
        return
    watchdog = find_watchdog(cluster.processes)
    ordered = sorted(policies, key=lambda policy: not policy.is_class_missing)
    findings = [
        finding
        for policy in ordered
        for finding in _check_policy(policy, has_watchdog=isinstance(watchdog, DeploymentState))
    ]
    yield from findings
    if not findings:
        count = format_count(len(policies), "policy", "policies")
        yield report_ok(f"{count} in force" if policies else "there is no policy yet, so no pod is changed")


def _check_policy(policy: PolicyState, *, has_watchdog: bool) -> Iterator[DoctorFinding]:
    if policy.is_class_missing:
        yield report_error(
            REQUIRED_CLASS_MISSING,
            f"policy {policy.name} requires the RuntimeClass {policy.required_class}, which does not exist",
        )
    if policy.invalid_reason:
        yield report_error(POLICY_INVALID, f"{policy.name}: {policy.invalid_reason}")
    if policy.brake_reason:
        yield report_warning(POLICY_BRAKED, f"{policy.name}: {policy.brake_reason}")
    if policy.last_error and not policy.invalid_reason:
        yield report_warning(POLICY_FAILING, f"{policy.name}: {policy.last_error}")
    if has_watchdog and policy.observed_generation < policy.generation:
        sentence = (
            f"the status of policy {policy.name} describes generation {policy.observed_generation}, but the "
            f"policy has generation {policy.generation}"
            if policy.observed_generation
            else f"the watchdog has not written a status of policy {policy.name} yet"
        )
        yield report_warning(STATUS_BEHIND, sentence)


def check_pools(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the mistakes in the pools' ConfigMaps, and pools that need a permission to scale Deployments."""
    reading = cluster.pools
    if isinstance(reading, Unreadable):
        yield report_unknown(reading)
        return
    for mistake in reading.mistakes:
        yield report_error(POOL_INVALID, str(mistake))
    pools_to_scale = sorted(
        pool.name for pool in reading.pools if pool.enabled and (pool.single_replicas or pool.surge)
    )
    compactor = find_compactor(cluster.processes)
    if pools_to_scale and isinstance(compactor, DeploymentState) and not compactor.scale_namespaces:
        yield report_warning(
            POOL_WITHOUT_SCALING,
            f"the compactor may not give more replicas to any workload of pool {', '.join(pools_to_scale)}",
        )
    elif not reading.mistakes:
        active = sum(pool.enabled and not pool.dry_run for pool in reading.pools)
        yield report_ok(
            f"{len(reading.pools)} pool{'s' if len(reading.pools) != 1 else ''}, {active} in mode act"
            if reading.pools
            else "there is no pool yet, so no pod is moved"
        )


CHECKS = (
    Check(
        name="policies",
        asks="Are all policies in force, and does none of them harm pods?",
        judge=check_policies,
        may=(REQUIRED_CLASS_MISSING, POLICY_INVALID, POLICY_BRAKED, POLICY_FAILING, STATUS_BEHIND),
    ),
    Check(
        name="pools",
        asks="Are the settings of the pools valid?",
        judge=check_pools,
        may=(POOL_INVALID, POOL_WITHOUT_SCALING),
    ),
)
