"""Reads the rules of served metrics from YAML as `MetricRule` values. All mistakes are reported together.

One ConfigMap has all rules, under `rules.yaml`:

    rules:
    - name: http_requests_per_second        # the metric's name in an HPA
      from: scrape                          # scrape | query
      kind: rate                            # rate | gauge
      maxAge: 90s                           # a sample that is older is withheld
      namespaces: [shop, "team-*"]          # shell patterns
      pods: {app: web}                      # labels that the pods have
      series: http_requests_total           # the series whose values are added up
      labels: {code: "200"}                 # only series with these labels
      endpoint: {port: 8443, path: /metrics, scheme: https, ca: shop-ca.crt, serverName: web.shop.svc}
      token: {file: shop-token, namespaces: [shop]}
    - name: queue_length
      from: query
      kind: gauge
      maxAge: 2m
      query: sum by (namespace, pod) (queue_length)

`ca` and `token.file` name files in the folder of the scrape Secret, and cannot name any other file: a user who may
write the rules must not be able to name the token of the process's own service account. A token is sent only over
verified TLS, and only to pods of the namespaces that the rule names, which must not be patterns.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

from trimtab.cluster.config_error import ConfigError, first_mistakes, quote_value
from trimtab.cluster.documents.declared_fields import DocumentField, section_of
from trimtab.cluster.documents.read_document import DocumentReader, Values, make_instance
from trimtab.cluster.documents.value_types import DURATION, LABELS, InvalidValue, ValueType, one_of, whole_number
from trimtab.cluster.selectors import name_matcher
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.cluster.yaml_parser import Path, child_node

RULES_KEY = "rules.yaml"
MAX_RULES = 100
MAX_BYTES = 256 * 1024
"""The maximum size of the YAML in bytes. A ConfigMap holds at most a megabyte, and a hundred rules need a tenth of
this."""


class SampleSource(StrEnum):
    """Where the samples of a metric come from."""

    SCRAPE = "scrape"
    QUERY = "query"


class MetricKind(StrEnum):
    """What the values of the metric are."""

    RATE = "rate"
    """The value is the increase of a counter per second."""
    GAUGE = "gauge"
    """The value is the newest value of the series."""


_NAME = re.compile(r"[a-z0-9A-Z_:.-]{1,253}")
_SERIES = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,255}")
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}")
_PATH = re.compile(r"/[!-~]{0,1023}")
_PATTERN = re.compile(r"[a-z0-9*?]([a-z0-9*?-]{0,61}[a-z0-9*?])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SERVER_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_MAX_QUERY_CHARACTERS = 8192


def _text(pattern: re.Pattern[str], expected: str) -> ValueType:
    """Returns the type of texts that match the pattern."""

    def parse(value: Any, path: Path) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise InvalidValue(path, expected, quote_value(value))
        return value

    return ValueType(parse)


def _list_of(pattern: re.Pattern[str], expected: str, make: Callable[[Iterable[str]], Any] = tuple) -> ValueType:
    """Returns the type of lists of texts that match the pattern."""
    text = _text(pattern, expected)

    def parse(value: Any, path: Path) -> Any:
        if not isinstance(value, list) or not value or len(value) > 1000:
            raise InvalidValue(path, expected, quote_value(value))
        return make([text.parse(item, (*path, number)) for number, item in enumerate(value)])

    return ValueType(parse)


def _parse_age(value: Any, path: Path) -> int:
    seconds: int = DURATION.parse(value, path)
    if not 1 <= seconds <= 3600:
        raise InvalidValue(path, "a duration from 1s to 1h", quote_value(value))
    return seconds


def _parse_query(value: Any, path: Path) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_QUERY_CHARACTERS:
        raise InvalidValue(path, _QUERY_EXPECTED, quote_value(value))
    return value.strip()


def _parse_scheme(value: Any, path: Path) -> bool:
    if value not in ("http", "https"):
        raise InvalidValue(path, "http or https", quote_value(value))
    return bool(value == "https")


_NAME_EXPECTED = "a name of letters, digits and _ : . -, such as http_requests_per_second"
_SERIES_EXPECTED = "the name of a series, such as http_requests_total"
_QUERY_EXPECTED = "PromQL that gives a value for each namespace and pod"
_FILE_EXPECTED = "the name of a file in the scrape Secret, without a folder"
_FILE_NAME = _text(_FILE, _FILE_EXPECTED)
_PLAIN_NAMESPACES = _list_of(_NAMESPACE, "a list of names of namespaces, without patterns", frozenset)
_PATTERNS = _list_of(_PATTERN, "a list of namespaces or shell patterns of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeEndpoint:
    """Where a pod exposes its metrics: port, path and TLS settings. The address is the pod's own IP address."""

    port: Annotated[int, DocumentField("endpoint.port", whole_number(1, 65535))] = 8080
    path: Annotated[str, DocumentField("endpoint.path", _text(_PATH, "a path that begins with a slash"))] = "/metrics"
    is_secure: Annotated[bool, DocumentField("endpoint.scheme", ValueType(_parse_scheme))] = False
    ca_file: Annotated[str, DocumentField("endpoint.ca", _FILE_NAME)] = ""
    """The name of the file with the authorities that sign the pods' certificates; empty: those of the system."""
    server_name: Annotated[
        str, DocumentField("endpoint.serverName", _text(_SERVER_NAME, "the name in the pods' certificates"))
    ] = ""
    """The name in the pods' certificates, which rarely contain the pod's IP address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """A bearer token, and the namespaces to whose pods it may be sent."""

    file: Annotated[str, DocumentField("token.file", _FILE_NAME, required=_FILE_EXPECTED)]
    """The name of the file with the token in the folder of the scrape Secret."""
    namespaces: Annotated[
        frozenset[str], DocumentField("token.namespaces", _PLAIN_NAMESPACES, required="a list of namespaces")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRule:
    """One metric that is served."""

    name: Annotated[str, DocumentField("name", _text(_NAME, _NAME_EXPECTED), required=_NAME_EXPECTED)]
    source: Annotated[SampleSource, DocumentField("from", one_of(SampleSource), required="scrape or query")]
    kind: Annotated[MetricKind, DocumentField("kind", one_of(MetricKind), required="rate or gauge")]
    max_age_seconds: Annotated[int, DocumentField("maxAge", ValueType(_parse_age))] = 90
    """If the newest sample is older than this many seconds, no value is served."""
    namespaces: Annotated[tuple[str, ...], DocumentField("namespaces", _PATTERNS)] = ("*",)
    """Shell patterns of namespaces. For a query, they are compared with the label `namespace` of each result."""
    pod_labels: Annotated[Mapping[str, str], DocumentField("pods", LABELS)] = field(default_factory=dict)
    """The labels that a pod must have to be scraped."""
    series: Annotated[str, DocumentField("series", _text(_SERIES, _SERIES_EXPECTED))] = ""
    """The name of the scraped series."""
    series_labels: Annotated[Mapping[str, str], DocumentField("labels", LABELS)] = field(default_factory=dict)
    """The labels that a scraped series must have. Other series of the same name are left out."""
    endpoint: ScrapeEndpoint = ScrapeEndpoint()
    token: BearerToken | None = None
    query: Annotated[str, DocumentField("query", ValueType(_parse_query))] = ""
    """A PromQL query that returns one value for each `namespace` and `pod`."""

    def covers_namespace(self, namespace: str) -> bool:
        """Returns whether pods of this namespace have the metric."""
        return name_matcher(self.namespaces)(namespace)

    def selects_pod(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Returns whether the pod is scraped for this metric: its namespace is covered, and it has all of
        `pod_labels`."""
        return self.pod_labels.items() <= labels.items() and self.covers_namespace(namespace)

    def token_for(self, namespace: str) -> str:
        """Returns the name of the file with the token for pods of this namespace, or an empty string if they get no
        token."""
        token = self.token
        return token.file if token is not None and namespace in token.namespaces else ""


