"""A line is JSON, complete, and holds no secret."""

import io
import json
import logging
import re
from typing import Any

import pytest

from trimtab.cluster.control_characters import has_control_characters
from trimtab.runtime import log


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_an_event_is_one_json_line_with_level_and_time() -> None:
    out = io.StringIO()
    log.build_logger(stream=out).info("changed", uid="u-1", policies=["a"])
    (line,) = lines(out)
    assert line["timestamp"].endswith("Z")
    assert {**line, "timestamp": ""} == {
        "event": "changed",
        "uid": "u-1",
        "policies": ["a"],
        "level": "info",
        "timestamp": "",
    }


def test_what_is_below_the_level_is_not_written() -> None:
    out = io.StringIO()
    log.build_logger("warning", stream=out).info("chatter")
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    "event",
    [
        {"token": "abc"},
        {"db_password": "abc"},
        {"Authorization": "abc"},
        {"file": "-----BEGIN EC PRIVATE KEY-----\nabc"},
        {"header": "Bearer abc"},
    ],
)
def test_secrets_are_replaced(event: dict[str, str]) -> None:
    out = io.StringIO()
    log.build_logger(stream=out).info("seen", **event)
    assert "abc" not in out.getvalue()
    assert "***" in out.getvalue()


def test_an_exception_is_part_of_its_line() -> None:
    out = io.StringIO()
    try:
        raise ValueError("as asked")
    except ValueError:
        log.build_logger(stream=out).exception("failed")
    (line,) = lines(out)
    assert "ValueError: as asked" in line["exception"]


def test_a_terminal_gets_people_s_lines() -> None:
    out = io.StringIO()
    log.build_logger(style="console", stream=out).info("ready", url="https://x")
    assert "ready" in out.getvalue()
    assert not out.getvalue().startswith("{")


@pytest.fixture
def library() -> Any:
    """A library's logger, and the root as it was before."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield logging.getLogger("some.library")
    root.handlers[:] = before
    root.setLevel(level)


def test_what_a_library_warns_about_is_a_line_of_ours(library: logging.Logger) -> None:
    out = io.StringIO()
    log.forward_logging(log.build_logger(stream=out))
    library.warning("pool of %d is full", 10)
    library.info("chatter")
    (line,) = lines(out)
    assert (line["event"], line["source"], line["level"]) == ("pool of 10 is full", "some.library", "warning")


def test_a_plain_line_is_the_line_that_the_long_way_writes() -> None:
    out = io.StringIO()
    logger = log.build_logger(stream=out)
    logger.info("seen", names=("a", "b"), count=1, db_password="x", where=None)
    logger.bind(count=1).info("seen", names=("a", "b"), db_password="x", where=None)
    short, long = lines(out)
    assert {**short, "timestamp": ""} == {**long, "timestamp": ""}


@pytest.mark.parametrize("style", ["console", "json"])
def test_a_terminal_obeys_nothing_in_a_value(style: str) -> None:
    stream = io.StringIO()
    logger = log.build_logger(stream=stream, style=style)
    logger.info("pod\x1b]8;;changed", pod="web\x1b]0;x\x07\x9b7m", owner="a\u202eb")
    try:
        raise ValueError("\x1b[2J\u2066")
    except ValueError:
        logger.error("failed", exc_info=True)
    text = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert not has_control_characters(text)
