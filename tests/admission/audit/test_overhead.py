"""Is the stored overhead the class's, and who fills it in?"""

import pytest

from tests.admission.audit.worlds import DAY, NOTHING, admitted, held, looked
from tests.build import facts, pod, policies, policy, runtime_class
from trimtab.admission.audit.causes import ChangeTimes
from trimtab.cluster.overhead_writer import OverheadWriter
from trimtab.cluster.reason import NotYet
from trimtab.policy.pod_context import AdmissionSettings

KATA = facts(runtime_class("kata", overhead={"cpu": "250m"}))
GREW = facts(runtime_class("kata", overhead={"cpu": "500m"}))
SANDBOXED = pod(runtime_class_name="kata")
BY_WEBHOOK = AdmissionSettings(overhead="webhook")
ANY = policies(policy("{labels: {add: {team: a}}}"))


def since(kata: int) -> ChangeTimes:
    return ChangeTimes(classes={"kata": float(kata)})


def codes(*pods: object, world: object = KATA, classes: ChangeTimes | None = None) -> list[str]:
    audit_state = looked(held(*pods), NOTHING, world, classes)  # type: ignore[arg-type]
    return [one.reason.code.name for one in audit_state.overhead]


def test_overhead_as_the_class_says_is_well() -> None:
    assert codes(admitted(SANDBOXED, NOTHING, KATA)) == []


def test_overhead_of_before_the_classs_change_is_stale() -> None:
    assert codes(admitted(SANDBOXED, NOTHING, KATA), world=GREW) == ["overhead-stale"]


def test_overhead_that_nobody_filled_in_is_missing() -> None:
    assert codes(admitted(SANDBOXED, NOTHING, KATA, runtime_class_admission=False)) == ["overhead-missing"]


def test_a_pod_older_than_the_classs_overhead_is_stale_not_missing() -> None:
    bare = admitted(SANDBOXED, NOTHING, facts(runtime_class("kata")))
    assert codes(bare, classes=since(DAY + 60)) == ["overhead-stale"]


def test_a_class_that_is_gone_tells_nothing() -> None:
    assert codes(admitted(SANDBOXED, NOTHING, KATA), world=facts()) == []


@pytest.mark.parametrize(
    ("on", "setting", "wrong"),
    [(True, "server", False), (False, "server", True), (True, "webhook", True), (False, "webhook", False)],
)
def test_running_pods_show_a_wrong_setting(on: bool, setting: OverheadWriter, wrong: bool) -> None:
    terms = AdmissionSettings(overhead=setting)
    by = ANY if setting == "webhook" else NOTHING
    stored = admitted(SANDBOXED, NOTHING, KATA, runtime_class_admission=on)  # nobody of ours was there
    audit_state = looked(held(stored), by, KATA, since(DAY - 100), terms)
    assert (audit_state.setting is not None) == wrong


def test_overhead_that_we_wrote_shows_nothing() -> None:
    stored = admitted(SANDBOXED, ANY, KATA, terms=BY_WEBHOOK, runtime_class_admission=False)
    audit_state = looked(held(stored), ANY, KATA, since(DAY - 100), BY_WEBHOOK)
    assert isinstance(audit_state.filled_by, NotYet)
    assert audit_state.setting is None


def test_a_pod_from_just_after_the_classs_change_shows_nothing() -> None:
    stored = admitted(SANDBOXED, NOTHING, KATA, runtime_class_admission=False)
    assert isinstance(looked(held(stored), NOTHING, KATA, since(DAY - 1)).filled_by, NotYet)


def test_the_youngest_pod_is_believed() -> None:
    """The API server's flags were changed in between."""
    old = admitted(SANDBOXED, NOTHING, KATA, created=DAY - 500)
    young = admitted(SANDBOXED, NOTHING, KATA, runtime_class_admission=False, number=2)
    filled_by = looked(held(old, young), NOTHING, KATA, since(DAY - 1000)).filled_by
    assert not isinstance(filled_by, NotYet)
    assert filled_by.by == "webhook"