@dataclass(frozen=True, slots=True)
class RulesReading:
    """The rules in one document, and its mistakes. If there is any mistake, no rule of the document is used."""

    rules: tuple[MetricRule, ...] = ()
    mistakes: tuple[ConfigError, ...] = ()


def read_rules(file: str, content: str) -> RulesReading:
    """Returns the rules of a file: one document of rules, or manifests, of which each ConfigMap with the key of the
    rules is read. An empty file has no rules and no mistakes."""
    if len(content) > MAX_BYTES:
        error = ConfigError(file=file, expected=f"at most {MAX_BYTES} characters", got=str(len(content)))
        return RulesReading(mistakes=(error,))
    parsed = read_documents(file, content.encode())
    if parsed.mistakes:
        return RulesReading(mistakes=parsed.mistakes)
    if any(document.kind is not None for document in parsed.documents):
        return _read_manifests(file, parsed.documents)
    if len(parsed.documents) > 1:
        extra = parsed.documents[1]
        return RulesReading(mistakes=(extra.error_at((), "one document", todo="put all rules into one list"),))
    return _read_document(parsed.documents[0]) if parsed.documents else RulesReading()


def _read_manifests(file: str, documents: Sequence[Document]) -> RulesReading:
    """Returns the rules of all ConfigMaps that have the key of the rules; other manifests are ignored."""
    readings: list[RulesReading] = []
    for document in documents:
        data = document.value.get("data") if document.kind == "ConfigMap" else None
        if not isinstance(data, dict) or RULES_KEY not in data:
            continue
        text = data[RULES_KEY]
        if not isinstance(text, str):
            mistake = document.error_at(("data", RULES_KEY), "the rules as text", quote_value(text))
            readings.append(RulesReading(mistakes=(mistake,)))
            continue
        inner = read_rules(file, text)
        readings.append(replace(inner, mistakes=tuple(_move_into(document, one) for one in inner.mistakes)))
    if not readings:
        expected = f"rules, or a ConfigMap with the key {RULES_KEY}"
        return RulesReading(mistakes=(ConfigError(file=file, expected=expected, got=documents[0].entry_name),))
    return RulesReading(
        tuple(rule for reading in readings for rule in reading.rules),
        tuple(mistake for reading in readings for mistake in reading.mistakes),
    )


