"""What Trimtab changes in gunicorn fits the version that is pinned, and is left out of one that it does not fit.

What each patch does is tested where it is felt, against the real server:

    bounded parser         tests/runtime/test_http_framing.py, tests/webhook/test_hostile.py
    let go                 test_new_connections_leave_no_memory_behind (test_under_load.py), test_hostile.py
    door                   test_one_address_has_its_own_share_…, test_a_handshake_that_does_not_… (test_hostile.py)
    one timer              test_a_connection_that_asks_for_nothing_is_ended_in_time_… (test_under_load.py)
    unread answers         test_who_reads_none_of_its_answers_makes_room (test_crowded.py), test_hostile.py
    inline application     test_every_page_of_many_that_came_together_… (test_hostile.py)
    answers at once        test_known_heads.py, test_a_request_that_comes_in_pieces_… (test_server.py), test_contract.py
    client certificates    tests/webhook/test_known_clients.py
"""

import asyncio
import re
from pathlib import Path

import gunicorn
import pytest
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers.gasgi import ASGIWorker
from structlog.testing import CapturingLogger

from trimtab.runtime import gunicorn_patches
from trimtab.runtime.gunicorn_patches import CLIENT_NAMES_PATCH, PATCHES, Patch, address_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("patch", [*PATCHES, CLIENT_NAMES_PATCH], ids=lambda patch: patch.name)
def test_the_pinned_gunicorn_has_what_each_patch_needs(patch: Patch) -> None:
    assert patch.missing_attributes(ASGIWorker) == ()
    assert patch.apply.__doc__


def test_what_a_version_lacks_is_named() -> None:
    patch = Patch("a patch", ("connection_made", "_renamed_since", "worker._gone"), lambda _: None)
    assert patch.missing_attributes(ASGIWorker) == ("_renamed_since", "worker._gone")


def test_the_version_that_the_patches_were_written_for_is_the_one_that_is_pinned() -> None:
    pinned = re.search(r"^gunicorn==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned
    assert f"gunicorn {pinned[1]} " in (gunicorn_patches.__doc__ or "")
    assert gunicorn.__version__ == pinned[1]


def test_nothing_else_changes_gunicorn() -> None:
    changes = re.compile(r"ASGIProtocol\.\w+ = |gasgi\.\w+ = ")
    files = [*(ROOT / "trimtab").rglob("*.py"), *(ROOT / "webhook").rglob("*.py")]
    assert [path.name for path in files if changes.search(path.read_text())] == ["gunicorn_patches.py"]


def test_a_patch_that_does_not_fit_is_left_out_and_the_log_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[str] = []
    fits = Patch("fits", ("connection_made",), lambda _: applied.append("fits"))
    lacks = Patch("lacks", ("_renamed_since",), lambda _: applied.append("lacks"))
    monkeypatch.setattr(gunicorn_patches, "PATCHES", (lacks, fits))
    log = CapturingLogger()
    worker = type("Worker", (), {"asgi": None})()
    gunicorn_patches.apply_patches(worker, max_connections=10, max_by_address=5, tells_clients=False, log=log)  # type: ignore[arg-type]
    assert applied == ["fits"]
    assert [(call.method_name, call.kwargs["patch"], call.kwargs["missing"]) for call in log.calls] == [
        ("warning", "lacks", "_renamed_since")
    ]


def test_asyncios_own_loop_has_its_own_tls() -> None:
    loop = asyncio.new_event_loop()
    try:
        assert gunicorn_patches._tls_protocol_class(loop).__module__ == "asyncio.sslproto"
    finally:
        loop.close()


@pytest.mark.parametrize(("peer", "address"), [(("10.0.0.1", 5), "10.0.0.1"), (("::1", 5, 0, 0), "::1"), (None, "")])
def test_an_address_is_a_client_whatever_its_port(peer: tuple[object, ...] | None, address: str) -> None:
    assert address_of(peer) == address


def test_the_tests_have_changed_no_gunicorn() -> None:
    assert ASGIProtocol._serve_http_request.__module__ == "gunicorn.asgi.protocol"
