"""Recognises by its structure in which form a file has usage, and names the forms that Trimtab does not read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from trimtab.usage.prometheus_response import read_head


class UsageForm(Enum):
    """A form of a file that Trimtab reads."""

    ANSWER = "an answer of Prometheus to a query"
    SERIES_LIST = "a list of series, as promtool prints it"
    SERIES_LINES = "one series in each line, as VictoriaMetrics exports it"
    KUBERNETES = "objects of Kubernetes"
    PARQUET = "Parquet"
    TABLE = "CSV"


@dataclass(frozen=True, slots=True)
class UnreadForm:
    """A form of a file that Trimtab does not read."""

    name: str
    todo: str


SAVE_ANSWER = "save the answer of /api/v1/query_range, or samples as CSV"
_QUERY_RANGE = f"it has no history; {SAVE_ANSWER}"
_PAGE = UnreadForm("a page of metrics in the text format", _QUERY_RANGE)
_PROMTOOL_TEXT = UnreadForm("the text that promtool prints", "let promtool print JSON")
_KUBECTL_TOP = UnreadForm("the output of kubectl top", _QUERY_RANGE)
_GRAFANA_TABLE = UnreadForm(
    "a table of Grafana, in which each series is a column",
    "name the columns timestamp, namespace, pod, container, and cpu or memory, with one row for each sample",
)
_HTML = UnreadForm("an HTML page", "log in first: the server sent a page for a browser")
_OTHER_JSON = UnreadForm("JSON without series", SAVE_ANSWER)
_TEXT_FORMS = (
    (re.compile(r"# (HELP|TYPE|UNIT|EOF)\b"), _PAGE),
    (re.compile(r"[A-Za-z_:][\w:]*\{.*\} =>"), _PROMTOOL_TEXT),
    (re.compile(r"\{.*\} =>"), _PROMTOOL_TEXT),
    (re.compile(r"[A-Za-z_:][\w:]*(\{.*\})? [-+\d.eENaInf]+( \d+)?\s*$"), _PAGE),
    (re.compile(r".*\bCPU\(cores\)"), _KUBECTL_TOP),
    (re.compile(r"<"), _HTML),
    (re.compile(r'"?Time"?[,;]"?[^,;]*([{-]|\bcpu usage\b)', re.IGNORECASE), _GRAFANA_TABLE),
)
"""The beginning of the first line → the form. The first that matches is the form."""
_KUBERNETES = (b"apiVersion:", b"\nkind:", b'"apiVersion"')
_JSON_KEYS = (
    ({"results"}, UnreadForm("an answer of Grafana, with data frames", SAVE_ANSWER)),
    ({"streams"}, UnreadForm("an answer of Loki, with log lines", SAVE_ANSWER)),
    ({"node", "pods"}, UnreadForm("a summary of a kubelet", _QUERY_RANGE)),
    ({"error"}, UnreadForm("an error message in JSON", SAVE_ANSWER)),
)
"""The keys of a JSON object → the form."""


def recognize_form(content: bytes) -> UsageForm | UnreadForm:
    """Returns the form of a file, by its structure; CSV if it has no other. The name of the file does not count."""
    if content[:4] == b"PAR1":
        return UsageForm.PARQUET
    head = content.removeprefix(b"\xef\xbb\xbf")[:400].lstrip()
    if any(word in head for word in _KUBERNETES):
        return UsageForm.KUBERNETES
    if head[:1] == b"{":
        return _form_of_object(content)
    if head[:1] == b"[":
        return UsageForm.SERIES_LIST if re.match(rb'\[\s*(\]|\{\s*"metric"\s*:)', head) else _OTHER_JSON
    first_line = head.partition(b"\n")[0].decode("utf-8", "replace")
    return next((form for shape, form in _TEXT_FORMS if shape.match(first_line)), UsageForm.TABLE)


def _form_of_object(content: bytes) -> UsageForm | UnreadForm:
    keys = _top_keys(content)
    if keys is None:
        # Several values, one in each line; the first line says what they are.
        keys = _top_keys(content.lstrip().partition(b"\n")[0])
        if keys is None:
            return UsageForm.ANSWER if b'"data"' in content[:400] else _OTHER_JSON
    if "metric" in keys:
        return UsageForm.SERIES_LINES
    if "data" in keys or "status" in keys:
        return UsageForm.ANSWER
    return next((form for wanted, form in _JSON_KEYS if wanted <= keys), _OTHER_JSON)


def _top_keys(content: bytes) -> set[str] | None:
    try:
        value: dict[str, Any] = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return None
    return set(value)


def unread_result(content: bytes) -> tuple[UnreadForm | None, list[str]]:
    """Returns the form of an answer of Prometheus if its result is not series, and the warnings of the server. Raises
    UsageFault if it cannot be decoded."""
    head = read_head(content)
    result_type = head.result_type
    if head.is_partial:
        return UnreadForm("a partial answer: some stores did not respond", "save it again once all stores respond"), []
    if result_type in ("matrix", "vector"):
        return None, head.warnings
    return UnreadForm(f"an answer of the type {result_type}, which has no series", SAVE_ANSWER), []
