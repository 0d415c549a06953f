"""Marked secrets stand wherever one may stand; nothing that any process or verb writes holds one of them."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tests.controlplane import environ
from tests.e2e.installed import Installed
from tests.e2e.replicas import INTERVALS, ROOT, Replica, _anything
from trimtab.cli.main import VERBS
from trimtab.installation.installed_processes import find_installed_process
from trimtab.installation.names import CERTIFICATE_SECRET
from trimtab.installation.processes.webhook import webhook_environment
from trimtab.runtime.environment import variable_name

MARK = "q7Zx"
"""Begins every secret of ours: found in any text, and no word of anybody's."""
DATA, VARIABLE, ARGUMENT, PASSWORD = (f"{MARK}-{word}-hunter2" for word in ("data", "variable", "argument", "password"))
BEARER, STOLEN = f"{MARK}-prometheus-bearer", f"{MARK}-token-of-nobody"


class Echo:
    """A source of usage that refuses everybody, and repeats what it was sent to who asked."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                body = f"refused: {self.headers.get('Authorization')}, {dict(self.headers)}".encode()
                self.send_response(403)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://somebody:{PASSWORD}@127.0.0.1:{self.server.server_address[1]}"


class Marked:
    """The cluster with secrets in it, and everything that was written so far."""

    def __init__(self, here: Installed, home: Path) -> None:
        self.here, self.home, self.echo = here, home, Echo()
        self.written: dict[str, bytes] = {}
        self.secrets = {DATA, VARIABLE, ARGUMENT, PASSWORD, BEARER, STOLEN, base64.b64encode(DATA.encode()).decode()}
        self._mark()

    def _mark(self) -> None:
        team = self.here.cluster
        team.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"key": DATA}})
        container = {
            "name": "app",
            "image": "app:1",
            "args": [f"--password={ARGUMENT}"],
            "env": [{"name": "DB_PASSWORD", "value": VARIABLE}],
        }
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
        selector = {"matchLabels": {"app": "web"}}
        spec = {"replicas": 1, "selector": selector, "template": template}
        team.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
        for value in team.api.request(
            "GET", f"/api/v1/namespaces/{self.here.values.namespace}/secrets/{CERTIFICATE_SECRET}"
        )["data"].values():
            pem = base64.b64decode(value).decode()
            if "PRIVATE" in pem:
                self.secrets.add(pem.splitlines()[1])
        for login in ("webhook", "watchdog", "compactor", "recommender"):
            document = yaml.safe_load(self.here.login_of(login).read_text())
            self.secrets.add(document["users"][0]["user"]["token"])
        person = yaml.safe_load(team.kubeconfig.read_text())["users"][0]["user"]
        self.secrets.add(person["client-key-data"][100:160])

    def kubeconfig(self, name: str, text: str | None = None) -> Path:
        """One whose token nobody knows, or with this text."""
        document = yaml.safe_load(self.here.cluster.kubeconfig.read_text())
        document["users"][0]["user"] = {"token": STOLEN}
        file = self.home / name
        file.write_text(yaml.safe_dump(document) if text is None else text)
        return file

    def said(self, name: str, content: bytes) -> None:
        with contextlib.suppress(OSError, zlib.error):
            content = gzip.decompress(content)
        self.written[name] = content

    def leaked(self) -> list[tuple[str, str]]:
        """(who, which secret)."""
        return [
            (name, secret)
            for name, content in self.written.items()
            for secret in sorted(self.secrets)
            if secret.encode() in content or base64.b64encode(secret.encode())[:-4] in content
        ]

    def verb(self, *arguments: str, kubeconfig: Path | None = None, stdin: str = "") -> int:
        command = [sys.executable, "-m", "trimtab", *arguments]
        surroundings = {**environ.plain(), "KUBECONFIG": str(kubeconfig or self.here.cluster.kubeconfig)}
        done = subprocess.run(
            command, cwd=ROOT, env=surroundings, input=stdin.encode(), capture_output=True, timeout=120, check=False
        )
        self.said(" ".join(arguments) + (" (bad login)" if kubeconfig else ""), done.stdout + b"\n" + done.stderr)
        return done.returncode

    @contextlib.contextmanager
    def process(self, name: str, kubeconfig: Path, **settings: object) -> Iterator[Path]:
        """Its ready file; what it said is kept when it ended."""
        home = self.home / f"{name}-{time.monotonic_ns()}"
        home.mkdir()
        values = self.here.values
        actual_webhook_environment = (
            webhook_environment(values) if name == "webhook" else find_installed_process(name).environment(values)
        )
        own = {
            "LISTEN": "127.0.0.1:0",
            "READY_FILE": home / "ready.json",
            "LOG_LEVEL": "debug",
            "SHUTDOWN_DELAY_SECONDS": 0,
            "CERTS_FOLDER": home / "certs",
            "CERTS_CHECK_INTERVAL_SECONDS": 0.3,
            **settings,
        }
        own = {key: value for key, value in own.items() if name == "webhook" or key not in WEBHOOK_ONLY}
        if name != "webhook":
            own[INTERVALS[name].upper()] = 1
        surroundings = {**environ.plain(), **actual_webhook_environment, "KUBECONFIG": str(kubeconfig)}
        surroundings |= {variable_name(name, key.lower()): str(value) for key, value in own.items()}
        with (home / "log").open("wb") as log:
            argv = [sys.executable, "-m", "trimtab", name]
            running = subprocess.Popen(argv, cwd=ROOT, env=surroundings, stdout=log, stderr=log)
            try:
                yield home
            finally:
                running.terminate()
                running.wait(60)
        self.said(home.name, (home / "log").read_bytes())

    def pages(self, home: Path) -> None:
        url = json.loads((home / "ready.json").read_text())["url"]
        for path in ("/metrics", "/readyz", "/healthz", "/missing"):
            with contextlib.suppress(urllib.error.HTTPError):
                context = _anything() if url.startswith("https") else None
                with urllib.request.urlopen(url + path, timeout=10, context=context) as answer:
                    self.said(f"{home.name}{path}", answer.read())


WEBHOOK_ONLY = ("SHUTDOWN_DELAY_SECONDS", "CERTS_FOLDER", "CERTS_CHECK_INTERVAL_SECONDS")


@pytest.fixture(scope="module")
def marked(here: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Marked]:
    marker = Marked(here, tmp_path_factory.mktemp("marked"))
    yield marker
    marker.echo.server.shutdown()
    marker.echo.server.server_close()


@pytest.mark.parametrize("name", ["webhook", "watchdog", "compactor", "recommender"])
def test_a_process_that_works_writes_no_secret(marked: Marked, name: str) -> None:
    with marked.process(name, marked.here.login_of(name)) as home:
        marked.here.cluster.eventually((home / "ready.json").exists, within=60)
        text = "ready" if name == "webhook" else f"{name}.leads"
        marked.here.cluster.eventually(lambda: text in (home / "log").read_text(), within=60)
        marked.here.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"p-{name}"},
                "spec": {"containers": [{"name": "app", "image": "a:1", "env": [{"name": "X", "value": VARIABLE}]}]},
            }
        )
        time.sleep(3)  # some rounds
        marked.pages(home)
    assert marked.leaked() == []


@pytest.mark.parametrize("name", ["webhook", "watchdog", "compactor", "recommender"])
def test_a_process_whose_login_is_refused_writes_no_secret(marked: Marked, name: str) -> None:
    with marked.process(name, marked.kubeconfig("nobody.kubeconfig")) as home:
        marked.here.cluster.eventually(lambda: "nauthorized" in (home / "log").read_text(), within=60)
    assert marked.leaked() == []


def test_a_recommender_whose_prometheus_repeats_its_log_in_writes_no_secret(marked: Marked) -> None:
    (marked.home / "bearer").write_text(BEARER)
    more = {"PROMETHEUS_URL": marked.echo.url, "PROMETHEUS_TOKEN_FILE": marked.home / "bearer"}
    with marked.process("recommender", marked.here.login_of("recommender"), **more) as home:
        marked.here.cluster.eventually(lambda: "collect.failed" in (home / "log").read_text(), within=60)
        marked.pages(home)
    assert marked.leaked() == []


POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: given}}
spec:
  containers: [{{name: app, image: "a:1", args: ["{ARGUMENT}"], env: [{{name: X, value: {VARIABLE}}}]}}]
"""
LIVE = ("--cluster", "live")
CASES: dict[str, Sequence[tuple[str, ...]]] = {
    "admit": [("admit", *LIVE, "--running"), ("admit", *LIVE, "--running", "-o", "json")],
    "plan": [
        ("plan", *LIVE),
        ("plan", *LIVE, "-o", "html"),
        ("plan", *LIVE, "--for", "{pod}", "--as-order"),
        ("plan", *LIVE, "--for-pending", "-o", "json"),
        ("plan", *LIVE, "--for-node-of", "web", "--as-order"),
        ("plan", *LIVE, "--group", "small=m5.large,zone=z1,nodepool=small"),
    ],
    "drain": [
        ("drain", "no-such-node"),
        ("drain", "no-such-node", "--through-compactor"),
        ("drain", "no-such-node", "--surge-pods", "3"),
        ("drain", "no-such-node", "--dry-run", "-o", "json"),
        ("drain", "--release"),
    ],
    "simulate": [
        ("simulate", *LIVE),
        ("simulate", *LIVE, "-o", "json"),
        ("simulate", *LIVE, "--replace"),
        ("simulate", "--churn", "--churn-hours", "1", "-o", "json"),
    ],
    "recommend": [("recommend", *LIVE, "--prometheus", "{echo}", "--header", f"Authorization: Bearer {BEARER}")],
    "recommender": [("recommender", "--once", "--listen", "127.0.0.1:0", "--prometheus", "{echo}")],
    "compactor": [("compactor", "status"), ("compactor", "history"), ("compactor", "status", "-o", "json")],
    "pools": [("pools", "import", "{pod}", "--take-over")],
    "runtimeclass": [("runtimeclass", "measure", *LIVE, "--summary", "{pod}")],
    "policies": [("policies", "list"), ("policies", "check", "{pod}"), ("policies", "rollout", "x", *LIVE)],
    "capture": [
        ("capture",),
        ("capture", "--hash-names"),
        ("capture", "--every", "1s", "--for", "1s", "-O", "{certs}/rounds"),
        (
            "capture",
            "--every",
            "1s",
            "--for",
            "1s",
            "--delete-after",
            "1d",
            "--config-maps-in",
            "x",
            "-O",
            "{certs}/few",
        ),
    ],
    "replay": [("replay", "--captures", "{pod}")],
    "certs": [("certs", "status", "--live"), ("certs", "rotate"), ("certs", "status", "{certs}")],
    "install": [("install",), ("install", "--apply", "--dry-run")],
    "doctor": [("doctor",), ("doctor", "-o", "json")],
    "webhook": [("webhook", "--certs", "{certs}", "--policies", "{pod}")],
    "watchdog": [("watchdog", "--policies", "{pod}")],
    "machines": [("machines", "rank", *LIVE), ("machines", "legacy", *LIVE, "--pool", "old")],
    "scheduler": [("scheduler", "config", *LIVE), ("scheduler", "manifests")],
    "reserved": [
        ("reserved", "formula", *LIVE),
        ("reserved", "measure", *LIVE),
        ("reserved", "measure", "--prometheus", "{echo}", "--header", f"Authorization: Bearer {BEARER}"),
    ],
    "lint": [("lint", *LIVE), ("lint", "-f", "{pod}", "-o", "json")],
    "idle": [("idle", *LIVE), ("idle", *LIVE, "-o", "json")],
    "vpa": [("vpa", "propose", *LIVE, "--usage", "{pod}")],
    "metrics-api": [("metrics-api", "check", "{pod}"), ("metrics-api", "--rules", "{pod}", "--certs", "{certs}")],
    "autoscaler": [("autoscaler", "propose", *LIVE, "--usage", "{pod}")],
    "top": [("top", "--once")],
    "fleet": [
        ("fleet", "plan", "--clusters", "{pod}"),
        (
            "fleet",
            "ingest",
            "--prometheus",
            "{echo}",
            "--header",
            f"Authorization: Bearer {BEARER}",
            "--usage",
            "{certs}",
            "--cluster-name",
            "a",
        ),
    ],
    "savings": [("savings",), ("savings", "-o", "json"), ("savings", "--expected")],
    "report": [("report", "{pod}"), ("report", "{pod}", "-o", "html")],
    "why": [("why", "pod", "default/web", *LIVE), ("why", "pod", "default/web")],
    **dict.fromkeys(("explain", "completion", "version", "help", "demo"), ()),
}
"""Every verb that reads a cluster, or a file that may hold a secret. Those without a case read neither."""


