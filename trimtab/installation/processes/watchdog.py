"""The watchdog's permissions and its Deployment."""

from functools import partial

from trimtab.cluster.processes import WATCHDOG
from trimtab.installation.access_rule import (
    EVENTS,
    FACT_CONDITIONS,
    FACT_PURPOSES,
    FACTS,
    FOR_OWN_LEASE,
    FOR_RECOMMENDATIONS,
    RECOMMENDATIONS,
    WATCH,
    WHEN_EARLIER_EVENT,
    WHEN_EVENT_TO_REPORT,
    WHEN_NO_LEASE,
    Rule,
    lease_rule,
)
from trimtab.installation.deployments import worker_environment
from trimtab.installation.installed_process import InstalledProcess, WorkerDeployment
from trimtab.installation.write_policy import WritePolicy, restrict_events, restrict_lease
from trimtab.policy.schema import GROUP, PLURAL
from trimtab.watchdog.policy_events import CONTROLLER

PROCESS = InstalledProcess(
    name=WATCHDOG.name,
    cluster_rules=(
        *FACTS,
        Rule("", ("pods",), WATCH),
        # The harm brake is in the status, too.
        Rule("trimtab.dev", ("podpolicies/status",), ("patch",)),
        EVENTS,
    ),
    namespace_rules=(RECOMMENDATIONS, lease_rule(WATCHDOG.name)),
    conditions={
        **FACT_CONDITIONS,
        ("create", "leases"): WHEN_NO_LEASE,
        ("create", "events"): WHEN_EVENT_TO_REPORT,
        ("patch", "events"): WHEN_EVENT_TO_REPORT,
        ("get", "events"): WHEN_EARLIER_EVENT,
    },
    cluster_purposes={
        **FACT_PURPOSES,
        "pods": "to read the running pods, which the watchdog compares with the policies",
        "podpolicies/status": "to write the status of each policy, and to set a policy that harms pods to `warn`",
        "events": "to report pods that the webhook missed",
    },
    namespace_purposes={"configmaps": FOR_RECOMMENDATIONS, "leases": FOR_OWN_LEASE},
    write_policies=(
        WritePolicy(
            process=WATCHDOG.name,
            subject="podpolicies",
            group=GROUP,
            version="*",
            kinds=(PLURAL,),
            is_namespaced=False,
            may_change=(("status",),),
            what="write the status of a PodPolicy",
        ),
        restrict_lease(WATCHDOG.name),
        restrict_events(WATCHDOG.name, CONTROLLER),
    ),
    environment=partial(worker_environment, WATCHDOG.name),
    worker=WorkerDeployment(grace_seconds=30),
)
