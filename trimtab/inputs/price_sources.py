"""Reads `--prices`: files and URLs with OpenCost's CSV, or with the JSON of OpenCost's API or of Prometheus."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl, urlsplit

from trimtab.cluster.config_error import ConfigError, first_mistakes
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.live_cluster import Content
from trimtab.machines.price_answers import is_answer, read_price_answer
from trimtab.machines.prices import PriceFile, merge_price_files, read_price_file

FOLDER_ENDINGS = (".csv",)
"""The endings of the files that are read from a folder."""
_SCHEMES = ("http://", "https://")
_TIMEOUT_SECONDS = 30.0


def read_price_sources(sources: Sequence[str]) -> tuple[PriceFile, list[ConfigError]]:
    """Returns the prices of all sources together, and the mistakes in them. If several sources have a price for a
    machine type, the last source is used.

    Raises UsageError if a file cannot be read, and RuntimeFailure if a server does not answer.
    """
    price_files, mistakes = [], list[ConfigError]()
    for source in sources:
        is_url = source.startswith(_SCHEMES)
        contents = [_fetch(source)] if is_url else live_cluster.read_paths([source], FOLDER_ENDINGS)
        for name, content in contents:
            price_file, file_mistakes = (
                read_price_answer(name, content)
                if is_answer(content)
                else read_price_file(name, content.decode("utf-8", "replace"))
            )
            price_files.append(price_file)
            mistakes += first_mistakes(file_mistakes)
    return merge_price_files(price_files), mistakes


def _fetch(url: str) -> Content:
    """Returns the response to a GET of the URL; its name is the URL without credentials."""
    # Imported here because most commands read files only, and the HTTP client is slow to import.
    from trimtab.usage.errors import UsageFault
    from trimtab.usage.http_client import HttpApi, RetryPolicy

    try:
        parts = urlsplit(url)
        base = parts._replace(query="", fragment="", path="").geturl()
    except ValueError as error:
        raise UsageError([ConfigError(file="--prices", expected="a URL", got=str(error))]) from None
    if not parts.path.strip("/"):
        expected = "a URL with its path, such as …/assets?window=1d or …/api/v1/query?query=node_total_hourly_cost"
        raise UsageError([ConfigError(file="--prices", expected=expected, got=url)])
    server = HttpApi(base, sends_get=True, retry_policy=RetryPolicy(deadline=_TIMEOUT_SECONDS, tries=2))
    try:
        return server.public_address + parts.path, server.get(parts.path, dict(parse_qsl(parts.query)), "prices")
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None