def test_every_verb_has_its_cases() -> None:
    assert set(CASES) == set(VERBS)


@pytest.mark.parametrize("login", ["good", "refused", "broken"])
@pytest.mark.parametrize("verb", [verb for verb, cases in CASES.items() if cases])
def test_a_verb_writes_no_secret(marked: Marked, verb: str, login: str) -> None:
    broken = f"users:\n- name: me\n  user: {{token: {STOLEN}, : [}}\n"
    kubeconfig = {"good": None, "refused": marked.kubeconfig("refused"), "broken": marked.kubeconfig("broken", broken)}[
        login
    ]
    (marked.home / "pod.yaml").write_text(POD)
    certs = marked.here.replicas[0].certs
    for arguments in CASES[verb]:
        words = [
            word.replace("{echo}", marked.echo.url)
            .replace("{pod}", str(marked.home / "pod.yaml"))
            .replace("{certs}", str(certs))
            for word in arguments
        ]
        code = marked.verb(*words, kubeconfig=kubeconfig)
        assert code in (0, 1, 2, 3), marked.written
    assert marked.leaked() == []


def test_the_replicas_and_the_marks_were_really_there(marked: Marked) -> None:
    """Else nothing of this says anything."""
    for replica in marked.here.replicas:
        assert isinstance(replica, Replica)
        marked.said(str(replica.home), (replica.home / "log").read_bytes())
    assert marked.leaked() == []
    assert len(marked.written) > 30
    assert marked.here.cluster.get("Deployment", "web")["spec"]["template"]["spec"]["containers"][0]["args"] == [
        f"--password={ARGUMENT}"
    ]
    marked.said("a leak", f"password: {PASSWORD}".encode())
    assert marked.leaked() == [("a leak", PASSWORD)]
