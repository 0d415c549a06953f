"""Do API servers call us, trust us, and hear an answer?"""

from collections.abc import Iterator

import certs
from trimtab.cli.doctor.finding import Check, DoctorFinding, error, ok, unknown, warn
from trimtab.cli.doctor.observed import ObservedCluster, Read, WebhookConfigurationState, WebhookState
from trimtab.cli.install.admission_policies import POOLS
from trimtab.cli.install.names import CONFIGURATION, SECRET, WEBHOOK
from trimtab.cluster.reason import Code, Unreadable
from trimtab.policy.pod_context import DEFAULT_TERMS
from trimtab.policy.vpa_webhook import NAME as VPA

LONG = 5
"""Seconds. While we are down, every pod waits that long."""

AGAIN = "`trimtab install --apply` with the options it was installed with; with Helm, `helm upgrade`."
"""Options are not remembered: without its `--image` the processes would ask for one that no node can pull."""

NO_PAIR = Code(
    "pair-missing",
    "The Secret with the webhook's certificate is not there, or holds no pair.",
    "The replicas fill it: see their log for `no certificate yet`. With cert-manager: `kubectl -n NAMESPACE "
    "describe certificate`.",
)
BAD_PAIR = Code(
    "pair-unusable",
    "No client would talk to a server with this certificate: expired, of another key or authority, or of other names.",
    "`trimtab certs rotate --namespace NAMESPACE`; where cert-manager issues, renew it there.",
)
DUE = Code(
    "pair-due",
    "The certificate still works and should have been renewed by now.",
    "See the replicas' log for `certificates cannot be renewed`; `trimtab certs rotate --namespace NAMESPACE` does it "
    "now.",
)
NOT_CALLED = Code(
    "configuration-missing",
    "A webhook configuration is gone: API servers do not call us.",
    AGAIN,
)
NO_BUNDLE = Code(
    "ca-bundle-missing",
    "A webhook has no caBundle: API servers trust nobody who answers for it.",
    "The replicas write it within seconds: see their log. Where cert-manager is to do it, see its cainjector.",
)
DIFFERENT = Code(
    "ca-bundles-differ",
    "The webhooks of our two configurations do not trust the same authorities.",
    "The replicas write both within seconds; if it stays, something else writes one of them (GitOps, cert-manager).",
)
STRANGER = Code(
    "ca-bundle-strange",
    "A caBundle does not know the authority of the certificate that is served.",
    "The replicas put it right within seconds: see their log. `trimtab certs status --live --namespace "
    "NAMESPACE` tells whether they did.",
)
ELSEWHERE = Code(
    "service-other",
    "A webhook configuration leads API servers to another Service than ours.",
    AGAIN,
)
BLOCKS = Code(
    "failure-policy-fail",
    "The configuration says `failurePolicy: Fail`: while we are down, no pod is created.",
    f"Put it back to Ignore: {AGAIN}",
)
SLOW = Code(
    "timeout-long",
    "The configuration's timeout is long: while we are down, every pod that is created waits for it.",
    "Two or three seconds: `--timeout 3` or `webhook.timeoutSeconds: 3`. " + AGAIN,
)
ONCE = Code(
    "asked-once",
    "The configuration says `reinvocationPolicy: Never`: what later webhooks do to a pod is never seen again.",
    f"Put it back to IfNeeded: {AGAIN}",
)
SYSTEM = Code(
    "system-namespaces-asked",
    "Pods of kube-system, or of our own namespace, are sent to us: what the cluster needs to start would wait for us.",
    f"Put the selector back: {AGAIN}",
)
POOLS_ELSEWHERE = Code(
    "pools-asked-elsewhere",
    "ConfigMaps with a pool's label are sent to the webhook from other namespaces, where no pool counts: whoever may "
    "write one anywhere makes it work.",
    f"Put the selector back: {AGAIN}",
)
OVERRULED = Code(
    "may-be-overruled",
    "Another mutating webhook is called after ours and is asked again as we are: it has the last word about a pod.",
    "Nothing, where it changes other fields. Else exclude its namespaces, or name its configuration before `trimtab`.",
)
SILENT = Code(
    "webhook-silent",
    "A pod was created (not stored) and the webhook was not asked, or did not answer: pods go through unchanged.",
    "Look at `processes` and `certificates` first. Then the way from the API server to the Service: NetworkPolicies, "
    "a firewall between control plane and nodes (private clusters open port 8443 by a rule), the Service's endpoints.",
)
DEAF = Code(
    "validation-silent",
    "A PodPolicy that makes no sense would be stored: the validating webhook was not asked, or did not answer.",
    "As for `webhook-silent`; the two have a configuration each.",
)


