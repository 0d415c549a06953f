"""What would an owner's next pod ask for?"""

from trimtab.admission.readmitted import readmitted
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.api.workload import PodTemplate
from trimtab.cluster.owner import Owner
from trimtab.cluster.reason import Unreadable
from trimtab.policy.document import Policies
from trimtab.policy.facts import Facts
from trimtab.policy.load import load_policies

WEB = Owner("ReplicaSet", "web-5d4")
RAISE = "requests: {cpu: {from: policy, otherwise: 1500m, when: always}}"


def policies(actions: str, match: str = "{namespaces: {include: [team]}}") -> Policies:
    text = f"apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {{name: one}}\nspec:\n  match: {match}\n"
    loaded = load_policies([("one.yaml", f"{text}  actions: {{{actions}}}\n".encode())])
    assert not loaded.mistakes, loaded.mistakes
    return loaded.policies


def half_a_core() -> PodTemplate:
    asks = Resources(requests={"cpu": "500m", "memory": "64Mi"})
    return PodTemplate(spec=PodSpec(containers=(Container(name="main", image="pause", resources=asks),)))


def test_without_a_policy_for_it_it_asks_what_its_template_says():
    found = readmitted(half_a_core(), WEB, "other", policies(RAISE), Facts())
    assert found == {"cpu": 500, "memory": 64 << 20}


def test_a_policy_of_today_raises_what_it_asks():
    found = readmitted(half_a_core(), WEB, "team", policies(RAISE), Facts())
    assert found == {"cpu": 1500, "memory": 64 << 20}


def test_a_pod_that_would_be_denied_has_no_request_at_all():
    stray = change(half_a_core(), spec=change(half_a_core().spec, overhead={"cpu": "1"}))
    found = readmitted(stray, WEB, "team", policies("overhead: {stray: deny}"), Facts())
    assert isinstance(found, Unreadable)
    assert str(found).startswith("the next pod of ReplicaSet team/web-5d4: a policy denies it")
