"""A Spark session on one machine is closed to other machines and users."""

import pytest

from trimtab.fleet.engine_spark import local_configuration


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4]", "local-cluster[2,1,1024]"])
def test_a_local_session_listens_on_loopback_and_authenticates(master: str) -> None:
    configuration = local_configuration(master)
    addresses = {configuration["spark.driver.bindAddress"], configuration["spark.driver.host"]}
    assert (addresses, configuration["spark.authenticate"]) == ({"127.0.0.1"}, "true")


def test_each_session_has_a_secret_of_its_own() -> None:
    first, second = (local_configuration("local[*]")["spark.authenticate.secret"] for _ in range(2))
    assert (len(first), first == second) == (64, False)


@pytest.mark.parametrize("master", ["spark://host:7077", "k8s://https://host", "yarn", "sc://host"])
def test_a_cluster_keeps_its_own_configuration(master: str) -> None:
    assert local_configuration(master) == {}
