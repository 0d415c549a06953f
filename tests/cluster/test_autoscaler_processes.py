"""Which flags belong to which autoscaler's status."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.autoscaler_processes import (
    arguments_of_status,
    autoscaler_arguments,
    format_processes,
    split_processes,
)
from trimtab.cluster.cluster_autoscaler import STATUS_NAME, parse_flags

DEFAULT, SPOT = ("kube-system", STATUS_NAME), ("kube-system", "status-spot")
OF_TWO = split_processes("--scan-interval=5s; --status-config-map-name=status-spot --scan-interval=9s")


def test_semicolons_separate_the_flags_of_several_autoscalers() -> None:
    assert OF_TWO == (("--scan-interval=5s",), ("--status-config-map-name=status-spot", "--scan-interval=9s"))


@pytest.mark.parametrize("text", ["", " ", ";", "; ;"])
def test_a_text_without_words_names_no_process(text: str) -> None:
    assert split_processes(text) == ()


def test_an_open_quotation_mark_is_an_error() -> None:
    with pytest.raises(ValueError, match="quotation"):
        split_processes("--nodes='1:2")


words = st.text(st.characters(codec="ascii", categories=["L", "N"]) | st.sampled_from(" ;:=#'"), min_size=1)


@given(processes=st.lists(st.lists(words.map("--{}".format), min_size=1).map(tuple), max_size=3).map(tuple))
def test_what_is_written_splits_into_the_same(processes: tuple[tuple[str, ...], ...]) -> None:
    assert split_processes(format_processes(processes)) == processes


def test_each_status_has_the_flags_of_the_process_that_names_it() -> None:
    assert arguments_of_status(OF_TWO, DEFAULT) == OF_TWO[0]
    assert arguments_of_status(OF_TWO, SPOT) == OF_TWO[1]
    assert arguments_of_status(OF_TWO, ("kube-system", "other")) is None


def test_flags_that_name_no_status_hold_for_all_if_there_are_no_others() -> None:
    assert arguments_of_status(OF_TWO[:1], SPOT) == OF_TWO[0]
    assert arguments_of_status(OF_TWO[1:], DEFAULT) is None


def test_a_process_that_names_no_namespace_may_run_in_any() -> None:
    assert arguments_of_status(OF_TWO, ("scaling", "status-spot")) == OF_TWO[1]
    elsewhere = split_processes("--namespace=scaling --v=1; --namespace=other --v=2")
    assert arguments_of_status(elsewhere, ("other", STATUS_NAME)) == elsewhere[1]


OFFICIAL, MIRROR = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0", "mirror/ca:1"
FLAGS = ("--cloud-provider=aws", "--scale-down-utilization-threshold=0.9")


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (OFFICIAL, ["./cluster-autoscaler", *FLAGS]),
        (OFFICIAL, FLAGS),
        (MIRROR, ["./cluster-autoscaler", *FLAGS]),
        (MIRROR, ["cluster-autoscaler", *FLAGS]),
        (MIRROR, FLAGS),
        (MIRROR, ["/tini", "-s", "--", "cluster-autoscaler", *FLAGS]),
        (MIRROR, ["/dumb-init", "/usr/bin/cluster-autoscaler", *FLAGS]),
        (MIRROR, ["sh", "-c", f"exec ./cluster-autoscaler {' '.join(FLAGS)}"]),
        (MIRROR, ["sh", "-c", "./cluster-autoscaler --cloud-provider='aws' --scale-down-utilization-threshold 0.9"]),
        ("localhost:5000/hardened-cluster-autoscaler", FLAGS),
        ("registry.k8s.io/autoscaling/cluster-autoscaler-arm64:v1.34.0", FLAGS),
        ("registry.k8s.io/cluster-autoscaler@sha256:0a", FLAGS),
    ],
)
def test_a_container_that_runs_an_autoscaler_has_its_arguments(image: str, words: list[str]) -> None:
    arguments = autoscaler_arguments(image, words)
    assert arguments is not None
    assert parse_flags(arguments) == parse_flags(FLAGS)


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("quay.io/openshift/cluster-autoscaler-operator:4", ["cluster-autoscaler-operator", "-alsologtostderr"]),
        ("registry.k8s.io/cpa/cluster-proportional-autoscaler:1", ["/cluster-proportional-autoscaler", "--v=2"]),
        ("registry.k8s.io/addon-resizer:1", ["/pod_nanny", "--deployment", "cluster-autoscaler"]),
        ("kubectl:1", ["kubectl", "rollout", "restart", "deployment", "cluster-autoscaler"]),
        ("registry.k8s.io/kube-controller-manager:v1.34.0", ["kube-controller-manager", "--cloud-provider=aws"]),
        ("cluster-autoscaler/dashboard:1", ["serve"]),
        (OFFICIAL, []),
    ],
)
def test_other_programs_and_unknown_command_lines_are_no_autoscaler(image: str, words: list[str]) -> None:
    assert autoscaler_arguments(image, words) is None
