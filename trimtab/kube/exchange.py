"""What came back, whatever its status: for who asks how a server answers, not only what."""

import re
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from urllib3 import HTTPHeaderDict


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One answer."""

    status: int
    content: bytes
    headers: HTTPHeaderDict

    @property
    def at(self) -> datetime | None:
        """The server's own time, to the second; None where it does not say."""
        try:
            return parsedate_to_datetime(self.headers.get("Date") or "")
        except ValueError:
            return None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts of the warnings an API server sent along, webhooks' among them."""
        found = (_WARNING.match(line) for line in self.headers.getlist("Warning"))
        return tuple(re.sub(r"\\(.)", r"\1", line[1]) for line in found if line)


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
"""RFC 9110 took them out, Kubernetes still sends them: code, agent, quoted text; one to a line."""
