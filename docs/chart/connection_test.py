"""What `helm test` runs: a pod that asks the webhook's Service whether it is ready. It needs no rights and no token."""

from docs.chart.holes import maybe, text
from trimtab.cluster.processes import account_name
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues, Manifest, build_manifest

TEST = "connection-test"

# The certificate names the Service, and its authority is the installation's own: what counts here is the answer.
_PROGRAM = """\
import ssl, sys, urllib.request
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
with urllib.request.urlopen(sys.argv[1], timeout=10, context=context) as answer:
    print(sys.argv[1], answer.status)
"""


def connection_test(values: InstallValues) -> Manifest:
    """Return the pod of the test, with holes for the chart's values."""
    [webhook] = [
        item
        for item in render_manifests(values)
        if (item["kind"], item["metadata"]["name"]) == ("Deployment", account_name("webhook"))
    ]
    pod = webhook["spec"]["template"]["spec"]
    [container] = pod["containers"]
    url = f"https://{account_name('webhook')}.{values.namespace}.svc:{text('.Values.webhook.servicePort')}/readyz"
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": pod["securityContext"],
        "imagePullSecrets": maybe(".Values.image.pullSecrets"),
        "nodeSelector": maybe(".Values.uninstall.nodeSelector"),
        "tolerations": maybe(".Values.uninstall.tolerations"),
        "containers": [
            {
                "name": "test",
                "image": values.image,
                "imagePullPolicy": maybe(".Values.image.pullPolicy"),
                "command": ["/opt/trimtab/bin/python", "-c", _PROGRAM, url],
                "securityContext": container["securityContext"],
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
            }
        ],
    }
    annotations = {"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}
    return build_manifest("v1", "Pod", account_name(TEST), values, component=TEST, annotations=annotations, spec=spec)
