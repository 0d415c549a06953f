"""The name of a new object is no other object's."""

from trimtab.cluster.free_name import choose_free_name


def test_a_name_that_is_free_is_taken() -> None:
    assert choose_free_name("web", "Deployment", {"api"}) == "web"


def test_a_taken_name_gets_the_kind_and_then_a_number() -> None:
    assert choose_free_name("web", "DaemonSet", {"web"}) == "web-daemonset"
    assert choose_free_name("web", "DaemonSet", {"web", "web-daemonset", "web-daemonset-2"}) == "web-daemonset-3"
