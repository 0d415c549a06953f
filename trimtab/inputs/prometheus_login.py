"""The options with which a command logs in to Prometheus. They can also be set in the recommender's environment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from trimtab.inputs.flags import CA, HEADER, HEADER_FILE, TOKEN_FILE
from trimtab.inputs.option import option
from trimtab.inputs.usage_sources import parse_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusLogin:
    """The HTTP headers, the bearer token, and the authorities that sign the server's certificate."""

    headers: Annotated[tuple[str, ...], HEADER] = ()
    header_files: Annotated[
        tuple[str, ...], replace(HEADER_FILE, variable="TRIMTAB_RECOMMENDER_PROMETHEUS_HEADER_FILE")
    ] = ()
    token_file: Annotated[
        str | None,
        replace(
            TOKEN_FILE,
            variable="TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN_FILE",
            help="The file with a bearer token to log in. TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN may contain the token "
            "itself instead.",
        ),
    ] = None
    token: Annotated[
        str | None,
        option(
            "--token", help="The bearer token itself.", is_hidden=True, variable="TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN"
        ),
    ] = None
    ca: Annotated[str | None, replace(CA, variable="TRIMTAB_RECOMMENDER_PROMETHEUS_CA_FILE")] = None

    def parse_headers(self) -> dict[str, str]:
        """Returns the HTTP headers, with the bearer token. Raises UsageError with every mistake."""
        return parse_headers(self.headers, self.header_files, self.token_file, self.token)
