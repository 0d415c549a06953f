"""Which flags belong to which autoscaler's status."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.autoscaler_processes import arguments_of_status, format_processes, split_processes
from trimtab.cluster.cluster_autoscaler import STATUS_NAME

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
