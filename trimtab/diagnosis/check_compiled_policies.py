"""Checks compiled policies, which the API server evaluates itself, with or without the webhook."""

from collections.abc import Iterator

from trimtab.cluster.format_count import join_first
from trimtab.cluster.reason import Unreadable
from trimtab.diagnosis.finding import Check, DoctorFinding, report_error, report_ok, report_unknown
from trimtab.diagnosis.observed import ObservedCluster, Read
from trimtab.diagnosis.reasons import COMPILED_POLICY_UNBOUND
from trimtab.inputs.compiled_policy_state import CompiledPolicyState

MAX_NAMES = 3
"""The number of policies that one finding names."""


def check_compiled_policies(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields an error for each compiled policy without a binding, and the number of compiled policies that change
    pods."""
    yield from _describe_denying(cluster.validating_policies)
    policies = cluster.compiled_policies
    if isinstance(policies, Unreadable):
        yield report_unknown(policies)
    elif policies is None:
        yield report_ok(
            "this API server does not serve MutatingAdmissionPolicies (Kubernetes 1.36 does), so only the "
            "webhook changes pods"
        )
    elif not policies:
        yield report_ok("there are no compiled policies, so only the webhook changes pods")
    else:
        for policy in policies:
            if not policy.is_bound:
                yield report_error(COMPILED_POLICY_UNBOUND, f"MutatingAdmissionPolicy {policy.name} has no binding")
        bound = sum(policy.is_bound for policy in policies)
        way = "without a webhook" if cluster.is_without_webhook else "in addition to the webhook"
        if bound:
            yield report_ok(f"{bound} compiled polic{'y changes' if bound == 1 else 'ies change'} pods, {way}")


def _describe_denying(policies: Read[tuple[CompiledPolicyState, ...]]) -> Iterator[DoctorFinding]:
    """Yields which compiled policies deny pods, with the command that switches one off."""
    if isinstance(policies, Unreadable):
        yield report_unknown(policies)
        return
    names = [policy.name for policy in policies if policy.is_denying]
    if names:
        verb = "denies" if len(names) == 1 else "deny"
        yield report_ok(
            f"{join_first(names, MAX_NAMES)} {verb} pods without a required action, even while Trimtab is paused "
            f"or not installed; to stop this, run `kubectl delete validatingadmissionpolicybinding {names[0]}`"
        )


CHECKS = (
    Check(
        name="compiled-policies",
        asks="Does the API server evaluate the compiled policies?",
        judge=check_compiled_policies,
        may=(COMPILED_POLICY_UNBOUND,),
    ),
)
