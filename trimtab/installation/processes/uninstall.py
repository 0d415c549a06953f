"""The permissions of the Job of Helm's uninstall hook, which runs for about a minute. Only the chart installs it."""

from trimtab.cluster.pool import MAX_SURGE
from trimtab.cluster.processes import account_name
from trimtab.compaction.drain.pool_state import NAME_PREFIX as STATE_NAMES
from trimtab.compaction.pool_status import PLURAL as POOL_STATUSES
from trimtab.compactor.node_signatures import SECRET
from trimtab.installation.access_rule import Rule
from trimtab.installation.installed_process import InstalledProcess
from trimtab.installation.names import CONFIGURATION_NAME, WORKERS
from trimtab.installation.processes.recommender import STORED_NAMES
from trimtab.installation.write_policy import (
    DELETE,
    REPLICAS_CEL,
    Place,
    UnrestrictedWrite,
    WriteCondition,
    WritePolicy,
    deletes_pool_status,
    restrict_autoscalers,
    restrict_nodes,
    restrict_scale,
    surge_steps_cel,
)
from trimtab.metricsapi.api_request import API_SERVICE_NAME
from trimtab.policy.schema import GROUP

UNINSTALL = "uninstall"
"""The name of the Job, and of its account without `trimtab-`."""

_PURPOSES = {
    "apiservices": "to end the API server's calls to the metrics API",
    **dict.fromkeys(
        ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
        "to end the API server's calls to the webhook",
    ),
    "nodes": "to uncordon nodes, and to remove annotations and taints",
    "pods": "to see whether the processes have stopped",
    "deployments/scale": "to stop the processes, and to scale workloads back to one replica",
    "horizontalpodautoscalers": "to set minReplicas back to what it was before a drain",
    "secrets": "to read the key that verifies what the compactor signed",
    "leases": "to delete the objects that the processes wrote",
    "configmaps": "to delete the objects that the processes wrote",
    "poolstatuses": "to delete the objects that the compactor wrote",
}

PROCESS = InstalledProcess(
    name=UNINSTALL,
    cluster_rules=(
        Rule("apiregistration.k8s.io", ("apiservices",), ("get", "delete"), (API_SERVICE_NAME,)),
        Rule(
            "admissionregistration.k8s.io",
            ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
            ("delete",),
            (CONFIGURATION_NAME,),
        ),
        Rule("", ("nodes",), ("list", "get", "patch")),
    ),
    namespace_rules=(
        Rule("", ("pods",), ("list",)),
        Rule("apps", ("deployments/scale",), ("patch",), tuple(map(account_name, WORKERS))),
        # With the key the Job verifies annotations and states: it undoes only what is authentic.
        Rule("", ("secrets",), ("get",), (SECRET,)),
        Rule("coordination.k8s.io", ("leases",), ("delete",), tuple(map(account_name, WORKERS))),
        Rule("", ("configmaps",), ("list", "delete")),
        Rule(GROUP, (POOL_STATUSES,), ("list", "delete")),
    ),
    conditions={
        ("delete", "poolstatuses"): "the compactor wrote a PoolStatus",
        ("delete", "apiservices"): "the metrics API is installed",
    },
    cluster_purposes=_PURPOSES,
    namespace_purposes=_PURPOSES,
    write_policies=(
        restrict_nodes(UNINSTALL),
        restrict_scale(
            UNINSTALL,
            what=f"scale a Deployment to zero in its own namespace, or down by at most {MAX_SURGE} replicas",
            steps=f"{Place.OWN_NAMESPACE} && {REPLICAS_CEL[1]} == 0 || {surge_steps_cel(is_downward=True)}",
        ),
        restrict_autoscalers(UNINSTALL, is_downward=True),
        WritePolicy(
            process=UNINSTALL,
            subject="configmaps",
            group="",
            kinds=("configmaps",),
            operations=(DELETE,),
            what="delete what the processes have stored",
            conditions=(
                WriteCondition(
                    " || ".join(f"request.name.startsWith('{name}')" for name in (STATE_NAMES, *STORED_NAMES)),
                    "this account may delete only ConfigMaps in which the processes have stored something",
                ),
            ),
        ),
    ),
    unrestricted_writes=(
        deletes_pool_status(UNINSTALL),
        *(
            UnrestrictedWrite(
                process=UNINSTALL,
                group=group,
                resource=resource,
                operation=DELETE,
                reason="the permission names the objects, and deleting them is what it is for",
            )
            for group, resource in (
                ("apiregistration.k8s.io", "apiservices"),
                ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
                ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
                ("coordination.k8s.io", "leases"),
            )
        ),
    ),
    may_scale=True,
)
