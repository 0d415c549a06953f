"""Are the processes there, may they do their work, and does one of each lead?

What everything stands on: the server's version, the clock, our namespace, the CRD.

How fare the documents that people write: policies and pools?
"""

from collections.abc import Iterator

from trimtab.cli.doctor.finding import Check, DoctorFinding, error, ok, unknown, warn
from trimtab.cli.doctor.observed import AccountPolicy, DeploymentState, LeaseState, ObservedCluster, PolicyState, Read
from trimtab.cli.install.deployments import WORKERS
from trimtab.cli.install.names import PROCESSES, account
from trimtab.cluster.reason import Code, Unreadable
from trimtab.policy.schema import VERSION

MISSING = Code(
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
MIXED = Code(
    "namespace-mismatch",
    "A process was told another namespace than the one it runs in: there it looks for its Secret, its pools and its "
    "Lease, and may not read them.",
    "With kustomize, `namespace` needs the base's `elsewhere.yaml` beside it: docs/how-to/install-in-a-cluster.md.",
)
NO_RIGHT = Code(
    "permission-missing",
    "The account of a process lacks a right that its work needs.",
    "`trimtab install --apply`, with the options it was installed with, grants exactly what is needed; with Helm, "
    "`helm upgrade`.",
)
UNHELD = Code(
    "account-policy-missing",
    "A ValidatingAdmissionPolicy that holds an account of Trimtab to its work is not in force: whoever steals the "
    "account's token may do all that RBAC lets it.",
    "`trimtab install --apply`, with the options it was installed with, brings it; with Helm, `helm upgrade`.",
)
HELD_OTHERWISE = Code(
    "account-policy-differs",
    "A ValidatingAdmissionPolicy that holds an account of Trimtab does not say what this version would say.",
    "Where nobody changed it on purpose: `trimtab install --apply`, with the options it was installed with; with Helm, "
    "`helm upgrade`.",
)
NOBODY = Code(
    "lease-not-held",
    "No replica of a process holds its Lease: nobody does its work.",
    "See the replicas' logs: a Lease is taken within half a minute of the start.",
)
STALE = Code(
    "lease-stale",
    "The Lease of a process was not renewed in time: its leader is gone, or cannot reach the API server.",
    "See the log of the replica that holds it; its twin takes over when the Lease has run out.",
)


def there(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    for name in PROCESSES:
        yield _there(name, seen.processes[name], seen.namespace)


def _there(name: str, found: Read[DeploymentState | None], namespace: str) -> DoctorFinding:
    if isinstance(found, Unreadable):
        return unknown(found)
    if found is None:
        say = error if name == "webhook" else warn
        return say(MISSING, f"there is no Deployment {namespace}/{account(name)}")
    told = f"{name}: {found.ready} of {found.wanted} replicas ready"
    look = f"kubectl -n {namespace} describe pods -l app.kubernetes.io/component={name}"
    home = found.settings.get("TRIMTAB_NAMESPACE", namespace)
    if home != namespace:
        return error(MIXED, f"{name} runs in {namespace} and was told {home}")
    if found.ready == 0:
        return error(NOT_READY, told, look)
    return warn(NOT_READY, told, look) if found.ready < found.wanted else ok(told)


def rights(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    """Of every process that is there."""
    for name, lacks in seen.rights.items():
        if isinstance(lacks, Unreadable):
            yield unknown(lacks)
        elif lacks:
            rest = f" and {len(lacks) - 3} more" if len(lacks) > 3 else ""
            yield error(NO_RIGHT, f"{account(name)} may not {', '.join(lacks[:3])}{rest}")
        else:
            yield ok(f"{account(name)} may do what it does")


def held(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    """Of every process that is there: is its account held to its work?"""
    found = seen.account_policies
    if isinstance(found, Unreadable):
        yield unknown(found)
    elif found is None:
        yield warn(UNHELD, "this API server knows no such kind: accounts may do all that RBAC lets them")
    else:
        ours = [policy for policy in found if seen.processes[policy.process] is not None]
        told = [finding for policy in ours for finding in _held(policy)]
        yield from told or [ok(f"{len(ours)} policies hold our accounts to their work")]


def _held(policy: AccountPolicy) -> Iterator[DoctorFinding]:
    what = f"the policy {policy.name}, which holds the account {account(policy.process)},"
    if not policy.is_there:
        yield error(UNHELD, f"{what} is not there")
    elif not policy.is_bound:
        yield error(UNHELD, f"{what} has no binding that denies: it is not enforced")
    elif not policy.is_ours:
        yield warn(HELD_OTHERWISE, f"{what} is not as this version of Trimtab installs it")


def leases(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    for name in WORKERS:
        process, lease = seen.processes[name], seen.leases[name]
        if isinstance(process, Unreadable):
            yield unknown(process)
        elif isinstance(lease, Unreadable):
            yield unknown(lease)
        elif process is not None and process.wanted:
            yield _led(name, lease, seen)
        else:
            yield ok(f"{name}: not installed")


def _led(name: str, lease: LeaseState | None, seen: ObservedCluster) -> DoctorFinding:
    if lease is None or not lease.holder:
        return error(NOBODY, f"nobody leads the {name}", f"kubectl -n {seen.namespace} logs deploy/{account(name)}")
    if lease.renewed is None:
        return error(STALE, f"{name}: {lease.holder} leads and never renewed its Lease")
    # By the server's clock: the replicas', not ours, is what it was written by.
    now = seen.here if isinstance(seen.there, Unreadable) else seen.there
    age = (now - lease.renewed).total_seconds()
    if age > lease.lasts:
        return error(STALE, f"{name}: {lease.holder} last renewed its Lease {age:.0f} s ago, it lasts {lease.lasts} s")
    return ok(f"{name}: {lease.holder} leads")


PROCESS_CHECKS = (
    Check(name="processes", asks="Are the processes ready?", judge=there, may=(MISSING, NOT_READY, MIXED)),
    Check(name="rights", asks="May the processes do what they do?", judge=rights, may=(NO_RIGHT,)),
    Check(
        name="account-policies", asks="Do policies hold the accounts to their work?", judge=held,
        may=(UNHELD, HELD_OTHERWISE),
    ),
    Check(name="leases", asks="Does one of each lead?", judge=leases, may=(NOBODY, STALE)),
)  # fmt: skip


OLDEST, TESTED = (1, 30), ((1, 34), (1, 36))
"""The oldest Kubernetes whose API servers know everything our webhook configurations say (matchConditions are stable
since 1.30); the ends of what every test of ours runs against."""
CLOCK_OFF, CLOCK_WRONG = 5, 60
"""Seconds. A Date header is cut to the second, and the answer is on its way: below five nothing is wrong."""

TOO_OLD = Code(
    "kubernetes-too-old",
    "The API server is older than what the webhook configurations need.",
    "Upgrade Kubernetes to 1.30 or newer before you install Trimtab.",
)
UNTESTED = Code(
    "kubernetes-untested",
    "Trimtab is not tested against this minor of Kubernetes.",
    "Nothing is known to be wrong. Rehearse first, and read the changelog for a newer Trimtab.",
)
OFF = Code(
    "clock-skew",
    "The clock where the command runs and the API server's differ by more than a few seconds.",
    "Synchronize both by NTP. Certificates, Leases and the autoscaler's reports are judged by the time.",
)
NO_HOME = Code(
    "namespace-missing",
    "Trimtab's own namespace is not there.",
    "`trimtab install --apply --image IMAGE --namespace NAMESPACE` installs it; where it has another, say so to "
    "`doctor`, too.",
)
PAUSED = Code(
    "all-paused",
    "The switch `trimtab.dev/paused` is on: no pod is changed, no node is emptied.",
    "If that is over: `kubectl annotate namespace NAMESPACE trimtab.dev/paused-`.",
)
NO_CRD = Code(
    "crd-missing",
    "The API server does not serve PodPolicy documents, or not in the version that Trimtab reads.",
    "`kubectl apply --server-side --force-conflicts -f deploy/crd.yaml`; Helm installs it once and never upgrades it.",
)


def version(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    found = seen.version
    if isinstance(found, Unreadable):
        yield unknown(found)
    elif found < OLDEST:
        yield error(TOO_OLD, f"Kubernetes {_told(found)} is older than {_told(OLDEST)}")
    elif not TESTED[0] <= found <= TESTED[1]:
        yield warn(UNTESTED, f"Kubernetes {_told(found)}: tests run against {_told(TESTED[0])} to {_told(TESTED[1])}")
    else:
        yield ok(f"Kubernetes {_told(found)}")


def clock(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    if isinstance(seen.there, Unreadable):
        yield unknown(seen.there)
        return
    # The header was cut to the second: on the average half a second is missing.
    off = (seen.here - seen.there).total_seconds() - 0.5
    told = f"this clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} the API server's"
    if abs(off) > CLOCK_WRONG:
        yield error(OFF, told)
    elif abs(off) > CLOCK_OFF:
        yield warn(OFF, told)
    else:
        yield ok(f"within {CLOCK_OFF} s of the API server's")


def home(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    if isinstance(seen.home, Unreadable):
        yield unknown(seen.home)
    elif seen.home is None:
        yield error(NO_HOME, f"there is no namespace {seen.namespace}")
    elif seen.home.paused:
        yield warn(PAUSED, seen.home.paused, "kubectl annotate namespace NAMESPACE trimtab.dev/paused-")
    else:
        yield ok("changes are made: nothing is paused")


def crd(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    found = seen.crd
    if isinstance(found, Unreadable):
        yield unknown(found)
    elif found is None or not found.established:
        yield error(NO_CRD, "PodPolicy is not served" if found is None else "PodPolicy is not established")
    elif VERSION not in found.served:
        yield error(NO_CRD, f"PodPolicy is served as {', '.join(sorted(found.served)) or 'nothing'}, not {VERSION}")
    else:
        yield ok(f"PodPolicy {VERSION} is served")


def _told(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


INSTALLATION_CHECKS = (
    Check(name="kubernetes-version", asks="Is this Kubernetes supported?", judge=version, may=(TOO_OLD, UNTESTED)),
    Check(name="clock", asks="Is the time the same here and there?", judge=clock, may=(OFF,)),
    Check(name="namespace", asks="Is our namespace there, and nothing paused?", judge=home, may=(NO_HOME, PAUSED)),
    Check(name="crd", asks="Are PodPolicy documents served?", judge=crd, may=(NO_CRD,)),
)


BROKEN = Code(
    "policy-not-loaded",
    "A PodPolicy makes no sense, so it is not in force, or an older version of it is.",
    "`trimtab policies check` on its file names every mistake.",
)
BRAKED = Code(
    "policy-set-to-warn",
    "The watchdog put a policy to `warn`, because pods it changed were hit more often than before.",
    "Read its condition HarmBrake, mend the policy, say `mode: apply` again; in the chart's values that takes a word "
    "more: docs/how-to/watch-running-pods.md.",
)
CLASS_MISSING = Code(
    "required-class-missing",
    "A policy requires a RuntimeClass that the cluster does not have: every pod it means is denied.",
    "Create the RuntimeClass, mend its name in the policy, or say `mode: warn` in the policy until it is there.",
)
FAILING = Code(
    "policy-failing",
    "An action of a policy failed for a pod: that pod went through without it.",
    "`kubectl get podpolicy NAME -o jsonpath={.status.lastError}`",
)
UNSTATED = Code(
    "policy-status-outdated",
    "The status of a policy is not about what its document says now: no watchdog has looked at it.",
    "It looks once a minute. If it stays: the checks `processes` and `leases`, then its log.",
)
BAD_POOL = Code(
    "pool-not-loaded",
    "The ConfigMap of a pool makes no sense: the pool is left alone.",
    "The sentence names field and expectation; docs/reference/pool.md has all of them.",
)
NOT_SCALED = Code(
    "pool-without-right-to-scale",
    "A pool lets pods move that are the only replica of their workload, and the compactor may scale no namespace: such "
    "pods stay, and their nodes with them.",
    "`trimtab install --apply --scale-namespace NAME` grants it for one namespace, in the chart "
    "`compactor.scaleNamespaces`; or take `protect.singleReplicas: false` out of the pool.",
)


def policies(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    found = seen.policies
    if isinstance(found, Unreadable):
        yield unknown(found)
        return
    watchdog = seen.processes["watchdog"]
    first = sorted(found, key=lambda one: not one.is_class_missing)
    told = [finding for one in first for finding in _policy(one, watched=isinstance(watchdog, DeploymentState))]
    yield from told
    if not told:
        yield ok(f"{len(found)} policies in force" if found else "no policy yet: no pod is changed")


def _policy(found: PolicyState, *, watched: bool) -> Iterator[DoctorFinding]:
    if found.is_class_missing:
        yield error(CLASS_MISSING, f"{found.name}: RuntimeClass {found.required_class} does not exist")
    if found.broken:
        yield error(BROKEN, f"{found.name}: {found.broken}")
    if found.braked:
        yield warn(BRAKED, f"{found.name}: {found.braked}")
    if found.last_error and not found.broken:
        yield warn(FAILING, f"{found.name}: {found.last_error}")
    if watched and found.observed < found.generation:
        seen = f"generation {found.observed}" if found.observed else "nothing"
        yield warn(UNSTATED, f"{found.name}: its status is about {seen}, it is generation {found.generation}")


def pools(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    found = seen.pools
    if isinstance(found, Unreadable):
        yield unknown(found)
        return
    for mistake in found.mistakes:
        yield error(BAD_POOL, str(mistake))
    asking = sorted(pool.name for pool in found.pools if pool.enabled and pool.single_replicas)
    compactor = seen.processes["compactor"]
    if asking and isinstance(compactor, DeploymentState) and not compactor.scale_namespaces:
        yield warn(NOT_SCALED, f"pool {', '.join(asking)}: the compactor may give no workload a second replica")
    elif not found.mistakes:
        acting = sum(pool.enabled and not pool.dry_run for pool in found.pools)
        yield ok(f"{len(found.pools)} pools, {acting} of them act" if found.pools else "no pool yet: nothing is moved")


CHECKS = (
    Check(
        name="policies", asks="Are policies in force, and harmless?", judge=policies,
        may=(CLASS_MISSING, BROKEN, BRAKED, FAILING, UNSTATED),
    ),
    Check(name="pools", asks="Do the pools' settings make sense?", judge=pools, may=(BAD_POOL, NOT_SCALED)),
)  # fmt: skip
