"""Who logs in, and how is a slow server asked?"""

import ssl
import threading
import time
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import urllib3
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.ca import create_authority
from certs.ca import create_serving_pair as serving_pair
from certs.pem_files import KeyPair
from tests.cli.recommending import prometheus
from tests.cli.snapshots import told, trimtab
from tests.reasons import has_facts
from tests.usage.fake_prometheus import Answer, Asked, serving
from tests.usage.test_prometheus import END, START, at, shop
from trimtab.usage.errors import RefusedSource, UnreachableSource
from trimtab.usage.http_client import HttpApi, RetryPolicy, _describe_error
from trimtab.usage.prometheus import QueryPlan
from trimtab.usage.prometheus_queries import Names

ASKED = ("--now", "2026-01-19T00:00:00Z", "--step", "3600")
BASIC = "Basic " + b64encode(b"bob:se/cr@et").decode()


def test_a_user_and_a_password_in_the_url_log_in_and_are_told_nobody() -> None:
    def answer(request: Asked) -> Answer:
        return prometheus(request) if request[2].get("Authorization") == BASIC else (401, BASIC.encode())

    with serving(answer) as server:
        url = server.url.replace("://", "://bob:se%2Fcr%40et@")
        assert told("recommend", "--prometheus", url, *ASKED)["containers"]
        refused = trimtab("recommend", "--prometheus", url, "--header", "authorization: Bearer wrong-token", *ASKED)
    assert refused.exit_code == 3
    for secret in ("se%2Fcr%40et", "se/cr@et", BASIC, "wrong-token"):
        assert secret not in refused.output


def test_files_and_the_environment_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, token = tmp_path / "headers", tmp_path / "token"
    lines.write_text("# for the gateway\nAuthorization: Bearer from-a-file\nX-Scope-OrgID: shop\n")
    token.write_text("from-a-token-file\n")
    with serving(prometheus) as server:
        told("recommend", "--prometheus", server.url, *ASKED, "--header-file", lines)
        told("recommend", "--prometheus", server.url, *ASKED, "--token-file", token)
        monkeypatch.setenv("TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN", "from-the-environment")
        told("recommend", "--prometheus", server.url, *ASKED)
    assert {headers.get("Authorization") for _, _, headers in server.asked} == {
        "Bearer from-a-file",
        "Bearer from-a-token-file",
        "Bearer from-the-environment",
    }
    assert "shop" in {headers.get("X-Scope-OrgID") for _, _, headers in server.asked}


def test_the_token_of_the_environment_logs_in_for_a_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN", "from-the-environment")
    with serving(prometheus) as server:
        trimtab(
            "fleet",
            "ingest",
            "--prometheus",
            server.url,
            "--usage",
            tmp_path,
            "--cluster-name",
            "shop",
            "--days",
            "1",
            *ASKED,
        )
    assert {headers.get("Authorization") for _, _, headers in server.asked} == {"Bearer from-the-environment"}


def test_a_file_that_is_no_header_is_named_and_not_shown(tmp_path: Path) -> None:
    lines = tmp_path / "headers"
    lines.write_text("my secret without a colon\n")
    result = trimtab(
        "recommend", "--prometheus", "http://127.0.0.1:9", "--header-file", lines, "--token-file", tmp_path / "no"
    )
    assert result.exit_code == 2
    assert "NAME: VALUE" in result.output
    assert has_facts(result.output, "a file", "read")
    assert "secret" not in result.output


