"""Checks of the installation itself: processes, permissions, Leases, version, clock, namespace, CRD, policies and
pools."""

from collections.abc import Iterator

from trimtab.cli.doctor.finding import Check, DoctorFinding, report_error, report_ok, report_unknown, report_warning
from trimtab.cli.doctor.observed import AccountPolicy, DeploymentState, LeaseState, ObservedCluster, PolicyState, Read
from trimtab.cli.install.deployments import WORKERS
from trimtab.cli.install.names import PROCESSES, account_name
from trimtab.cluster.reason import Code, Unreadable
from trimtab.policy.schema import VERSION

PROCESS_MISSING = Code(
    "process-missing",
    "The Deployment of a process is not there. Without the webhook no pod is changed; the others may be left out on "
    "purpose.",
    "`trimtab install --apply` with the options it was installed with; with Helm, the value `PROCESS.enabled: true`.",
)
NOT_READY = Code(
    "process-not-ready",
    "Replicas of a process are not ready.",
    "`kubectl -n NAMESPACE describe pods -l app.kubernetes.io/component=PROCESS`, then their logs.",
)
NAMESPACE_MISMATCH = Code(
    "namespace-mismatch",
    "A process is configured with another namespace than the one that it runs in: it looks there for its Secret, its "
    "pools and its Lease, and may not read them.",
    "With kustomize, `namespace` needs the base's `elsewhere.yaml`, too: docs/how-to/install-in-a-cluster.md.",
)
PERMISSION_MISSING = Code(
    "permission-missing",
    "The account of a process lacks a right that its work needs.",
    "`trimtab install --apply`, with the options it was installed with, grants exactly what is needed; with Helm, "
    "`helm upgrade`.",
)
ACCOUNT_POLICY_MISSING = Code(
    "account-policy-missing",
    "A ValidatingAdmissionPolicy that restricts an account of Trimtab to its work is not in force: a stolen token of "
    "the account allows everything that RBAC allows.",
    "`trimtab install --apply`, with the options it was installed with, creates it; with Helm, `helm upgrade`.",
)
ACCOUNT_POLICY_DIFFERENT = Code(
    "account-policy-differs",
    "A ValidatingAdmissionPolicy that restricts an account of Trimtab differs from the one that this version installs.",
    "Unless it was changed on purpose: `trimtab install --apply`, with the options it was installed with; with Helm, "
    "`helm upgrade`.",
)
LEASE_FREE = Code(
    "lease-not-held",
    "No replica of a process holds its Lease, so the process does no work.",
    "See the replicas' logs: a replica acquires the Lease within half a minute of its start.",
)
LEASE_STALE = Code(
    "lease-stale",
    "The Lease of a process was not renewed in time: its leader has stopped, or cannot reach the API server.",
    "See the log of the replica that holds it; the other replica takes over when the Lease expires.",
)


