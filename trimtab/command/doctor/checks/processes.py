"""Are the processes there, may they do their work, and does one of each lead?"""

from collections.abc import Iterator

from trimtab.cluster.reason import Code, Unreadable
from trimtab.command.doctor.finding import Check, Finding, error, ok, unknown, warn
from trimtab.command.doctor.seen import Lease, Process, Read, Seen
from trimtab.command.install.names import PROCESSES, account
from trimtab.command.install.working import WORKERS

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
    "namespace-mixed",
    "A process was told another namespace than the one it runs in: there it looks for its Secret, its pools and its "
    "Lease, and may not read them.",
    "With kustomize, `namespace` needs the base's `elsewhere.yaml` beside it: docs/how-to/install-in-a-cluster.md.",
)
NO_RIGHT = Code(
    "right-missing",
    "The account of a process lacks a right that its work needs.",
    "`trimtab install --apply`, with the options it was installed with, grants exactly what is needed; with Helm, "
    "`helm upgrade`.",
)
NOBODY = Code(
    "lease-free",
    "No replica of a process holds its Lease: nobody does its work.",
    "See the replicas' logs: a Lease is taken within half a minute of the start.",
)
STALE = Code(
    "lease-stale",
    "The Lease of a process was not renewed in time: its leader is gone, or cannot reach the API server.",
    "See the log of the replica that holds it; its twin takes over when the Lease has run out.",
)


def there(seen: Seen) -> Iterator[Finding]:
    for name in PROCESSES:
        yield _there(name, seen.processes[name], seen.namespace)


def _there(name: str, found: Read[Process | None], namespace: str) -> Finding:
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


def rights(seen: Seen) -> Iterator[Finding]:
    """Of every process that is there."""
    for name, lacks in seen.rights.items():
        if isinstance(lacks, Unreadable):
            yield unknown(lacks)
        elif lacks:
            rest = f" and {len(lacks) - 3} more" if len(lacks) > 3 else ""
            yield error(NO_RIGHT, f"{account(name)} may not {', '.join(lacks[:3])}{rest}")
        else:
            yield ok(f"{account(name)} may do what it does")


def leases(seen: Seen) -> Iterator[Finding]:
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


def _led(name: str, lease: Lease | None, seen: Seen) -> Finding:
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


CHECKS = (
    Check(name="processes", asks="Are the processes ready?", judge=there, may=(MISSING, NOT_READY, MIXED)),
    Check(name="rights", asks="May the processes do what they do?", judge=rights, may=(NO_RIGHT,)),
    Check(name="leases", asks="Does one of each lead?", judge=leases, may=(NOBODY, STALE)),
)
