"""The findings of `trimtab doctor`: one code per finding, in the order of the checks."""

from trimtab.cluster.pool import KEEP_ANNOTATION, RENAMED_KEEP
from trimtab.cluster.reason import Code
from trimtab.compactor.soft_taint import RENAMED_LEAVING

REINSTALL = "Run `trimtab install --apply`, or `helm upgrade`, with the options of the installation."
"""The command to install again. `install` does not remember options: without `--image` the processes would get an image
that no node can pull."""

SIGNING_KEY_MISSING = Code(
    "signing-key-missing",
    "The compactor has no signing key, and does nothing until the Secret exists. Nothing that it signed before "
    "counts as authentic.",
    "`trimtab install --apply` creates the Secret, which the compactor fills. `trimtab compactor release --yes NODE` "
    "uncordons a node that was cordoned with a lost key.",
)
WEBHOOK_KEY_MISSING = Code(
    "webhook-signing-key-missing",
    "The webhook has no signing key, so its annotations on pods are unsigned. If the API server calls it a second "
    "time for a request, it decides again.",
    "`trimtab install --apply` creates the Secret, and the webhook fills it within a minute. Pods that are admitted "
    "until then stay as they are.",
)
DRAIN_FORGED = Code(
    "drain-annotation-not-authentic",
    "The compactor did not sign the node's drain annotation, so it ignores the node.",
    "`trimtab compactor release --yes NODE` removes the annotation and uncordons the node. Find out which client "
    "wrote it.",
)
DRAIN_ORPHANED = Code(
    "drain-orphaned",
    "The node has a valid drain annotation of Trimtab, but the pool's state has no such drain.",
    "Run `trimtab compactor release --yes NODE` if no compactor leads. A compactor that leads uncordons the node.",
)
DRAIN_ABANDONED = Code(
    "drain-without-compactor",
    "Nodes stay cordoned, because no compactor runs to finish or undo their drains.",
    "Start the compactor; `trimtab compactor release --yes NODE` uncordons a node without it. The compactor "
    "continues or undoes its drains.",
)
STATE_DELETED = Code(
    "state-deleted",
    "The state of a pool was deleted during its drains. Nodes have annotations of these drains.",
    "Find out which client deleted the ConfigMap. The next leader uncordons these nodes and closes the pool for an "
    "hour; if no compactor runs, `trimtab compactor release --yes NODE` uncordons a node.",
)
STATE_NOT_AUTHENTIC = Code(
    "state-not-authentic",
    "The state of a pool is invalid, or the compactor did not sign it. The next leader discards the state and closes "
    "the pool for an hour.",
    "`trimtab compactor resume --pool NAME` opens the pool at once.",
)
RENAMED = Code(
    "renamed-word-on-node",
    "A node has a taint or annotation under its earlier name.",
    f"Replace the annotation {RENAMED_KEEP} by {KEEP_ANNOTATION}: until then Trimtab does not drain the node. "
    f"`trimtab install --apply` and the compactor remove the taint {RENAMED_LEAVING}.",
)
OVERHEAD_MISMATCH = Code(
    "overhead-setting-mismatch",
    "`TRIMTAB_OVERHEAD` does not match this API server. Pods would be refused, or would have no overhead.",
    "Set it to the value that the finding names, in the webhook and the watchdog.",
)
AUTOSCALER_MISSING = Code(
    "autoscaler-not-found",
    "No cluster autoscaler reports a status, so the compactor starts no drain. Drained nodes would not be removed.",
    "Install a cluster autoscaler, or let it write its status (`--write-status-configmap`). If the autoscaler cannot "
    "write a status, set TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS=false.",
)
AUTOSCALER_UNHEALTHY = Code(
    "autoscaler-status-unusable",
    "The cluster autoscaler reports no valid status, or an unhealthy one, so no drain starts.",
    "See the autoscaler's log: `kubectl -n kube-system logs deploy/cluster-autoscaler`",
)
AUTOSCALER_KEEPS_NODES = Code(
    "autoscaler-scale-down-disabled",
    "The cluster autoscaler runs with --scale-down-enabled=false, so drained nodes stay.",
    "Start it with --scale-down-enabled=true, or leave the pools in mode rehearse.",
)
AUTOSCALER_FLAGS_DIFFER = Code(
    "autoscaler-flags-differ",
    "The cluster autoscaler runs with other flags than TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS says.",
    "Give the compactor the flags of the cluster autoscaler.",
)
AUTOSCALER_STATUS_UNREAD = Code(
    "autoscaler-status-not-read",
    "A cluster autoscaler writes its status to a ConfigMap that Trimtab does not read. So Trimtab does not know its "
    "node groups, their minimum sizes, or whether they are being scaled up.",
    "Name all status ConfigMaps in TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP and in `trimtab install --autoscaler-status`. "
    "Commas separate the names.",
)
AUTOSCALER_COMPETES = Code(
    "autoscaler-drains-same-nodes",
    "The pool has `autoscaler: lead`, but the cluster autoscaler would drain the same nodes. It would do so in its "
    "own order.",
    "Start the cluster autoscaler with the flag that the finding names.",
)
ESTAFETTE_RUNS = Code(
    "estafette-still-running",
    "An estafette node-compactor works in the same cluster, so pods move twice. It ignores PodDisruptionBudgets and "
    "deletes pods on nodes that Trimtab plans with.",
    "`trimtab pools import FILE --apply --take-over` replaces it. It creates pools from its configuration, stops it, "
    "and uncordons the nodes that it left cordoned.",
)
ESTAFETTE_CORDONS = Code(
    "estafette-left-cordons",
    "An estafette node-compactor that no longer runs left nodes cordoned. They accept no pods, and no plan includes "
    "them.",
    "`trimtab pools import FILE --apply --take-over` uncordons these nodes.",
)
USAGE_SOURCE_MISSING = Code(
    "usage-source-missing",
    "The recommender has no source of usage: no metrics API and no Prometheus.",
    "Install metrics-server, or set TRIMTAB_RECOMMENDER_PROMETHEUS_URL.",
)
USAGE_SOURCE_FAILS = Code(
    "usage-source-failing",
    "The recommender's source of usage does not answer, or has no usage.",
    "Run `kubectl get apiservice v1beta1.metrics.k8s.io`, or check TRIMTAB_RECOMMENDER_PROMETHEUS_URL. The latter "
    "names the Prometheus.",
)
VPA_WEBHOOK_DOWN = Code(
    "vpa-webhook-unavailable",
    "The VPA's webhook cannot change pods, which get the 95th percentile of their usage. With the webhook, pods that "
    "a VPA manages get the 5th.",
    "Check the VPA's admission controller: it needs a ready endpoint and a caBundle.",
)
PAIR_MISSING = Code(
    "certificate-missing",
    "The Secret with the webhook's certificate is missing or empty.",
    "The replicas create the certificate; if not, see `no certificate yet` in their log. With cert-manager: `kubectl "
    "-n NAMESPACE describe certificate`.",
)
PAIR_UNUSABLE = Code(
    "certificate-unusable",
    "No client would trust this certificate: it has expired, or does not match. Its key, its authority or its name "
    "may be wrong.",
    "Run `trimtab certs rotate --system-namespace NAMESPACE`. If cert-manager issues the certificate, renew it there.",
)
PAIR_DUE = Code(
    "certificate-renewal-due",
    "The certificate is valid, but should have been renewed by now.",
    "`trimtab certs rotate --system-namespace NAMESPACE` renews the certificate at once. The cause is in the replicas' "
    "log, after `certificates cannot be renewed`.",
)
CONFIGURATION_MISSING = Code(
    "configuration-missing", "A webhook configuration is missing: API servers do not call the webhook.", REINSTALL
)
CA_BUNDLE_MISSING = Code(
    "ca-bundle-missing",
    "A webhook has no caBundle, so API servers do not trust its server.",
    "The replicas write it within seconds, or their log says why not. If cert-manager writes it, see the log of its "
    "cainjector.",
)
CA_BUNDLES_DIFFER = Code(
    "ca-bundles-differ",
    "Trimtab's two webhook configurations do not trust the same authorities.",
    "If they still differ after some seconds, find the other client that writes one of them. It may be GitOps or "
    "cert-manager; the replicas write both.",
)
CA_BUNDLE_UNKNOWN = Code(
    "ca-bundle-mismatch",
    "A caBundle lacks the authority of the webhook's serving certificate.",
    "The replicas correct it within seconds, or their log says why not. `trimtab certs status --live "
    "--system-namespace NAMESPACE` shows whether they did.",
)
SERVICE_OTHER = Code("service-mismatch", "A webhook configuration names another Service than Trimtab's.", REINSTALL)
FAILURE_POLICY_FAIL = Code(
    "failure-policy-fail",
    "A webhook configuration has `failurePolicy: Fail`. While the webhook is down, no pod can be created.",
    f"Set `failurePolicy` back to Ignore: {REINSTALL}",
)
TIMEOUT_LONG = Code(
    "timeout-too-long",
    "The timeout of a webhook configuration is long. While the webhook is down, the creation of every pod waits for "
    "the timeout.",
    f"Set `--webhook-timeout 3` or, with Helm, `webhook.timeoutSeconds: 3`. {REINSTALL}",
)
NOT_REINVOKED = Code(
    "reinvocation-never",
    "The webhook does not see what later webhooks change. A webhook configuration has `reinvocationPolicy: Never`.",
    f"Set `reinvocationPolicy` back to IfNeeded: {REINSTALL}",
)
SYSTEM_NAMESPACES_SENT = Code(
    "system-namespaces-selected",
    "API servers send the webhook pods of kube-system or of Trimtab's own namespace. While the webhook is down, "
    "components that the cluster needs to start would wait for it.",
    f"Restore the namespace selector: {REINSTALL}",
)
POOLS_OF_OTHER_NAMESPACES = Code(
    "pools-validated-elsewhere",
    "API servers send the webhook ConfigMaps of pools from other namespaces. Pools exist only in Trimtab's "
    "namespace, so any account that may write such a ConfigMap can put load on the webhook.",
    f"Restore the namespace selector: {REINSTALL}",
)
MAY_BE_OVERRULED = Code(
    "another-webhook-called-later",
    "Another mutating webhook makes the last change to a pod. It is called after Trimtab's webhook and is also "
    "reinvoked.",
    "Exclude its namespaces, or give its configuration a name that sorts before `trimtab`. If that webhook changes "
    "other fields, do nothing.",
)
WEBHOOK_SILENT = Code(
    "webhook-not-called",
    "The API server did not call the webhook for a trial pod, or got no answer, so pods stay unchanged. "
    "The trial pod is a dry run and is not stored.",
    "See the checks `processes` and `certificates`, then the network path to the Service. Then check the path from "
    "the API server to the Service of the webhook: NetworkPolicies, a firewall between control plane and nodes "
    "(private clusters need a rule for port 8443), and the Service's endpoints.",
)
VALIDATION_SILENT = Code(
    "validation-not-called",
    "The API server would store an invalid PodPolicy. The validating webhook was not called or did not answer.",
    "Do the same as for `webhook-not-called`. The validating webhook has its own configuration.",
)
COMPILED_POLICY_UNBOUND = Code(
    "compiled-policy-not-bound",
    "A compiled policy has no binding, so it changes no pod. The API server does not evaluate it.",
    "Apply all that `trimtab policies compile --to mutatingadmissionpolicy` prints, the binding too. Each policy "
    "needs its MutatingAdmissionPolicyBinding.",
)
NOTHING_WRONG = Code("no-problem-found", "`trimtab doctor` checked this and found no problem.", "Nothing.")
NOT_CHECKED = Code(
    "not-checked",
    "`trimtab doctor` could not check this, which counts as a problem. The user lacks a permission, or the API "
    "server did not answer.",
    "Run it again with the permission that the finding names. Or the finding has the API server's error.",
)
PROCESS_MISSING = Code(
    "process-missing",
    "The Deployment of a process does not exist. Without the webhook no pod is changed; the other processes of "
    "Trimtab are optional.",
    "Run `trimtab install --apply`; with Helm, set `enabled: true` for the process. Use the options of the "
    "installation.",
)
NOT_READY = Code(
    "process-not-ready",
    "Some replicas of a process are not ready.",
    "Run `kubectl -n NAMESPACE describe pods -l app.kubernetes.io/component=PROCESS`. Then see the logs of the "
    "replicas.",
)
SCALED_TO_ZERO = Code(
    "process-scaled-to-zero",
    "The Deployment of a process was scaled to 0, so it does not run. A user or an autoscaler did so.",
    "Run `kubectl -n NAMESPACE scale deployment trimtab-webhook --replicas=2`. Name the Deployment of the process in "
    "place of trimtab-webhook.",
)
NAMESPACE_MISMATCH = Code(
    "namespace-mismatch",
    "The settings of a process name another namespace than its own. It would read its Secret, its pools and its "
    "Lease there, but has no permission for that.",
    "With kustomize, `namespace` also needs the base's `elsewhere.yaml`. docs/how-to/install-in-a-cluster.md has it.",
)
PERMISSION_MISSING = Code(
    "permission-missing",
    "The ServiceAccount of a process lacks a permission that its work needs.",
    f"{REINSTALL} This grants exactly the permissions that are needed.",
)
RESIZE_PERMISSION_MISSING = Code(
    "resize-permission-missing",
    "The compactor may not resize running pods, as a policy and a pool want. The policy has `running: resize`, and "
    "the pool is in mode act. The pods stay unchanged.",
    "Run `trimtab install --apply --resize`; with Helm, set `compactor.resize: true`. Add the other options of the "
    "installation. Or set `running: leave` in the policy.",
)
ACCOUNT_POLICY_MISSING = Code(
    "account-policy-missing",
    "No ValidatingAdmissionPolicy restricts an account of Trimtab to its work. A stolen token of the account allows "
    "everything that RBAC allows.",
    f"{REINSTALL} This creates the policy and its binding.",
)
ACCOUNT_POLICY_DIFFERENT = Code(
    "account-policy-differs",
    "A ValidatingAdmissionPolicy that restricts an account of Trimtab is not the installed one.",
    f"{REINSTALL} If you changed the policy on purpose, do nothing.",
)
LEASE_FREE = Code(
    "lease-not-held",
    "No replica of a process holds its Lease, so it does no work.",
    "See the replicas' logs, if none takes it within half a minute of its start.",
)
LEASE_STALE = Code(
    "lease-stale",
    "The leader of a process has stopped, or cannot reach the API server. Its Lease was not renewed in time.",
    "See its log; the other replica takes over when the Lease expires.",
)
TOO_OLD = Code(
    "kubernetes-too-old",
    "The API server is too old for Trimtab's webhook configurations.",
    "Upgrade Kubernetes to 1.30 or newer first.",
)
UNTESTED = Code(
    "kubernetes-untested",
    "Trimtab is not tested against this minor version of Kubernetes.",
    "Begin with a dry run, and look for a newer Trimtab. No problem with this version is known.",
)
CLOCK_SKEW = Code(
    "clock-skew",
    "This machine's clock differs from the API server's by more than a few seconds.",
    "Synchronize both clocks by NTP. The validity of certificates, Leases and the autoscaler's reports depends on "
    "the time.",
)
NAMESPACE_MISSING = Code(
    "namespace-missing",
    "Trimtab's own namespace does not exist.",
    "Run `trimtab install --apply`, or name its namespace with `trimtab doctor --system-namespace`.",
)
ALL_PAUSED = Code(
    "all-paused",
    "The annotation `trimtab.dev/paused` on its namespace pauses Trimtab. No pod is changed and no node is drained.",
    "To end the pause: `kubectl annotate namespace NAMESPACE trimtab.dev/paused-`.",
)
WEBHOOK_PAUSED = Code(
    "webhook-paused",
    "The setting `TRIMTAB_WEBHOOK_PAUSED` pauses the webhook. It admits every pod unchanged.",
    "Run `kubectl -n NAMESPACE set env deployment/trimtab-webhook TRIMTAB_WEBHOOK_PAUSED-`. Do the same for "
    "`TRIMTAB_WATCHDOG_WEBHOOK_PAUSED` of deployment/trimtab-watchdog if it is set.",
)
CRD_MISSING = Code(
    "crd-missing",
    "The API server does not serve the version of PodPolicy that Trimtab reads.",
    "Pipe `trimtab policies schema --crd` into `kubectl apply --server-side --force-conflicts -f -`. Helm installs the "
    "CustomResourceDefinition once and never upgrades it.",
)
POOL_STATUS_MISSING = Code(
    "pool-status-missing",
    "The API server does not serve PoolStatus, so `kubectl get pools` shows nothing. Nothing else depends on "
    "PoolStatus.",
    "Pipe `trimtab policies schema --crd` into `kubectl apply --server-side --force-conflicts -f -`. Helm installs a "
    "new CustomResourceDefinition only with the first installation.",
)
DRAIN_ORDER_MISSING = Code(
    "drain-order-missing",
    "The API server does not serve DrainOrders, so users cannot order drains. Nothing else depends on DrainOrder.",
    "Pipe `trimtab policies schema --crd` into `kubectl apply --server-side --force-conflicts -f -`. Helm installs a "
    "new CustomResourceDefinition only with the first installation.",
)
POLICY_INVALID = Code(
    "policy-not-loaded",
    "A PodPolicy is invalid, so it is not applied, or an older version of it is.",
    "Run `trimtab policies check FILE`, which names every mistake.",
)
POLICY_BRAKED = Code(
    "policy-set-to-warn",
    "The watchdog set a policy to `warn`, because pods that it changed failed more often.",
    "Read its condition HarmBrake, and correct the policy. The brake ends with the next change of its spec; Trimtab "
    "does not release it.",
)
EXPANDER_MAP_INVALID = Code(
    "priority-map-invalid",
    "The cluster autoscaler cannot parse its priority map, so it ignores all of it. The map is that of its priority "
    "expander.",
    "Write a valid map; `trimtab machines priorities` prints one.",
)
EXPANDER_MAP_WITHOUT_GROUPS = Code(
    "priority-map-without-groups",
    "The autoscaler's priority map leaves out node groups, which may get no nodes. They get none while a matching "
    "group can grow.",
    "Add a pattern that matches every group, such as 0: [.*]. The map that `trimtab machines priorities` prints "
    "contains one.",
)
EXPANDER_MAP_UNUSED = Code(
    "priority-map-not-used",
    "There is a map for the priority expander, but the cluster autoscaler uses another one.",
    "Start the cluster autoscaler with --expander=priority,least-waste, or delete the map.",
)
EXPANDER_MAP_CHANGED = Code(
    "priority-map-changed",
    "Another client changed Trimtab's priority map. So Trimtab no longer lowers the priority of node groups that are "
    "out of stock.",
    "`trimtab machines priorities --apply` writes it again; `--undo` removes it.",
)
REQUIRED_CLASS_MISSING = Code(
    "required-class-missing",
    "A policy requires a RuntimeClass that does not exist, so the pods that it matches are denied.",
    "Create the class or correct its name. Or set `mode: warn` in the policy until it exists.",
)
POLICY_FAILING = Code(
    "policy-failing",
    "An action of a policy failed for a pod, which was admitted without it.",
    "Read the error with `kubectl get podpolicy NAME -o jsonpath={.status.lastError}`.",
)
STATUS_BEHIND = Code(
    "policy-status-outdated",
    "No watchdog has processed the present generation of a policy.",
    "Wait a minute, then see the checks `processes` and `leases` and the watchdog's log. The watchdog processes each "
    "policy once a minute.",
)
POOL_INVALID = Code(
    "pool-not-loaded",
    "The ConfigMap of a pool is invalid, so the compactor ignores it.",
    "Correct the field that the finding names; `trimtab pools check FILE` checks it. `trimtab explain FIELD` "
    "explains a field.",
)
POOL_WITHOUT_SCALING = Code(
    "pool-without-right-to-scale",
    "A pool may move single replicas, or pods whose budget allows no eviction, but the compactor may scale nowhere. "
    "Such pods are not moved, and their nodes are not drained.",
    "Run `trimtab install --apply --scale-namespace NAME` for each namespace. The value `compactor.scaleNamespaces` "
    "of the chart does the same. Or remove `protect.singleReplicas: false` and `surge` from the pool.",
)
API_UNAVAILABLE = Code(
    "metrics-api-unavailable",
    "No replica of Trimtab's metrics API answers, so HPAs do not scale. An APIService sends API servers to it. "
    "Discovery of the cluster is incomplete, and namespaces that are deleted stay Terminating.",
    "Run `kubectl -n NAMESPACE describe pods -l app.kubernetes.io/component=metrics-api`. If you cannot repair the "
    "process soon, run `kubectl delete apiservice v1beta2.custom.metrics.k8s.io`.",
)
API_UNREGISTERED = Code(
    "metrics-api-not-registered",
    "No APIService registers the metrics API, so HPAs get no metrics. The process runs.",
    "Run `trimtab install --apply --metrics-api` with the options of the installation.",
)
OTHER_PROVIDER = Code(
    "metrics-api-other-provider",
    "Another provider of custom metrics is registered, and each hides the other's metrics. An HPA reads only the "
    "preferred version of the API.",
    "Remove one of the providers with its APIService.",
)
POLICY_REFERENCE = Code(
    "policy-names-what-is-missing",
    "A PodPolicy names an object that does not exist, so it has less effect or none. It may be a RuntimeClass, "
    "PriorityClass, namespace or node label.",
    "Create the object, or correct its name. `trimtab policies check --cluster live` reports the same before you "
    "apply a policy.",
)
POOL_WITHOUT_NODES = Code(
    "pool-without-nodes",
    "No node belongs to a pool, so no drain is planned. Its settings are valid.",
    "Give the pool the value of its nodes' pool label as a name, or set `nodes` in its settings. `trimtab explain "
    "nodes` explains the field.",
)
LINT_FINDING = Code(
    "autoscaling-rule",
    "A rule of `trimtab lint` finds that another component works against Trimtab, or prevents its work. Its work is "
    "to change pods and to drain nodes.",
    "`trimtab lint --cluster live --only CODE` shows every object. `trimtab explain CODE` explains the rule.",
)
MIXED_VERSIONS = Code(
    "processes-of-different-versions",
    "The processes of Trimtab run different images. They share ConfigMaps and annotations, which another version "
    "might not be able to read.",
    "Complete the upgrade: `trimtab install --apply` with one image, or `helm upgrade`.",
)
PROTECTION_MISSING = Code(
    "process-without-protection",
    "A running process lacks its PodDisruptionBudget or its NetworkPolicy. Without the former, a drain can stop all "
    "replicas of the process at once; without the latter, any pod can connect to it.",
    f"{REINSTALL} This creates the missing object again.",
)
