"""A few pages over HTTP."""

import socket
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from trimtab.runtime.files import CannotServe
from trimtab.runtime.http_pages import MAX_CONNECTIONS, TEXT, HttpPages
from trimtab.runtime.settings import ListenAddress


def test_a_page_is_served_and_another_is_not_found() -> None:
    with HttpPages(ListenAddress("127.0.0.1", 0), {"/healthz": lambda: (200, TEXT, b"ok\n")}) as pages:
        with urllib.request.urlopen(f"{pages.url}/healthz?verbose", timeout=30) as answer:
            assert answer.read() == b"ok\n"
        with pytest.raises(urllib.error.HTTPError, match="404") as missing:
            urllib.request.urlopen(f"{pages.url}/other", timeout=30)
        missing.value.close()
        port = int(pages.url.rpartition(":")[2])
        with pytest.raises(CannotServe, match="cannot listen"):
            HttpPages(ListenAddress("127.0.0.1", port), {})


def test_who_only_sits_there_keeps_nobody_out() -> None:
    with HttpPages(ListenAddress("127.0.0.1", 0), {"/healthz": lambda: (200, TEXT, b"ok\n")}) as pages:
        host, port = pages.url.removeprefix("http://").split(":")
        with ExitStack() as over:
            silent = [
                over.enter_context(socket.create_connection((host, int(port)), 10)) for _ in range(MAX_CONNECTIONS + 3)
            ]
            for one in silent:
                one.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
            with urllib.request.urlopen(f"{pages.url}/healthz", timeout=30) as answer:
                assert answer.read() == b"ok\n"
            assert [one.recv(1) for one in silent[:3]] == [b"", b"", b""], "the oldest were sent away"
