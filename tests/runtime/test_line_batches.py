"""Lines that wait are written together, in order, and not lost."""

import io
import time

from trimtab.runtime import log
from trimtab.runtime.line_batches import MAX_LINES, LineBatches


def test_lines_are_written_together_after_a_moment():
    out = io.StringIO()
    logger = log.build_logger(style="json", stream=out, info_delay_seconds=0.01)
    for number in range(3):
        logger.info("pod changed", number=number)
    deadline = time.monotonic() + 5
    while out.getvalue().count("\n") < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [line.partition('"number":')[2][0] for line in out.getvalue().splitlines()] == ["0", "1", "2"]


def test_what_must_not_wait_is_written_after_the_lines_before_it():
    out = io.StringIO()
    logger = log.build_logger(style="json", stream=out, info_delay_seconds=60)
    logger.info("first")
    assert out.getvalue() == ""
    logger.warning("second")
    assert [line.partition('"event":"')[2][:5] for line in out.getvalue().splitlines()] == ["first", "secon"]


def test_many_lines_do_not_wait():
    out = io.StringIO()
    batches = LineBatches(out, 60)
    for number in range(MAX_LINES):
        batches.add_line(str(number))
    assert out.getvalue().splitlines() == [str(number) for number in range(MAX_LINES)]


def test_a_secret_is_replaced_in_a_line_that_waits():
    out = io.StringIO()
    logger = log.build_logger(style="json", stream=out, info_delay_seconds=60)
    logger.info("seen", header="BEARER abc", token="x", plain="y")
    logger.warning("now")
    assert ("abc" in out.getvalue(), '"x"' in out.getvalue(), '"y"' in out.getvalue()) == (False, False, True)