def _move_into(document: Document, error: ConfigError) -> ConfigError:
    """Returns a mistake in the rules of a ConfigMap at its place in the file. A text in quotes has no lines of its
    own."""
    path = ("data", RULES_KEY)
    start, _ = document.position_of(path)
    node = child_node(child_node(document.node, "data"), RULES_KEY) if document.node is not None else None
    is_block = getattr(node, "style", None) in ("|", ">")
    line = start + error.line if is_block and start is not None and error.line is not None else start
    field = ".".join(part for part in (f"data[{RULES_KEY}]", error.field) if part)
    return replace(error, entry=document.entry_name, line=line, column=None, field=field)


_SCRAPE_FIELDS = ("pods", "series", "labels", "endpoint", "token")
_QUERY_FIELDS = ("query",)


def _read_document(document: Document) -> RulesReading:
    reader = DocumentReader(document)
    whole = reader.read_mapping(document.value, (), ("rules",))
    entries = whole.get("rules")
    if whole and not isinstance(entries, list):
        reader.add_mistake(InvalidValue(("rules",), "a list of rules", quote_value(entries)))
    entries = entries if isinstance(entries, list) else []
    if len(entries) > MAX_RULES:
        reader.add_mistake(InvalidValue(("rules",), f"at most {MAX_RULES} rules", str(len(entries))))
    rules = [_read_rule(reader, entry, ("rules", number)) for number, entry in enumerate(entries[:MAX_RULES])]
    for path in _repeated_names(rules):
        reader.add_mistake(InvalidValue(path, "a name that no earlier rule has"))
    if reader.mistakes:
        return RulesReading(mistakes=tuple(first_mistakes(reader.mistakes)))
    return RulesReading(tuple(rule for rule in rules if rule is not None))


def _repeated_names(rules: Sequence[MetricRule | None]) -> Iterator[Path]:
    names = [rule.name if rule is not None else "" for rule in rules]
    for number, name in enumerate(names):
        if name and name in names[:number]:
            yield ("rules", number, "name")


def _read_rule(reader: DocumentReader, entry: Any, path: Path) -> MetricRule | None:
    """Returns the rule. If it is not valid, returns None and adds the mistakes to the reader."""
    count = len(reader.mistakes)
    values = reader.read_section(section_of(MetricRule), entry, path)
    for error in _find_contradictions(entry if isinstance(entry, dict) else {}, values, path):
        reader.add_mistake(error)
    return make_instance(MetricRule, values) if len(reader.mistakes) == count else None


def _find_contradictions(section: Mapping[str, Any], values: Values, path: Path) -> Iterator[InvalidValue]:
    """Yields the mistakes that only show when several fields are compared: a field that does not belong to the metric's
    source, and a token that would be sent without TLS."""
    is_secure = values.get(("endpoint", "is_secure"), False)
    if not is_secure and {("endpoint", "ca_file"), ("endpoint", "server_name")} & values.keys():
        place = (*path, "endpoint", "scheme")
        yield InvalidValue(place, "https, because `ca` or `serverName` is set", "http")
    source = values.get(("source",))
    if source is None:
        return
    foreign = _QUERY_FIELDS if source is SampleSource.SCRAPE else _SCRAPE_FIELDS
    for key in foreign:
        if key in section:
            yield InvalidValue((*path, key), f"only fields that belong to a rule with `from: {source}`")
    needed, expected = ("series", _SERIES_EXPECTED) if source is SampleSource.SCRAPE else ("query", _QUERY_EXPECTED)
    if needed not in section:
        yield InvalidValue((*path, needed), expected, "nothing")
    if source is SampleSource.QUERY and values.get(("kind",)) is MetricKind.RATE:
        todo = "write rate(…[2m]) in the query: Prometheus has seen every sample, and knows of resets"
        yield InvalidValue((*path, "kind"), "gauge in a rule with `from: query`", "rate", todo)
    if source is SampleSource.SCRAPE and "pods" not in section:
        yield InvalidValue((*path, "pods"), "labels of the pods to scrape, such as {app: web}", "nothing")
    if "token" in section and not is_secure:
        todo = "no token together with unverified TLS, because it would be sent to any server"
        yield InvalidValue((*path, "endpoint", "scheme"), "https, because `token` is set", "http", todo)


def is_metric_name(name: str) -> bool:
    """Returns whether a rule can have this name, so that an HPA can ask for its metric."""
    return _NAME.fullmatch(name) is not None


def is_namespace_name(name: str) -> bool:
    """Returns whether the API server accepts the name of a namespace."""
    return _NAMESPACE.fullmatch(name) is not None
