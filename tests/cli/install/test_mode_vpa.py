"""`trimtab install --mode vpa`: the recommender alone, whatever else is chosen, and over no other installation."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.cli.recommending import kubeconfig
from tests.reasons import has_facts
from trimtab.cli.install.command import extend_to_everything
from trimtab.cli.main import cli
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues

SWITCHES = ("metrics_api", "cert_manager", "resize", "demote_groups", "vpa_recommender")


@pytest.mark.parametrize("states", list(product((False, True), repeat=len(SWITCHES))))
def test_it_is_the_recommender_and_nothing_else_whatever_is_chosen(states: tuple[bool, ...]) -> None:
    chosen: dict[str, Any] = dict(zip(SWITCHES, states, strict=True))
    names: dict[str, Any] = {"scale_namespaces": ("shop",), "parameter_namespaces": ("shop",)}
    manifests = render_manifests(InstallValues(mode="vpa", **chosen, **names))
    components = {item["metadata"]["labels"].get("app.kubernetes.io/component") for item in manifests}
    assert components == {None, "recommender"}
    assert [item["kind"] for item in manifests if "app.kubernetes.io/component" not in item["metadata"]["labels"]] == [
        "Namespace"
    ]
    kinds = [item["kind"] for item in manifests]
    assert kinds.count("Deployment") == 1
    assert not {"Secret", "Service", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} & set(kinds)


@pytest.mark.parametrize("mode", ["webhook", "policies", "both", "vpa"])
def test_everything_is_removed_whatever_the_mode_is_now(mode: str) -> None:
    removed = render_manifests(extend_to_everything(InstallValues(mode=mode)))
    everything = InstallValues(metrics_api=True, resize=True, vpa_recommender=True, capture_claim="any")
    assert removed == render_manifests(everything)


@pytest.fixture
def cluster_with_webhook() -> Iterator[tuple[str, list[str]]]:
    """An API server that has Trimtab's webhook, and the writes that it gets."""
    writes: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            services = [{"clientConfig": {"service": {"name": "trimtab-webhook", "namespace": "trimtab-system"}}}]
            has_it = self.path.partition("?")[0].endswith("webhookconfigurations/trimtab")
            self._answer(200 if has_it else 404, {"metadata": {"name": "trimtab"}, "webhooks": services})

        def do_PATCH(self) -> None:
            writes.append(self.path)
            self._answer(500, {})

        def _answer(self, code: int, document: dict[str, Any]) -> None:
            text = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{http.server_address[1]}", writes
    http.shutdown()
    http.server_close()


def test_over_an_installation_with_a_webhook_it_is_refused(
    tmp_path: Path, cluster_with_webhook: tuple[str, list[str]]
) -> None:
    """The webhook and the compactor would go on, although this mode says that nothing of Trimtab changes pods."""
    url, writes = cluster_with_webhook
    arguments = ["install", "--apply", "--mode", "vpa", "--kubeconfig", str(kubeconfig(tmp_path, url))]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert has_facts(result.stderr, "--remove --keep-usage", "--vpa-recommender")
    assert writes == []
