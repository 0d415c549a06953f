"""A marker is read once for a review, however many decisions are tried: whoever creates the pod chooses its size."""

import msgspec
import pytest

from tests.hostile import world
from tests.hostile.pods import SHAPES
from trimtab.admission.pod_decision import decide_pod
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.signature import SigningKeys
from trimtab.policy import changed_annotation
from trimtab.policy.pod_context import UNSIGNED, AdmissionSettings, MarkerSigner, PodContext

CLAIMING = next(shape.make for shape in SHAPES if shape.name == "forged-marker")
SIGNED = AdmissionSettings(signer=MarkerSigner(SigningKeys(b"k" * 32), slot=0))


def decoded(monkeypatch, terms):
    """How often the marker of a pod with 50 claims was decoded while it was judged, that it came with."""
    texts, pod = [], msgspec.convert(CLAIMING(50), Pod)
    plain = changed_annotation._decode_annotation

    def counted(result):
        texts.append(changed_annotation.annotation_text(result))
        return plain(result)

    monkeypatch.setattr(changed_annotation, "_decode_annotation", counted)
    decide_pod(PodContext(pod=pod, namespace=world.NAMESPACE, facts=world.facts(), settings=terms), world.policies())
    return texts.count(changed_annotation.annotation_text(pod))


def test_a_forged_marker_is_read_once_to_believe_it_or_not(monkeypatch):
    assert decoded(monkeypatch, SIGNED) == 1


def test_without_a_key_no_marker_is_read_to_be_believed(monkeypatch):
    monkeypatch.setattr(changed_annotation, "_decode_annotation", lambda pod: pytest.fail("the marker was read"))
    assert (
        changed_annotation.read_trusted_annotation(msgspec.convert(CLAIMING(50), Pod), world.NAMESPACE, UNSIGNED)
        is None
    )
