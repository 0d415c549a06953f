"""How fare the documents that people write: policies and pools?"""

from collections.abc import Iterator

from trimtab.cluster.reason import Code, Unreadable
from trimtab.command.doctor.finding import Check, Finding, error, ok, unknown, warn
from trimtab.command.doctor.seen import Process, Seen, Standing

BROKEN = Code(
    "policy-not-loaded",
    "A PodPolicy makes no sense, so it is not in force, or an older version of it is.",
    "`trimtab policies check` on its file names every mistake.",
)
BRAKED = Code(
    "policy-braked",
    "The watchdog put a policy to `warn`, because pods it changed were hit more often than before.",
    "Read its condition HarmBrake, mend the policy, say `mode: apply` again; in the chart's values that takes a word "
    "more: docs/how-to/watch-running-pods.md.",
)
FAILING = Code(
    "policy-failing",
    "An action of a policy failed for a pod: that pod went through without it.",
    "`kubectl get podpolicy NAME -o jsonpath={.status.lastError}`",
)
UNSTATED = Code(
    "policy-status-behind",
    "The status of a policy is not about what its document says now: no watchdog has looked at it.",
    "It looks once a minute. If it stays: the checks `processes` and `leases`, then its log.",
)
BAD_POOL = Code(
    "pool-not-loaded",
    "The ConfigMap of a pool makes no sense: the pool is left alone.",
    "The sentence names field and expectation; docs/reference/pool.md has all of them.",
)


def policies(seen: Seen) -> Iterator[Finding]:
    found = seen.policies
    if isinstance(found, Unreadable):
        yield unknown(found)
        return
    watchdog = seen.processes["watchdog"]
    told = [finding for one in found for finding in _policy(one, watched=isinstance(watchdog, Process))]
    yield from told
    if not told:
        yield ok(f"{len(found)} policies in force" if found else "no policy yet: no pod is changed")


def _policy(found: Standing, *, watched: bool) -> Iterator[Finding]:
    if found.broken:
        yield error(BROKEN, f"{found.name}: {found.broken}")
    if found.braked:
        yield warn(BRAKED, f"{found.name}: {found.braked}")
    if found.last_error and not found.broken:
        yield warn(FAILING, f"{found.name}: {found.last_error}")
    if watched and found.observed < found.generation:
        seen = f"generation {found.observed}" if found.observed else "nothing"
        yield warn(UNSTATED, f"{found.name}: its status is about {seen}, it is generation {found.generation}")


def pools(seen: Seen) -> Iterator[Finding]:
    found = seen.pools
    if isinstance(found, Unreadable):
        yield unknown(found)
        return
    for mistake in found.mistakes:
        yield error(BAD_POOL, str(mistake))
    if not found.mistakes:
        acting = sum(pool.enabled and not pool.dry_run for pool in found.pools)
        yield ok(f"{len(found.pools)} pools, {acting} of them act" if found.pools else "no pool yet: nothing is moved")


CHECKS = (
    Check(
        name="policies", asks="Are policies in force, and harmless?", judge=policies,
        may=(BROKEN, BRAKED, FAILING, UNSTATED),
    ),
    Check(name="pools", asks="Do the pools' settings make sense?", judge=pools, may=(BAD_POOL,)),
)  # fmt: skip