def check_processes(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield whether the Deployment of each process exists, runs in the right namespace, and has ready replicas."""
    for name in PROCESSES:
        yield _check_process(name, cluster.processes[name], cluster.namespace)


def _check_process(name: str, state: Read[DeploymentState | None], namespace: str) -> DoctorFinding:
    if isinstance(state, Unreadable):
        return report_unknown(state)
    if state is None:
        report = report_error if name == "webhook" else report_warning
        return report(PROCESS_MISSING, f"there is no Deployment {namespace}/{account_name(name)}")
    replicas = f"{name}: {state.ready_replicas} of {state.replicas} replicas ready"
    describe_command = f"kubectl -n {namespace} describe pods -l app.kubernetes.io/component={name}"
    configured_namespace = state.settings.get("TRIMTAB_NAMESPACE", namespace)
    if configured_namespace != namespace:
        return report_error(
            NAMESPACE_MISMATCH, f"{name} runs in {namespace} and is configured with {configured_namespace}"
        )
    if state.ready_replicas == 0:
        return report_error(NOT_READY, replicas, describe_command)
    return (
        report_warning(NOT_READY, replicas, describe_command)
        if state.ready_replicas < state.replicas
        else report_ok(replicas)
    )


def check_permissions(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield the permissions that the account of each installed process lacks."""
    for name, missing in cluster.missing_permissions.items():
        if isinstance(missing, Unreadable):
            yield report_unknown(missing)
        elif missing:
            rest = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            yield report_error(PERMISSION_MISSING, f"{account_name(name)} may not {', '.join(missing[:3])}{rest}")
        else:
            yield report_ok(f"{account_name(name)} has all permissions that it needs")


def check_account_policies(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield whether an admission policy restricts the account of each installed process to its work."""
    policies = cluster.account_policies
    if isinstance(policies, Unreadable):
        yield report_unknown(policies)
    elif policies is None:
        yield report_warning(
            ACCOUNT_POLICY_MISSING, "this API server has no such kind: accounts may do everything that RBAC allows"
        )
    else:
        expected = [policy for policy in policies if cluster.processes[policy.process] is not None]
        findings = [finding for policy in expected for finding in _check_account_policy(policy)]
        yield from findings or [report_ok(f"{len(expected)} policies restrict Trimtab's accounts to their work")]


def _check_account_policy(policy: AccountPolicy) -> Iterator[DoctorFinding]:
    subject = f"the policy {policy.name}, which restricts the account {account_name(policy.process)},"
    if not policy.is_there:
        yield report_error(ACCOUNT_POLICY_MISSING, f"{subject} does not exist")
    elif not policy.is_bound:
        yield report_error(ACCOUNT_POLICY_MISSING, f"{subject} has no binding that denies: it is not enforced")
    elif not policy.is_ours:
        yield report_warning(
            ACCOUNT_POLICY_DIFFERENT, f"{subject} differs from the one that this version of Trimtab installs"
        )


def check_leases(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield whether one replica of each installed worker holds a Lease that it renews."""
    for name in WORKERS:
        process, lease = cluster.processes[name], cluster.leases[name]
        if isinstance(process, Unreadable):
            yield report_unknown(process)
        elif isinstance(lease, Unreadable):
            yield report_unknown(lease)
        elif process is not None and process.replicas:
            yield _check_leader(name, lease, cluster)
        else:
            yield report_ok(f"{name}: not installed")


def _check_leader(name: str, lease: LeaseState | None, cluster: ObservedCluster) -> DoctorFinding:
    if lease is None or not lease.holder:
        return report_error(
            LEASE_FREE,
            f"no replica of the {name} leads",
            f"kubectl -n {cluster.namespace} logs deploy/{account_name(name)}",
        )
    if lease.renewed_at is None:
        return report_error(LEASE_STALE, f"{name}: {lease.holder} leads and never renewed its Lease")
    # renewTime is from the replica's clock, which is closer to the API server's than to the one of this command.
    now = cluster.local_time if isinstance(cluster.server_time, Unreadable) else cluster.server_time
    age = (now - lease.renewed_at).total_seconds()
    if age > lease.duration_seconds:
        return report_error(
            LEASE_STALE,
            f"{name}: {lease.holder} last renewed its Lease {age:.0f} s ago, it lasts {lease.duration_seconds} s",
        )
    return report_ok(f"{name}: {lease.holder} leads")


PROCESS_CHECKS = (
    Check(
        name="processes",
        asks="Are the processes ready?",
        judge=check_processes,
        may=(PROCESS_MISSING, NOT_READY, NAMESPACE_MISMATCH),
    ),
    Check(
        name="rights",
        asks="Do the processes have the permissions that they need?",
        judge=check_permissions,
        may=(PERMISSION_MISSING,),
    ),
    Check(
        name="account-policies",
        asks="Do admission policies restrict the accounts?",
        judge=check_account_policies,
        may=(ACCOUNT_POLICY_MISSING, ACCOUNT_POLICY_DIFFERENT),
    ),
    Check(
        name="leases", asks="Does one replica of each process lead?", judge=check_leases, may=(LEASE_FREE, LEASE_STALE)
    ),
)


OLDEST, TESTED = (1, 30), ((1, 34), (1, 36))
"""The oldest Kubernetes whose API server has all fields of the webhook configurations (matchConditions are stable since
1.30), and the oldest and newest version that the end-to-end tests run against."""
MAX_SKEW_SECONDS, MAX_TOLERATED_SKEW_SECONDS = 5, 60
"""A Date header has no fractions of a second and takes time to arrive: a skew below five seconds is not reported."""

TOO_OLD = Code(
    "kubernetes-too-old",
    "The API server is older than what the webhook configurations need.",
    "Upgrade Kubernetes to 1.30 or newer before you install Trimtab.",
)
UNTESTED = Code(
    "kubernetes-untested",
    "Trimtab is not tested against this minor version of Kubernetes.",
    "No problem is known. Use a dry run first, and look for a newer Trimtab in the changelog.",
)
CLOCK_SKEW = Code(
    "clock-skew",
    "The clock of the machine that runs the command and the API server's differ by more than a few seconds.",
    "Synchronize both by NTP. Whether certificates, Leases and the autoscaler's reports are valid depends on the time.",
)
NAMESPACE_MISSING = Code(
    "namespace-missing",
    "Trimtab's own namespace does not exist.",
    "`trimtab install --apply --image IMAGE --namespace NAMESPACE` creates it; if Trimtab has another namespace, give "
    "it to `doctor`, too.",
)
ALL_PAUSED = Code(
    "all-paused",
    "The switch `trimtab.dev/paused` is on: no pod is changed, no node is drained.",
    "To switch it off: `kubectl annotate namespace NAMESPACE trimtab.dev/paused-`.",
)
CRD_MISSING = Code(
    "crd-missing",
    "The API server does not serve PodPolicy documents, or not in the version that Trimtab reads.",
    "`kubectl apply --server-side --force-conflicts -f deploy/crd.yaml`; Helm installs it once and never upgrades it.",
)


def check_version(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield whether Trimtab supports the API server's version and is tested against it."""
    version = cluster.version
    if isinstance(version, Unreadable):
        yield report_unknown(version)
    elif version < OLDEST:
        yield report_error(TOO_OLD, f"Kubernetes {_format_version(version)} is older than {_format_version(OLDEST)}")
    elif not TESTED[0] <= version <= TESTED[1]:
        yield report_warning(
            UNTESTED,
            f"Kubernetes {_format_version(version)}: tests run against {_format_version(TESTED[0])} to"
            f" {_format_version(TESTED[1])}",
        )
    else:
        yield report_ok(f"Kubernetes {_format_version(version)}")


def check_clock(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield the difference between this machine's clock and the API server's."""
    if isinstance(cluster.server_time, Unreadable):
        yield report_unknown(cluster.server_time)
        return
    # A Date header has whole seconds (RFC 9110, section 5.6.7): on average it is half a second behind.
    skew_seconds = (cluster.local_time - cluster.server_time).total_seconds() - 0.5
    sentence = (
        f"this clock is {abs(skew_seconds):.0f} s {'ahead of' if skew_seconds > 0 else 'behind'} the API server's"
    )
    if abs(skew_seconds) > MAX_TOLERATED_SKEW_SECONDS:
        yield report_error(CLOCK_SKEW, sentence)
    elif abs(skew_seconds) > MAX_SKEW_SECONDS:
        yield report_warning(CLOCK_SKEW, sentence)
    else:
        yield report_ok(f"within {MAX_SKEW_SECONDS} s of the API server's")


def check_namespace(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield whether Trimtab's namespace exists, and whether its annotation pauses Trimtab."""
    if isinstance(cluster.own_namespace, Unreadable):
        yield report_unknown(cluster.own_namespace)
    elif cluster.own_namespace is None:
        yield report_error(NAMESPACE_MISSING, f"there is no namespace {cluster.namespace}")
    elif cluster.own_namespace.paused:
        yield report_warning(
            ALL_PAUSED, cluster.own_namespace.paused, "kubectl annotate namespace NAMESPACE trimtab.dev/paused-"
        )
    else:
        yield report_ok("nothing is paused")


def check_crd(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield whether the API server serves PodPolicy in the version that Trimtab reads."""
    crd = cluster.crd
    if isinstance(crd, Unreadable):
        yield report_unknown(crd)
    elif crd is None or not crd.established:
        yield report_error(CRD_MISSING, "PodPolicy is not served" if crd is None else "PodPolicy is not established")
    elif VERSION not in crd.served:
        yield report_error(
            CRD_MISSING, f"PodPolicy is served as {', '.join(sorted(crd.served)) or 'nothing'}, not {VERSION}"
        )
    else:
        yield report_ok(f"PodPolicy {VERSION} is served")


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
        may=(NAMESPACE_MISSING, ALL_PAUSED),
    ),
    Check(name="crd", asks="Are PodPolicy documents served?", judge=check_crd, may=(CRD_MISSING,)),
)


POLICY_INVALID = Code(
    "policy-not-loaded",
    "A PodPolicy is invalid, so it is not in force, or an older version of it is.",
    "`trimtab policies check FILE` names every mistake.",
)
POLICY_BRAKED = Code(
    "policy-set-to-warn",
    "The watchdog set a policy to `warn`, because pods that it changed failed more often than before.",
    "Read its condition HarmBrake, fix the policy, then set `mode: apply` again; with the chart's values that"
    " takes one "
    "more step: docs/how-to/watch-running-pods.md.",
)
REQUIRED_CLASS_MISSING = Code(
    "required-class-missing",
    "A policy requires a RuntimeClass that the cluster does not have: every pod that it matches is denied.",
    "Create the RuntimeClass, correct its name in the policy, or set `mode: warn` in the policy until it exists.",
)
POLICY_FAILING = Code(
    "policy-failing",
    "An action of a policy failed for a pod: that pod was admitted without it.",
    "`kubectl get podpolicy NAME -o jsonpath={.status.lastError}`",
)
STATUS_BEHIND = Code(
    "policy-status-outdated",
    "The status of a policy is not about its present generation: no watchdog has processed it.",
    "The watchdog does so once a minute. If it does not: the checks `processes` and `leases`, then its log.",
)
POOL_INVALID = Code(
    "pool-not-loaded",
    "The ConfigMap of a pool is invalid: the compactor ignores the pool.",
    "The sentence names the field and what it expects; docs/reference/pool.md has all fields.",
)
POOL_WITHOUT_SCALING = Code(
    "pool-without-right-to-scale",
    "A pool allows moving pods that are the only replica of their workload, and the compactor may scale"
    " workloads in no "
    "namespace: such pods stay, and so do their nodes.",
    "`trimtab install --apply --scale-namespace NAME` grants it for one namespace, in the chart "
    "`compactor.scaleNamespaces`; or remove `protect.singleReplicas: false` from the pool.",
)


def check_policies(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield the problems that the status of each PodPolicy reports, missing RuntimeClasses first."""
    policies = cluster.policies
    if isinstance(policies, Unreadable):
        yield report_unknown(policies)
        return
    watchdog = cluster.processes["watchdog"]
    ordered = sorted(policies, key=lambda policy: not policy.is_class_missing)
    findings = [
        finding
        for policy in ordered
        for finding in _check_policy(policy, has_watchdog=isinstance(watchdog, DeploymentState))
    ]
    yield from findings
    if not findings:
        yield report_ok(
            f"{len(policies)} policies in force" if policies else "there is no policy yet: no pod is changed"
        )


def _check_policy(policy: PolicyState, *, has_watchdog: bool) -> Iterator[DoctorFinding]:
    if policy.is_class_missing:
        yield report_error(
            REQUIRED_CLASS_MISSING, f"{policy.name}: RuntimeClass {policy.required_class} does not exist"
        )
    if policy.invalid_reason:
        yield report_error(POLICY_INVALID, f"{policy.name}: {policy.invalid_reason}")
    if policy.brake_reason:
        yield report_warning(POLICY_BRAKED, f"{policy.name}: {policy.brake_reason}")
    if policy.last_error and not policy.invalid_reason:
        yield report_warning(POLICY_FAILING, f"{policy.name}: {policy.last_error}")
    if has_watchdog and policy.observed_generation < policy.generation:
        status_of = f"generation {policy.observed_generation}" if policy.observed_generation else "nothing"
        yield report_warning(
            STATUS_BEHIND,
            f"{policy.name}: its status is about {status_of}, the policy is generation {policy.generation}",
        )


def check_pools(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yield the mistakes in the pools' ConfigMaps, and pools that need a permission to scale Deployments."""
    reading = cluster.pools
    if isinstance(reading, Unreadable):
        yield report_unknown(reading)
        return
    for mistake in reading.mistakes:
        yield report_error(POOL_INVALID, str(mistake))
    pools_to_scale = sorted(pool.name for pool in reading.pools if pool.enabled and pool.single_replicas)
    compactor = cluster.processes["compactor"]
    if pools_to_scale and isinstance(compactor, DeploymentState) and not compactor.scale_namespaces:
        yield report_warning(
            POOL_WITHOUT_SCALING,
            f"pool {', '.join(pools_to_scale)}: the compactor may not scale any workload to a second replica",
        )
    elif not reading.mistakes:
        active = sum(pool.enabled and not pool.dry_run for pool in reading.pools)
        yield report_ok(
            f"{len(reading.pools)} pools, {active} of them act"
            if reading.pools
            else "there is no pool yet: no pod is moved"
        )


CHECKS = (
    Check(
        name="policies",
        asks="Are all policies in force and harmless?",
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
