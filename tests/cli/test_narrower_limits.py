"""A verb with a narrower limit than other verbs checks it itself, because a flag has one type in the whole program."""

import pytest

from tests.cli.report_runs import run_verb

USAGE = ("--prometheus", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        (("recommend", *USAGE, "--days", "61"), "--days: expected at most 60, got 61"),
        (("recommend", *USAGE, "--step", "3601"), "--step: expected at most 3600, got 3601"),
        (
            ("fleet", "ingest", *USAGE, "--usage", "u", "--cluster-name", "a", "--step", "7200"),
            "--step: expected at most 3600, got 7200",
        ),
        (
            (
                "metrics-api",
                "propose-hpa",
                "web",
                "-n",
                "shop",
                "--metric",
                "rps",
                "--cpu-request",
                "1",
                "--history",
                "h.csv",
                "--days",
                "31",
            ),
            "--days: expected at most 30, got 31",
        ),
        (("vpa", "simulate", "--usage", "u.csv", "--quantity", "apples"), "--quantity"),
    ],
)
def test_a_number_beyond_the_limit_of_the_verb_is_refused(arguments: tuple[str, ...], mistake: str) -> None:
    result = run_verb(*arguments)
    assert (result.exit_code, mistake in result.stderr) == (2, True)
