"""What everything stands on: the server's version, the clock, our namespace, the CRD."""

from collections.abc import Iterator

from trimtab.cluster.reason import Code, Unreadable
from trimtab.command.doctor.finding import Check, Finding, error, ok, unknown, warn
from trimtab.command.doctor.seen import Seen
from trimtab.policy.schema import VERSION

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
    "clock-off",
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


def version(seen: Seen) -> Iterator[Finding]:
    found = seen.version
    if isinstance(found, Unreadable):
        yield unknown(found)
    elif found < OLDEST:
        yield error(TOO_OLD, f"Kubernetes {_told(found)} is older than {_told(OLDEST)}")
    elif not TESTED[0] <= found <= TESTED[1]:
        yield warn(UNTESTED, f"Kubernetes {_told(found)}: tests run against {_told(TESTED[0])} to {_told(TESTED[1])}")
    else:
        yield ok(f"Kubernetes {_told(found)}")


def clock(seen: Seen) -> Iterator[Finding]:
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


def home(seen: Seen) -> Iterator[Finding]:
    if isinstance(seen.home, Unreadable):
        yield unknown(seen.home)
    elif seen.home is None:
        yield error(NO_HOME, f"there is no namespace {seen.namespace}")
    elif seen.home.paused:
        yield warn(PAUSED, seen.home.paused, "kubectl annotate namespace NAMESPACE trimtab.dev/paused-")
    else:
        yield ok("changes are made: nothing is paused")


def crd(seen: Seen) -> Iterator[Finding]:
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


CHECKS = (
    Check(name="kubernetes-version", asks="Is this Kubernetes supported?", judge=version, may=(TOO_OLD, UNTESTED)),
    Check(name="clock", asks="Is the time the same here and there?", judge=clock, may=(OFF,)),
    Check(name="namespace", asks="Is our namespace there, and nothing paused?", judge=home, may=(NO_HOME, PAUSED)),
    Check(name="crd", asks="Are PodPolicy documents served?", judge=crd, may=(NO_CRD,)),
)
