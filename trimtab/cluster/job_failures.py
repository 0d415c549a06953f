"""Whether a Job fails as a whole when one of its pods is evicted."""

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.workload import Workload

DEFAULT_BACKOFF_LIMIT = 6
DISRUPTION_TARGET = "DisruptionTarget"
"""The condition that an eviction writes on its pod."""


def fails_by_eviction(job: Workload) -> bool:
    """Returns whether the Job fails when one more of its pods is evicted, as its controller decides
    (pkg/controller/job, 1.36: matchPodFailurePolicy, syncJob). False if that is not certain.

    - The first rule of `podFailurePolicy` for the condition DisruptionTarget counts: FailJob makes the Job fail, Ignore
      and FailIndex do not, and Count is as no rule. What an earlier rule for exit codes does is not known: it depends
      on how the containers end.
    - Without such a rule, the Job fails if it has had as many failures as `backoffLimit` permits.
    - A Job that counts failures for each index (`backoffLimitPerIndex`) does not fail by one.
    """
    spec = job.spec
    rules = spec.pod_failure_policy.rules if spec.pod_failure_policy is not None else ()
    for rule in rules:
        if rule.on_exit_codes is not None:
            return False
        if any(one.type == DISRUPTION_TARGET and one.status == "True" for one in rule.on_pod_conditions):
            if rule.action != "Count":
                return rule.action == "FailJob"
            break
    if value_or(spec.backoff_limit_per_index, None) is not None:
        return False
    return job.status.failed >= value_or(spec.backoff_limit, DEFAULT_BACKOFF_LIMIT)
