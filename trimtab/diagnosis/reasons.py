"""The findings of `trimtab doctor`: one code per finding, in the order of the checks."""

from trimtab.cluster.pool import KEEP_ANNOTATION, RENAMED_KEEP
from trimtab.cluster.reason import Code
from trimtab.compactor.soft_taint import RENAMED_LEAVING

REINSTALL = "Run `trimtab install --apply` with the options of the installation; with Helm, run `helm upgrade`."
"""The command to install again. `install` does not remember options: without `--image` the processes would get an image
that no node can pull."""

SIGNING_KEY_MISSING = Code(
    "signing-key-missing",
    "The compactor has no signing key: nothing that it signed before counts as authentic, and it does nothing "
    "until the Secret exists.",
    "`trimtab install --apply` creates the Secret, and the compactor fills it. `trimtab compactor release --yes NODE` "
    "uncordons a node that was cordoned with a lost key.",
)
WEBHOOK_KEY_MISSING = Code(
    "webhook-signing-key-missing",
    "The webhook has no signing key: its annotations on pods are unsigned, and if the API server calls it a "
    "second time for a request, it decides again.",
    "`trimtab install --apply` creates the Secret, and the webhook writes a key into it within a minute. Pods "
    "that are admitted until then stay as they are.",
)
DRAIN_FORGED = Code(
    "drain-annotation-not-authentic",
    "A node has a drain annotation that the compactor did not sign for this node: the compactor ignores the node.",
    "Find out which client wrote the annotation; `trimtab compactor release --yes NODE` removes it and uncordons "
    "the node.",
)
DRAIN_ORPHANED = Code(
    "drain-orphaned",
    "A node has an authentic annotation of a drain that is not in the pool's state.",
    "If a compactor leads, do nothing: the compactor uncordons the node. Otherwise run `trimtab compactor "
    "release --yes NODE`.",
)
DRAIN_ABANDONED = Code(
    "drain-without-compactor",
    "The compactor cordoned nodes, but no compactor runs that could finish or undo the drains of these nodes.",
    "Start the compactor: it continues or undoes its drains. If the compactor cannot run, `trimtab compactor "
    "release --yes NODE` uncordons a node.",
)
STATE_DELETED = Code(
    "state-deleted",
    "The state of a pool was deleted while nodes have annotations of its drains.",
    "Find out which client deleted the ConfigMap. The next leader uncordons these nodes and closes the pool for "
    "an hour; if no compactor runs, `trimtab compactor release --yes NODE` uncordons a node.",
)
STATE_NOT_AUTHENTIC = Code(
    "state-not-authentic",
    "The state of a pool is invalid, or the compactor did not sign it.",
    "The next leader discards the state and closes the pool for an hour; `trimtab compactor resume --pool NAME` "
    "opens the pool earlier.",
)
RENAMED = Code(
    "renamed-word-on-node",
    "A node has a taint or an annotation of Trimtab under its earlier name.",
    f"`trimtab install --apply` and the compactor remove the taint {RENAMED_LEAVING}. Replace the annotation "
    f"{RENAMED_KEEP} by {KEEP_ANNOTATION}: until then Trimtab does not drain the node.",
)
OVERHEAD_MISMATCH = Code(
    "overhead-setting-mismatch",
    "The setting `TRIMTAB_OVERHEAD` does not match this API server: pods would be refused, or would have no overhead.",
    "Set `TRIMTAB_OVERHEAD` of the webhook and the watchdog to the value that the finding names.",
)
AUTOSCALER_MISSING = Code(
    "autoscaler-not-found",
    "There are pools to compact, but no cluster autoscaler reports its status: drained nodes would not be "
    "removed, so the compactor starts no drain.",
    "Install a cluster autoscaler, or let it write its status (`--write-status-configmap`). If the autoscaler "
    "cannot write a status, set TRIMTAB_COMPACTOR_REQUIRE_AUTOSCALER_STATUS=false.",
)
AUTOSCALER_UNHEALTHY = Code(
    "autoscaler-status-unusable",
    "The cluster autoscaler reports no status, an invalid status, or that it is unhealthy: the compactor starts "
    "no drain.",
    "See the autoscaler's log: `kubectl -n kube-system logs deploy/cluster-autoscaler`",
)
AUTOSCALER_KEEPS_NODES = Code(
    "autoscaler-scale-down-disabled",
    "The cluster autoscaler runs with --scale-down-enabled=false: drained nodes are not removed.",
    "Start the cluster autoscaler with --scale-down-enabled=true, or leave the pools in mode rehearse.",
)
AUTOSCALER_FLAGS_DIFFER = Code(
    "autoscaler-flags-differ",
    "The compactor's setting TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS differs from the flags that the cluster "
    "autoscaler runs with.",
    "Set TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS of the compactor to the flags of the cluster autoscaler.",
)
AUTOSCALER_STATUS_UNREAD = Code(
    "autoscaler-status-not-read",
    "A cluster autoscaler writes its status to a ConfigMap that Trimtab does not read, so Trimtab does not know its "
    "node groups, their minimum sizes, or whether they are being scaled up.",
    "Set TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP and `trimtab install --autoscaler-status` to the names of all status "
    "ConfigMaps, separated by commas.",
)
AUTOSCALER_COMPETES = Code(
    "autoscaler-drains-same-nodes",
    "A pool has `autoscaler: lead`, and the cluster autoscaler would drain the same nodes in its own order.",
    "Start the cluster autoscaler with the flag that the finding names.",
)
ESTAFETTE_RUNS = Code(
    "estafette-still-running",
    "An estafette node-compactor runs in this cluster. It ignores PodDisruptionBudgets and deletes pods on nodes "
    "that Trimtab plans with, so pods move twice.",
    "`trimtab pools import FILE --apply --take-over` creates pools from the configuration of the estafette "
    "node-compactor, stops it, and uncordons the nodes that it left cordoned.",
)
ESTAFETTE_CORDONS = Code(
    "estafette-left-cordons",
    "Nodes are still cordoned by an estafette node-compactor that no longer runs: they accept no pods, and no "
    "plan includes them.",
    "`trimtab pools import FILE --apply --take-over` uncordons these nodes.",
)
USAGE_SOURCE_MISSING = Code(
    "usage-source-missing",
    "The cluster serves no metrics API, and the recommender has no Prometheus configured, so the recommender "
    "gets no usage.",
    "Install metrics-server, or set TRIMTAB_RECOMMENDER_PROMETHEUS_URL of the recommender.",
)
USAGE_SOURCE_FAILS = Code(
    "usage-source-failing",
    "The recommender's source of usage does not answer, or has no usage of any pod.",
    "Run `kubectl get apiservice v1beta1.metrics.k8s.io`, or check the Prometheus that "
    "TRIMTAB_RECOMMENDER_PROMETHEUS_URL names.",
)
VPA_WEBHOOK_DOWN = Code(
    "vpa-webhook-unavailable",
    "The VPA is installed, but its webhook cannot change pods: pods that a VPA manages get requests at the 95th "
    "percentile of their usage, not at the 5th.",
    "Check the VPA's admission controller: it needs a ready endpoint and a caBundle.",
)
PAIR_MISSING = Code(
    "certificate-missing",
    "The Secret with the webhook's certificate does not exist, or contains no certificate.",
    "The replicas of the webhook create the certificate: see their log for `no certificate yet`. With "
    "cert-manager: `kubectl -n NAMESPACE describe certificate`.",
)
PAIR_UNUSABLE = Code(
    "certificate-unusable",
    "No client would trust a server with this certificate: it has expired, or its key, authority or name does not "
    "match.",
    "Run `trimtab certs rotate --system-namespace NAMESPACE`; if cert-manager issues the certificate, renew it there.",
)
PAIR_DUE = Code(
    "certificate-renewal-due",
    "The certificate is still valid, but should have been renewed by now.",
    "See the replicas' log for `certificates cannot be renewed`; `trimtab certs rotate --system-namespace NAMESPACE` "
    "renews the certificate at once.",
)
CONFIGURATION_MISSING = Code(
    "configuration-missing", "A webhook configuration is missing: API servers do not call the webhook.", REINSTALL
)
CA_BUNDLE_MISSING = Code(
    "ca-bundle-missing",
    "A webhook has no caBundle: API servers do not trust the server that answers for this webhook.",
    "The replicas of the webhook write the caBundle within seconds: see their log. If cert-manager writes it, "
    "see the log of its cainjector.",
)
CA_BUNDLES_DIFFER = Code(
    "ca-bundles-differ",
    "The webhooks of Trimtab's two configurations do not trust the same authorities.",
    "The replicas write both configurations within seconds. If the configurations still differ, another client "
    "writes one of them (GitOps, cert-manager).",
)
CA_BUNDLE_UNKNOWN = Code(
    "ca-bundle-mismatch",
    "A caBundle does not contain the authority of the certificate that the webhook serves.",
    "The replicas correct the caBundle within seconds: see their log. `trimtab certs status --live --system-namespace "
    "NAMESPACE` shows whether they did.",
)
SERVICE_OTHER = Code(
    "service-mismatch", "A webhook configuration sends API servers to another Service than Trimtab's.", REINSTALL
)
FAILURE_POLICY_FAIL = Code(
    "failure-policy-fail",
    "A webhook configuration has `failurePolicy: Fail`: while the webhook is down, no pod can be created.",
    f"Set `failurePolicy` back to Ignore: {REINSTALL}",
)
TIMEOUT_LONG = Code(
    "timeout-too-long",
    "The timeout of a webhook configuration is long: while the webhook is down, the creation of every pod waits "
    "for the timeout.",
    "Set a timeout of two or three seconds, with `--webhook-timeout 3` or `webhook.timeoutSeconds: 3`." + REINSTALL,
)
NOT_REINVOKED = Code(
    "reinvocation-never",
    "A webhook configuration has `reinvocationPolicy: Never`: the webhook does not see what later webhooks "
    "change in a pod.",
    f"Set `reinvocationPolicy` back to IfNeeded: {REINSTALL}",
)
SYSTEM_NAMESPACES_SENT = Code(
    "system-namespaces-selected",
    "API servers send the webhook the pods of kube-system or of Trimtab's own namespace: while the webhook is "
    "down, components that the cluster needs to start would wait for it.",
    f"Restore the namespace selector: {REINSTALL}",
)
POOLS_OF_OTHER_NAMESPACES = Code(
    "pools-validated-elsewhere",
    "API servers send the webhook ConfigMaps with a pool's label from other namespaces, although pools exist "
    "only in Trimtab's namespace: any account that may write such a ConfigMap can put load on the webhook.",
    f"Restore the namespace selector: {REINSTALL}",
)
MAY_BE_OVERRULED = Code(
    "another-webhook-called-later",
    "Another mutating webhook is called after Trimtab's webhook and is also reinvoked, so it makes the last "
    "change to a pod.",
    "If that webhook changes other fields, do nothing. Otherwise exclude its namespaces, or give its "
    "configuration a name that sorts before `trimtab`.",
)
WEBHOOK_SILENT = Code(
    "webhook-not-called",
    "The API server created a trial pod (a dry run, not stored), and the webhook was not called or did not "
    "answer: pods are admitted unchanged.",
    "See the checks `processes` and `certificates` first. Then check the path from the API server to the Service "
    "of the webhook: NetworkPolicies, a firewall between control plane and nodes (private clusters need a rule "
    "for port 8443), and the Service's endpoints.",
)
VALIDATION_SILENT = Code(
    "validation-not-called",
    "The API server would store an invalid PodPolicy: the validating webhook was not called or did not answer.",
    "Take the same steps as for `webhook-not-called`; the validating webhook has its own configuration.",
)
COMPILED_POLICY_UNBOUND = Code(
    "compiled-policy-not-bound",
    "A compiled policy has no binding, so the API server does not evaluate the policy, and it changes no pod.",
    "Apply everything that `trimtab policies compile --to mutatingadmissionpolicy` prints: each policy needs its "
    "MutatingAdmissionPolicyBinding.",
)
NOTHING_WRONG = Code("no-problem-found", "`trimtab doctor` checked this and found no problem.", "Nothing.")
NOT_CHECKED = Code(
    "not-checked",
    "`trimtab doctor` could not check this, because the user lacks a permission, or because the API server did "
    "not answer. The finding counts as a problem.",
    "The finding names the missing permission or the API server's error. Run the command again as a user with "
    "that permission.",
)
PROCESS_MISSING = Code(
    "process-missing",
    "The Deployment of a process does not exist. Without the webhook no pod is changed; the other processes of "
    "Trimtab are optional.",
    "Run `trimtab install --apply` with the options of the installation; with Helm, set `enabled: true` for the "
    "process in the values.",
)
NOT_READY = Code(
    "process-not-ready",
    "Some replicas of a process are not ready.",
    "Run `kubectl -n NAMESPACE describe pods -l app.kubernetes.io/component=PROCESS`, then see the logs of the "
    "replicas.",
)
SCALED_TO_ZERO = Code(
    "process-scaled-to-zero",
    "The Deployment of a process has 0 replicas, because a user or an autoscaler scaled it down: the process "
    "does not run.",
    "Run `kubectl -n NAMESPACE scale deployment trimtab-webhook --replicas=2`, with the Deployment of the "
    "process in place of trimtab-webhook.",
)
NAMESPACE_MISMATCH = Code(
    "namespace-mismatch",
    "The settings of a process name a namespace other than the one that the process runs in: it would read its "
    "Secret, its pools and its Lease there, but has no permission for that.",
    "With kustomize, `namespace` also needs the base's `elsewhere.yaml`: see docs/how-to/install-in-a-cluster.md.",
)
PERMISSION_MISSING = Code(
    "permission-missing",
    "The ServiceAccount of a process lacks a permission that its work needs.",
    "`trimtab install --apply`, with the options of the installation, grants exactly the permissions that are "
    "needed; with Helm, run `helm upgrade`.",
)
RESIZE_PERMISSION_MISSING = Code(
    "resize-permission-missing",
    "A policy has `running: resize` and a pool is in mode act, but the compactor may not resize running pods, so "
    "they stay unchanged.",
    "`trimtab install --apply --resize`, with the other options of the installation, grants the permission; with "
    "Helm, the value `compactor.resize: true` does. Or set `running: leave` in the policy.",
)
ACCOUNT_POLICY_MISSING = Code(
    "account-policy-missing",
    "A ValidatingAdmissionPolicy that restricts an account of Trimtab to its work is not in force: a stolen token of "
    "the account allows everything that RBAC allows.",
    "`trimtab install --apply`, with the options of the installation, creates the policy and its binding; with "
    "Helm, run `helm upgrade`.",
)
ACCOUNT_POLICY_DIFFERENT = Code(
    "account-policy-differs",
    "A ValidatingAdmissionPolicy that restricts an account of Trimtab differs from the one that this version installs.",
    "Unless you changed the policy on purpose, run `trimtab install --apply` with the options of the "
    "installation; with Helm, run `helm upgrade`.",
)
LEASE_FREE = Code(
    "lease-not-held",
    "No replica of a process holds its Lease, so the process does no work.",
    "See the replicas' logs: a replica acquires the Lease within half a minute of its start.",
)
LEASE_STALE = Code(
    "lease-stale",
    "The Lease of a process was not renewed in time: its leader has stopped, or cannot reach the API server.",
    "See the log of the replica that holds the Lease; the other replica takes over when the Lease expires.",
)
TOO_OLD = Code(
    "kubernetes-too-old",
    "The API server is older than the Kubernetes version that Trimtab's webhook configurations need.",
    "Upgrade Kubernetes to 1.30 or newer before you install Trimtab.",
)
UNTESTED = Code(
    "kubernetes-untested",
    "Trimtab is not tested against this minor version of Kubernetes.",
    "No problem with this version is known. Begin with a dry run, and check in the changelog whether a newer "
    "Trimtab supports it.",
)
CLOCK_SKEW = Code(
    "clock-skew",
    "The clock of the machine that runs the command and the API server's clock differ by more than a few seconds.",
    "Synchronize both clocks by NTP. The validity of certificates, Leases and the autoscaler's reports depends "
    "on the time.",
)
NAMESPACE_MISSING = Code(
    "namespace-missing",
    "Trimtab's own namespace does not exist.",
    "`trimtab install --apply --image IMAGE --system-namespace NAMESPACE` creates the namespace. If Trimtab is in "
    "another namespace, pass that namespace to `trimtab doctor --system-namespace`.",
)
ALL_PAUSED = Code(
    "all-paused",
    "Trimtab is paused by the annotation `trimtab.dev/paused` on its namespace: no pod is changed and no node is "
    "drained.",
    "To end the pause: `kubectl annotate namespace NAMESPACE trimtab.dev/paused-`.",
)
WEBHOOK_PAUSED = Code(
    "webhook-paused",
    "The webhook is paused by its setting `TRIMTAB_WEBHOOK_PAUSED`: it admits every pod unchanged.",
    "To end the pause: `kubectl -n NAMESPACE set env deployment/trimtab-webhook TRIMTAB_WEBHOOK_PAUSED-`, and the "
    "same for `TRIMTAB_WATCHDOG_WEBHOOK_PAUSED` of deployment/trimtab-watchdog if it is set.",
)
CRD_MISSING = Code(
    "crd-missing",
    "The API server does not serve PodPolicy documents, or not in the version that Trimtab reads.",
    "Pipe what `trimtab policies schema --crd` prints into `kubectl apply --server-side --force-conflicts -f -`; Helm "
    "installs the CustomResourceDefinition once and never upgrades it.",
)
POOL_STATUS_MISSING = Code(
    "pool-status-missing",
    "The API server does not serve PoolStatus documents, so `kubectl get pools` shows nothing. Nothing else "
    "depends on PoolStatus.",
    "Pipe what `trimtab policies schema --crd` prints into `kubectl apply --server-side --force-conflicts -f -`; Helm "
    "installs a new CustomResourceDefinition only with the first installation.",
)
DRAIN_ORDER_MISSING = Code(
    "drain-order-missing",
    "The API server does not serve DrainOrder documents, so users cannot order drains from the compactor. Nothing else "
    "depends on DrainOrder.",
    "Pipe what `trimtab policies schema --crd` prints into `kubectl apply --server-side --force-conflicts -f -`; Helm "
    "installs a new CustomResourceDefinition only with the first installation.",
)
POLICY_INVALID = Code(
    "policy-not-loaded",
    "A PodPolicy is invalid, so Trimtab does not apply it, or still applies an older version of it.",
    "`trimtab policies check FILE` names every mistake in a policy.",
)
POLICY_BRAKED = Code(
    "policy-set-to-warn",
    "The watchdog set a policy to `warn`, because pods that it changed failed more often than before.",
    "Read the condition HarmBrake of the policy, and correct the policy. The brake ends with the next change of its "
    "spec; Trimtab does not release it.",
)
EXPANDER_MAP_INVALID = Code(
    "priority-map-invalid",
    "The cluster autoscaler cannot parse the map of its priority expander, so it ignores the whole map.",
    "Write a valid map; `trimtab machines priorities` prints one.",
)
EXPANDER_MAP_WITHOUT_GROUPS = Code(
    "priority-map-without-groups",
    "The priority map of the cluster autoscaler matches some node groups but not others: the others get no nodes "
    "while a matching group can grow.",
    "Add a pattern that matches every node group to the map, such as 0: [.*]; the map that `trimtab machines "
    "priorities` prints contains one.",
)
EXPANDER_MAP_UNUSED = Code(
    "priority-map-not-used",
    "A map for the priority expander exists, but the cluster autoscaler runs with another expander.",
    "Start the cluster autoscaler with --expander=priority,least-waste, or delete the map.",
)
EXPANDER_MAP_CHANGED = Code(
    "priority-map-changed",
    "Another client changed the priority map that Trimtab wrote, so Trimtab no longer lowers the priority of "
    "node groups that are out of stock.",
    "`trimtab machines priorities --apply` writes the map again; `--undo` removes the map.",
)
REQUIRED_CLASS_MISSING = Code(
    "required-class-missing",
    "A policy requires a RuntimeClass that does not exist in the cluster: every pod that the policy matches is denied.",
    "Create the RuntimeClass, correct its name in the policy, or set `mode: warn` in the policy until it exists.",
)
POLICY_FAILING = Code(
    "policy-failing",
    "An action of a policy failed for a pod: that pod was admitted without the action.",
    "Read the error with `kubectl get podpolicy NAME -o jsonpath={.status.lastError}`.",
)
STATUS_BEHIND = Code(
    "policy-status-outdated",
    "The status of a policy does not describe its present generation, so no watchdog has processed the present policy.",
    "The watchdog processes each policy once a minute. If the status stays outdated, see the checks `processes` "
    "and `leases`, then the log of the watchdog.",
)
POOL_INVALID = Code(
    "pool-not-loaded",
    "The ConfigMap of a pool is invalid: the compactor ignores the pool.",
    "The finding names the field and the value that it needs; `trimtab explain FIELD` explains a field. `trimtab "
    "pools check FILE` checks a corrected ConfigMap before you apply it.",
)
POOL_WITHOUT_SCALING = Code(
    "pool-without-right-to-scale",
    "A pool allows Trimtab to move pods that are the only replica of their workload, or whose budget allows no "
    "eviction, but the compactor may scale workloads in no namespace: such pods are not moved, and their nodes are not "
    "drained.",
    "`trimtab install --apply --scale-namespace NAME` grants the permission for one namespace, and so does the "
    "value `compactor.scaleNamespaces` of the chart. Or remove `protect.singleReplicas: false` and `surge` "
    "from the pool.",
)
API_UNAVAILABLE = Code(
    "metrics-api-unavailable",
    "An APIService sends API servers to Trimtab's metrics API, but no replica answers. HPAs do not scale, "
    "discovery of the cluster is incomplete, and namespaces that are deleted stay Terminating.",
    "Run `kubectl -n NAMESPACE describe pods -l app.kubernetes.io/component=metrics-api`. If you cannot repair "
    "the process soon, run `kubectl delete apiservice v1beta2.custom.metrics.k8s.io`.",
)
API_UNREGISTERED = Code(
    "metrics-api-not-registered",
    "The metrics API runs, but it is registered by no APIService: no HPA gets its metrics.",
    "Run `trimtab install --apply --metrics-api` with the options of the installation.",
)
OTHER_PROVIDER = Code(
    "metrics-api-other-provider",
    "Another provider of custom metrics is registered. An HPA reads only the preferred version of the API, so "
    "each provider hides the metrics of the other.",
    "Remove one of the providers, together with its APIService.",
)
POLICY_REFERENCE = Code(
    "policy-names-what-is-missing",
    "A PodPolicy names a RuntimeClass, PriorityClass, namespace or node label that does not exist in the "
    "cluster, so the policy has less effect than intended, or no effect.",
    "Create the missing object, or correct the name in the policy. `trimtab policies check --cluster live` "
    "reports the same before you apply a policy.",
)
POOL_WITHOUT_NODES = Code(
    "pool-without-nodes",
    "The settings of a pool are valid, but no node belongs to the pool, so no drain is planned.",
    "Correct the name of the pool, which is the value of the nodes' pool label, or set `nodes` in its settings; "
    "`trimtab explain nodes` explains the field.",
)
LINT_FINDING = Code(
    "autoscaling-rule",
    "A rule of `trimtab lint` about Trimtab's own work has a finding: another component works against Trimtab, "
    "or prevents Trimtab from changing pods or draining nodes.",
    "`trimtab lint --cluster live --only CODE` shows every object; `trimtab explain CODE` explains the rule.",
)
MIXED_VERSIONS = Code(
    "processes-of-different-versions",
    "The processes of Trimtab run different images. They share ConfigMaps and annotations, which another version "
    "might not be able to read.",
    "Complete the upgrade: `trimtab install --apply` with one image, or `helm upgrade`.",
)
PROTECTION_MISSING = Code(
    "process-without-protection",
    "The PodDisruptionBudget or the NetworkPolicy of a running process does not exist: without the former, a "
    "drain can stop all replicas of the process at once; without the latter, any pod can connect to it.",
    "`trimtab install --apply`, with the options of the installation, creates the missing object again; with "
    "Helm, run `helm upgrade`.",
)