def certificates(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    found = seen.secret
    if isinstance(found, Unreadable):
        yield unknown(found)
        return
    if found is None:
        yield error(NO_PAIR, f"Secret {seen.namespace}/{SECRET} holds no pair")
        return
    status = certs.certificate_status(SECRET, found, seen.here)
    name = f"{WEBHOOK}.{seen.namespace}.svc"
    if status.names and name not in status.names:
        yield error(BAD_PAIR, f"the certificate is for {', '.join(status.names)}, API servers ask for {name}")
    for problem in status.problems:
        yield warn(DUE, problem.says) if status.usable else error(BAD_PAIR, problem.says)
    if status.usable and not status.problems and name in status.names:
        yield ok(f"valid for another {status.days_left:.0f} days")


def trust(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    """Every caBundle of ours, in both configurations."""
    ours = (("MutatingWebhookConfiguration", _ours(seen.mutating)), ("ValidatingWebhookConfiguration", seen.validating))
    bundles: dict[tuple[str, str], bytes] = {}
    for kind, found in ours:
        if isinstance(found, Unreadable):
            yield unknown(found)
        elif found is None:
            yield error(NOT_CALLED, f"there is no {kind} {CONFIGURATION}")
        else:
            bundles |= {(kind, hook.name): hook.bundle for hook in found.hooks}
    yield from _trusting(bundles, seen.secret)


def _trusting(
    bundles: dict[tuple[str, str], bytes], secret: Read[certs.CertificateFiles | None]
) -> Iterator[DoctorFinding]:
    empty = [name for (_, name), bundle in bundles.items() if not bundle]
    if empty:
        yield error(NO_BUNDLE, f"{', '.join(empty)}: no caBundle")
    given = {key: bundle for key, bundle in bundles.items() if bundle}
    if len(set(given.values())) > 1:
        yield error(DIFFERENT, f"{len(set(given.values()))} different caBundles in {', '.join(n for _, n in given)}")
    if isinstance(secret, Unreadable) or secret is None:
        yield unknown(secret if secret is not None else "there is no pair to compare them with")
        return
    strange = [name for (_, name), bundle in given.items() if not certs.may_serve(secret, [bundle])]
    if strange:
        yield error(STRANGER, f"{', '.join(strange)}: the caBundle does not know the certificate that is served")
    elif bundles and not empty and len(set(given.values())) == 1:
        yield ok(f"{len(bundles)} webhooks trust the certificate that is served")


def configuration(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    """Of both; that one is missing is told by `trust`."""
    for found in (_ours(seen.mutating), seen.validating):
        if isinstance(found, Unreadable):
            yield unknown(found)
        elif found is not None:
            wrong = [finding for hook in found.hooks for finding in _hook(hook, seen.namespace)]
            names = ", ".join(hook.name for hook in found.hooks)
            yield from wrong or [ok(f"{names}: open when we fail, our Service, our selectors")]


def _hook(hook: WebhookState, namespace: str) -> Iterator[DoctorFinding]:
    if hook.service != (namespace, WEBHOOK):
        there = "/".join(hook.service) if hook.service else "a URL"
        yield error(ELSEWHERE, f"{hook.name} is called at {there}, not at {namespace}/{WEBHOOK}")
    if hook.fails:
        yield error(BLOCKS, f"{hook.name}: failurePolicy Fail")
    if hook.timeout > LONG:
        yield warn(SLOW, f"{hook.name}: {hook.timeout} s")
    if hook.name == POOLS and hook.namespaces != frozenset({namespace}):
        yield warn(POOLS_ELSEWHERE, f"{hook.name} is sent ConfigMaps of namespaces other than {namespace}")
    if not hook.creates_pods:
        return
    if not hook.again:
        yield warn(ONCE, f"{hook.name}: reinvocationPolicy Never")
    asked = sorted((DEFAULT_TERMS.system_namespaces | {namespace}) - hook.spares)
    if asked:
        yield error(SYSTEM, f"{hook.name} is sent pods of {', '.join(asked)}")


def order(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    """Configurations are called by name; whoever wants to be asked again is, in the same order."""
    found = seen.mutating
    if isinstance(found, Unreadable):
        yield unknown(found)
        return
    others = [(c.name, hook) for c in found if c.name != CONFIGURATION for hook in c.hooks if hook.creates_pods]
    later = [(name, hook) for name, hook in others if name > CONFIGURATION and hook.again and hook.name != VPA]
    for name, hook in later:
        yield warn(OVERRULED, f"{hook.name} ({name}) is called after ours, and again when we changed a pod")
    if not later:
        yield ok(f"{len(others)} other webhooks change pods; none has the last word over ours")


def answers(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    """Who asks must be able to create a pod there; it is not stored."""
    trial = seen.pod
    if isinstance(trial, Unreadable):
        yield unknown(trial)
        return
    said = next((text for text in trial.warnings if text.startswith("trimtab: here")), "")
    if said:
        yield ok(f"the API server asked us and had an answer within {trial.seconds:.2g} s ({said[9:]})")
    elif trial.lacks_right:
        yield unknown(trial.message, _ask("pods"))
    elif isinstance(seen.opted_out, Unreadable) or seen.opted_out:
        why = seen.opted_out if isinstance(seen.opted_out, Unreadable) else f"{seen.asked_in} keeps its pods from us"
        yield unknown(why, "Name another namespace by --ask-in.")
    elif trial.status >= 300:
        yield unknown(f"a pod in {seen.asked_in} was refused: {trial.message}", "Mend what it names, ask again.")
    else:
        yield error(SILENT, f"a pod in {seen.asked_in} was created after {trial.seconds:.2g} s without us being heard")


def validates(seen: ObservedCluster) -> Iterator[DoctorFinding]:
    trial = seen.document
    if isinstance(trial, Unreadable):
        yield unknown(trial)
    elif "denied the request" in trial.message and "trimtab.dev" in trial.message:
        yield ok("a PodPolicy that makes no sense is refused")
    elif trial.lacks_right:
        yield unknown(trial.message, _ask("podpolicies"))
    elif trial.status >= 300:
        yield unknown(f"a PodPolicy was refused, not by us: {trial.message}", "See the check `crd`.")
    else:
        yield error(DEAF, "a PodPolicy that makes no sense would be stored")


def _ask(what: str) -> str:
    return f"Ask as somebody who may create {what}; nothing is stored."


def _ours(found: Read[tuple[WebhookConfigurationState, ...]]) -> Read[WebhookConfigurationState | None]:
    if isinstance(found, Unreadable):
        return found
    return next((each for each in found if each.name == CONFIGURATION), None)


CHECKS = (
    Check(name="certificates", asks="Is the webhook's pair good?", judge=certificates, may=(NO_PAIR, BAD_PAIR, DUE)),
    Check(
        name="ca-bundle", asks="Do API servers trust that pair?", judge=trust,
        may=(NOT_CALLED, NO_BUNDLE, DIFFERENT, STRANGER),
    ),
    Check(
        name="configuration", asks="Are we called as we should be?", judge=configuration,
        may=(ELSEWHERE, BLOCKS, SLOW, ONCE, SYSTEM, POOLS_ELSEWHERE),
    ),
    Check(name="order", asks="Does anybody have the last word over us?", judge=order, may=(OVERRULED,)),
    Check(name="answers", asks="Does the API server reach us for a pod?", judge=answers, may=(SILENT,)),
    Check(name="validates", asks="Does the API server reach us for a document?", judge=validates, may=(DEAF,)),
)  # fmt: skip