def own_pair(now: datetime) -> KeyPair:
    """A client's certificate that it signed itself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "client")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    dated = builder.serial_number(1).not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
    signed = dated.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False).sign(
        key, hashes.SHA256()
    )
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(certificate=signed.public_bytes(Encoding.PEM), key=written)


def test_a_server_that_asks_for_a_client_certificate_gets_one(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    ca = create_authority(now=now)
    for name, pair in (("server", serving_pair(ca, ["localhost"], now=now)), ("client", own_pair(now))):
        (tmp_path / f"{name}.crt").write_bytes(pair.certificate)
        (tmp_path / f"{name}.key").write_bytes(pair.key)
    root = tmp_path / "ca.crt"
    root.write_bytes(ca.certificate)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "client.crt"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            url, once = f"https://localhost:{server.server_address[1]}", RetryPolicy(tries=1)
            own = HttpApi(url, ca=str(root), certificate=str(tmp_path / "client.crt"), key=str(tmp_path / "client.key"))
            assert own.get("/api/v1/query", {}, "ask") == b"ok"
            with pytest.raises(UnreachableSource, match="localhost"):
                HttpApi(url, ca=str(root), retry_policy=once).get("/api/v1/query", {}, "ask")
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("alert", ["SSLV3_ALERT_BAD_CERTIFICATE", "TLSV13_ALERT_CERTIFICATE_REQUIRED"])
def test_a_server_that_was_shown_no_certificate_says_which_option_it_takes(alert: str) -> None:
    assert "--certificate and --key" in _describe_error(urllib3.exceptions.SSLError(f"[SSL: {alert}]"))


@pytest.mark.parametrize("status", [503, 504, 422])
def test_a_query_that_times_out_is_asked_in_halves_at_once(status: int) -> None:
    tries: list[int] = []

    def answer(request: Asked) -> Answer:
        pods = request[1].get("query", "").count("web-")
        if "query_range" in request[0] and pods > 1:
            tries.append(pods)
            return status, {"status": "error", "error": "query timed out in expression evaluation"}
        return shop(request)

    with serving(answer) as server:
        it = at(server.url, QueryPlan(days_per_query=14))
        objects = list(it.read_series(it.plan_queries(START, END - 1)))
    assert len(objects) == 3 * 2
    assert sorted(tries) == [2, 2, 3, 3]  # each size once for cpu and once for memory


def test_a_server_that_does_not_answer_in_time_is_asked_for_less() -> None:
    def answer(request: Asked) -> Answer:
        if "query_range" in request[0] and request[1]["query"].count("web-") > 1:
            time.sleep(1.0)
        return shop(request)

    with serving(answer) as server:
        it = at(server.url, QueryPlan(days_per_query=14))
        it.source.retry_policy = RetryPolicy(deadline=0.4)
        assert len(list(it.read_series(it.plan_queries(START, END - 1)))) == 3 * 2


def test_a_piece_that_gets_no_smaller_is_tried_again() -> None:
    answers = iter([503, 503, 200])

    def answer(request: Asked) -> Answer:
        if "query_range" in request[0] and (status := next(answers, 200)) != 200:
            return status, {"status": "error", "error": "query timed out"}
        return shop(request)

    with serving(answer) as server:
        it = at(server.url, QueryPlan(pods_per_query=1, days_per_query=1))
        (piece, *_) = it.plan_queries(END - 3600, END - 1)
        assert len(list(it.read_series([piece]))) == 1


def test_a_few_queries_are_asked_at_the_same_time_and_come_in_order() -> None:
    together, most, lock = 0, 0, threading.Lock()

    def answer(request: Asked) -> Answer:
        nonlocal together, most
        if "query_range" not in request[0]:
            return shop(request)
        with lock:
            together += 1
            most = max(most, together)
        time.sleep(0.02)
        with lock:
            together -= 1
        return shop(request)

    with serving(answer) as server:
        it = at(server.url, QueryPlan(pods_per_query=1, days_per_query=2, max_concurrent_queries=3))
        pieces = it.plan_queries(START, END - 1)
        starts = [series.times[0] for series in it.read_series(pieces)]
    assert starts == [piece.start for piece in pieces]
    assert most == 3


def test_the_first_mistake_ends_the_reading() -> None:
    with serving(lambda request: (400, b"no") if "query_range" in request[0] else shop(request)) as server:
        it = at(server.url, QueryPlan(pods_per_query=1))
        with pytest.raises(RefusedSource):
            list(it.read_series(it.plan_queries(START, END - 1)))


def test_renamed_metrics_labels_and_recording_rules_are_asked_for() -> None:
    names = Names(cpu_recorded="pod:cpu:rate5m", memory="working_set", labels={"pod": "k8s_pod"})

    def answer(request: Asked) -> Answer:
        return shop((request[0].replace("k8s_pod", "pod"), request[1], request[2]))

    with serving(answer) as server:
        it = at(server.url, QueryPlan(names=names, extra_matcher='cluster="a"'))
        list(it.read_series(it.plan_queries(START, END - 1, ["shop"])))
    queries = {query["query"] for path, query, _ in server.asked if path.endswith("query_range")}
    assert any("avg_over_time(pod:cpu:rate5m{" in query for query in queries)
    assert any("max_over_time(working_set{" in query for query in queries)
    assert all(query.startswith("label_replace(max by (namespace, k8s_pod, container)") for query in queries)
    assert all('"pod", "$1", "k8s_pod"' in query for query in queries)
