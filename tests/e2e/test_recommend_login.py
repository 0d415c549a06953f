"""`trimtab recommend` and a real Prometheus that holds two clusters, and one that asks for a client certificate."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs.ca import create_authority
from certs.ca import create_serving_pair as serving_pair
from tests.e2e.real_prometheus import DAYS, Used, missing, serving
from tests.reasons import has_facts
from tests.usage.test_login import own_pair
from trimtab.histogram.histogram import MAX_RELATIVE_ERROR

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

ASKED = ("--now", "2026-01-19T00:00:00Z", "--step", "1800", "--rate", "2h", "--days", str(DAYS), "--rule", "p95")
PROD, STAGE = Used(number=3, cluster="prod"), Used(number=3, cluster="stage", times=5)
PASSWORD, BCRYPT = "a-test-only", "$2b$04$z8BJf6tB2iHXaRgagj4/b.d2EWL7Joan6EDsDySdn2eTXLrZSx4CO"


def recommend(url: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trimtab", "recommend", "--prometheus", url, *ASKED, *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def containers(url: str, *more: str) -> list[dict[str, Any]]:
    done = recommend(url, "-o", "json", *more)
    assert done.returncode == 0, done.stderr
    containers: list[dict[str, Any]] = json.loads(done.stdout)["containers"]
    return containers


def cores(text: str) -> float:
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


# ── two clusters in one server ───────────────────────────────────────────
@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("both"), [PROD, STAGE]) as url:
        yield url


def test_two_clusters_are_refused_with_their_names_and_what_to_do(both: str) -> None:
    done = recommend(both)
    assert done.returncode == 2
    assert has_facts(done.stderr, "--prometheus", "one cluster only", "prod", "stage")
    assert "--matcher 'cluster=\"prod\"'" in done.stderr
    assert "--by cluster" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("one", [PROD, STAGE], ids=["prod", "stage"])
def test_a_matcher_reads_one_of_them_alone(both: str, one: Used) -> None:
    (container,) = containers(both, "--matcher", f'cluster="{one.cluster}"')
    assert cores(container["cpu"]["proposed"]) == pytest.approx(3 * one.base, rel=MAX_RELATIVE_ERROR, abs=0.0011)


def test_by_cluster_reports_each_on_its_own(both: str) -> None:
    results = {one["cluster"]: one for one in containers(both, "--by", "cluster")}
    assert results.keys() == {"prod", "stage"}
    assert {one["workload"] for one in results.values()} == {PROD.workload}
    for one in (PROD, STAGE):
        assert cores(results[one.cluster]["cpu"]["proposed"]) == pytest.approx(
            3 * one.base, rel=MAX_RELATIVE_ERROR, abs=0.0011
        )


# ── logging in ───────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, now = tmp_path_factory.mktemp("pairs"), datetime.now(UTC)
    ca = create_authority(now=now)
    pairs = {"server": serving_pair(ca, ["localhost"], now=now), "client": own_pair(now), "stranger": own_pair(now)}
    for name, pair in pairs.items():
        (folder / f"{name}.crt").write_bytes(pair.certificate)
        (folder / f"{name}.key").write_bytes(pair.key)
    (folder / "ca.crt").write_bytes(ca.certificate)
    return folder


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[str]:
    """Both: a client certificate, then a user and a password."""
    web = f"""
tls_server_config:
  cert_file: {files / "server.crt"}
  key_file: {files / "server.key"}
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: {files / "client.crt"}
basic_auth_users:
  bob: {BCRYPT}
"""
    client = ssl.create_default_context(cafile=str(files / "ca.crt"))
    client.load_cert_chain(files / "client.crt", files / "client.key")
    with serving(tmp_path_factory.mktemp("guarded"), [Used(number=3)], web=web, client=client) as url:
        yield url


def own(files: Path, name: str = "client") -> tuple[str, ...]:
    return (
        "--ca",
        str(files / "ca.crt"),
        "--certificate",
        str(files / f"{name}.crt"),
        "--key",
        str(files / f"{name}.key"),
    )


def test_with_certificate_and_password_usage_is_read(guarded: str, files: Path) -> None:
    (container,) = containers(guarded.replace("://", f"://bob:{PASSWORD}@"), *own(files))
    assert container["workload"] == Used(number=3).workload
    assert container["memory"]["proposed"]


def test_without_a_certificate_the_options_that_it_takes_are_named(guarded: str, files: Path) -> None:
    for more in (("--ca", str(files / "ca.crt")), own(files, "stranger")):
        done = recommend(guarded, *more)
        assert done.returncode == 3
        assert has_facts(done.stderr, "client certificate", "--certificate", "--key")
        assert "Traceback" not in done.stderr


def test_without_a_password_what_logs_in_is_named_and_a_wrong_one_is_not_shown(guarded: str, files: Path) -> None:
    done = recommend(guarded.replace("://", "://bob:not-the-one@"), *own(files))
    assert done.returncode == 3
    assert "401" in done.stderr
    assert "--header-file" in done.stderr
    assert "not-the-one" not in done.stderr


def test_without_its_authority_the_servers_certificate_is_not_trusted(guarded: str, files: Path) -> None:
    done = recommend(guarded, *own(files)[2:])
    assert done.returncode == 3
    assert "CERTIFICATE_VERIFY_FAILED" in done.stderr or "certificate verify failed" in done.stderr
