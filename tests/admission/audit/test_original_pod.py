"""What of a stored pod is what was submitted, and which pods are alike?"""

from tests.admission.audit.worlds import SIZES, admitted, held
from tests.build import NAMESPACE, container, decided, owners, pod, policies
from trimtab.admission.audit.original_pod import NOT_HELD, reconstruct_submitted
from trimtab.cluster.api.meta import Metadata, change, value_or
from trimtab.cluster.api.pod import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, Pod, Volume
from trimtab.policy import changed_annotation


def test_pods_of_one_template_are_alike() -> None:
    first, second = held(admitted(pod(), number=1), admitted(pod(), number=2))
    assert first.alike is second.alike
    assert first.name != second.name


def test_a_pod_of_another_size_is_not_like_them() -> None:
    first, second = held(admitted(pod()), admitted(pod(container(requests={"cpu": "1"})), number=2))
    assert first.alike is not second.alike


def test_our_marker_is_read_though_the_server_gave_the_name_afterwards() -> None:
    [running_pod] = held(admitted(pod(), policies(SIZES)))
    assert running_pod.alike.marker is not None
    assert running_pod.alike.pod.metadata.name == ""


def test_pods_that_their_controller_names_are_alike_with_their_markers() -> None:
    """A StatefulSet's pods had their names when they were sent; so their markers differ."""

    def stateful(name: str) -> Pod:
        meta = Metadata(name=name, namespace=NAMESPACE, owner_references=owners("StatefulSet/web"))
        sent = change(pod(), metadata=meta)
        return decided(sent, policies(SIZES)).pod

    first, second = held(stateful("web-0"), stateful("web-1"))
    assert first.alike is second.alike
    assert first.alike.marker is not None


def test_a_bare_pod_keeps_its_name_unless_the_server_drew_it() -> None:
    named, drawn = (
        reconstruct_submitted(change(pod(), metadata=Metadata(name=name, generate_name="job-")))
        for name in ("job-x", "job-bcdfg")
    )
    assert (named.metadata.name, drawn.metadata.name) == ("job-x", "")


def test_a_marker_copied_from_another_pod_is_none() -> None:
    stored = admitted(pod(), policies(SIZES))
    moved = change(stored, metadata=change(stored.metadata, owner_references=owners("ReplicaSet/other")))
    [running_pod] = held(moved)
    assert running_pod.alike.marker is None


def test_of_annotations_nobody_reads_only_their_being_there_is_held() -> None:
    first, second = (
        reconstruct_submitted(admitted(pod(annotations={"cni.example/ip": ip, "trimtab.dev/opt-out": "true"})))
        for ip in ("10.0.0.1", "10.0.0.2")
    )
    assert first == second
    assert value_or(first.metadata.annotations, {}) == {"cni.example/ip": NOT_HELD, "trimtab.dev/opt-out": "true"}


def test_the_tokens_volume_makes_no_difference() -> None:
    first, second = (
        reconstruct_submitted(admitted(pod(volumes=(Volume(name=f"kube-api-access-{x}"),)))) for x in ("abcde", "x")
    )
    assert first == second


def test_pods_of_a_daemon_set_are_alike_on_all_nodes() -> None:
    def daemon(node: str) -> object:
        from trimtab.cluster.api.meta import SelectorRequirement as Requirement

        field = Requirement(key="metadata.name", operator="In", values=(node,))
        terms = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
        affinity = Affinity(node_affinity=NodeAffinity(required=terms))
        return reconstruct_submitted(admitted(pod(affinity=affinity), owner="DaemonSet/logs"))

    assert daemon("n1") == daemon("n2")


def test_finished_and_leaving_pods_do_not_run() -> None:
    stored = admitted(pod())
    done = change(stored, status=change(stored.status, phase="Succeeded"))
    leaving = change(stored, metadata=change(stored.metadata, deletion_timestamp="2026-11-21T00:00:00Z"))
    assert [running_pod.running for running_pod in held(stored, done, leaving)] == [True, False, False]


def test_what_is_held_of_a_marked_pod_decides_as_the_marker_says() -> None:
    [running_pod] = held(admitted(pod(), policies(SIZES)))
    assert (
        changed_annotation.read_claimed_annotation(running_pod.alike.pod, running_pod.namespace)
        == running_pod.alike.marker
    )
