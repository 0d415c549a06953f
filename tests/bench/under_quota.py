"""`trimtab webhook` over files, in whose namespace `payments` a ResourceQuota's use is another one at each review.

    python -m tests.bench.under_quota webhook        (the settings of `trimtab webhook`, from its environment)

As while a ReplicaSet's pods are made: each of them changes the quota's `used`, and nothing else. What it takes to put
the quota into the facts is counted for the review, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle

from trimtab.cli import main as trimtab
from trimtab.cluster.api.core import QuotaSpec, QuotaStatus, ResourceQuota
from trimtab.cluster.api.meta import Metadata, change
from trimtab.runtime.settings import Settings
from webhook import main as main_module
from webhook.metrics import WebhookMetrics
from webhook.policy_state import WebhookPolicyState

NAMESPACE = "payments"
HARD = {"requests.cpu": "4000", "requests.memory": "8000Gi", "limits.memory": "8000Gi", "pods": "5000"}
STEPS = 1000
"""Uses that differ, before the first comes again."""


def main() -> None:
    files = main_module._from_files

    def source(settings: Settings, meters: WebhookMetrics) -> main_module.PolicyStateSource:
        actual_files = files(settings, meters)
        return replace(actual_files, world=_under_quota(actual_files.world()))

    main_module._from_files = source
    trimtab()


def _under_quota(policy_state: WebhookPolicyState) -> Callable[[], WebhookPolicyState]:
    """At each call the same world, but for the use of its quota."""
    worlds = cycle(_quotas())

    def world() -> WebhookPolicyState:
        quotas = {**policy_state.facts.quotas, NAMESPACE: (next(worlds),)}
        return replace(policy_state, facts=replace(policy_state.facts, quotas=quotas))

    return world


def _quotas() -> Iterator[ResourceQuota]:
    metadata = Metadata(name="counted", namespace=NAMESPACE)
    quota = ResourceQuota(metadata=metadata, spec=QuotaSpec(hard=HARD))
    for number in range(1, STEPS + 1):
        used = {
            "requests.cpu": f"{100 * number}m",
            "requests.memory": f"{128 * number}Mi",
            "limits.memory": f"{256 * number}Mi",
            "pods": str(number),
        }
        yield change(quota, status=QuotaStatus(hard=HARD, used=used))


if __name__ == "__main__":
    main()
