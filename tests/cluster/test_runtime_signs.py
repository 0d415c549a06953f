"""The environment, the command line, the image and the labels show which runtime a container has, and which limits it
reads."""

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.test_runtimes import PATTERNS
from trimtab.cluster.api.pod import Container, Pod
from trimtab.cluster.runtime_signs import (
    IndependentRuntime,
    LimitReader,
    LimitUse,
    add_label_signs,
    container_signs,
    find_limit_use,
)

READ, FREE, UNKNOWN = "read", "free", "unknown"


def container_of(fields: dict[str, Any]) -> Container:
    """The container as it is decoded: `env` is written as NAME → value."""
    variables = [{"name": name, "value": value} for name, value in fields.get("env", {}).items()]
    return msgspec.convert({"name": "app", **fields, "env": [*variables, *fields.get("more_env", [])]}, Container)


def use_of(fields: dict[str, Any], resource: str) -> LimitUse:
    container = container_of(fields)
    signs = container_signs(container.runtime_signs, container.image)
    return find_limit_use(add_label_signs(signs, fields.get("labels", {})), resource)


def word_of(use: LimitUse) -> str:
    return READ if isinstance(use, LimitReader) else FREE if isinstance(use, IndependentRuntime) else UNKNOWN


def uses(**fields: Any) -> tuple[str, str]:
    """How the limits of cpu and memory are used."""
    return word_of(use_of(fields, "cpu")), word_of(use_of(fields, "memory"))


JVM_PERCENT = "-XX:MaxRAMPercentage=75 -XX:+ExitOnOutOfMemoryError"


@pytest.mark.parametrize(
    "name",
    [
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
        "JAVA_OPTS",
        "CATALINA_OPTS",
        "MAVEN_OPTS",
        "KAFKA_HEAP_OPTS",
        "ACME_FLAGS",
        "x",
    ],
)
def test_a_percentage_in_any_variable_shows_a_jvm_that_reads_its_limit(name: str) -> None:
    use = use_of({"env": {name: JVM_PERCENT, "GOMEMLIMIT": "off"}}, "memory")
    assert isinstance(use, LimitReader)
    assert (use.name, use.shown_by.partition(" in ")[0]) == ("a JVM", "MaxRAMPercentage")


@pytest.mark.parametrize(
    "fields",
    [
        {"env": {"JAVA_OPTS": "-XX:InitialRAMPercentage=50"}},
        {"env": {"A": "-XX:MinRAMPercentage=20"}},
        {"env": {"A": "-XX:MaxRAMFraction=2"}},
        {"env": {"BPL_JVM_HEAD_ROOM": "5"}},
        {"env": {"JAVA_MAX_MEM_RATIO": "60"}},
        {"env": {"SPRING_PROFILES_ACTIVE": "prod"}},
        {"args": ["java", "-XX:MaxRAMPercentage=75", "-jar", "app.jar"]},
        {"args": ["-jar", "app.jar"]},
        {"command": ["java", "-jar", "/app.jar"]},
        {"command": ["/opt/java/bin/java"], "args": ["Main"]},
        {"command": ["tini", "--", "java", "Main"]},
        {"command": ["tini", "--"], "args": ["java", "Main"]},
        {"command": ["sh", "-c", "set -e\ncd /app && exec java -server Main"]},
        {"command": ["sh", "-c"], "args": ["java $OPTS Main"]},
        {"image": "eclipse-temurin:21-jre"},
        {"image": "gcr.io/distroless/java17-debian12"},
        {"image": "registry.example.com/mirror/openjdk@sha256:ab"},
        {"image": "tomcat:10"},
        {"image": "acme/pay:1.2-jdk21"},
        {"image": "quay.io/keycloak/keycloak:26"},
        {"labels": {"app.openshift.io/runtime": "spring-boot"}},
        {"labels": {"app.kubernetes.io/language": "Java"}},
        {"labels": {"instrumentation.opentelemetry.io/inject-java": "true"}},
        {"labels": {"admission.datadoghq.com/java-lib.version": "v1"}},
        {"image": "mcr.microsoft.com/dotnet/aspnet:8.0"},
        {"command": ["dotnet", "Shop.dll"]},
        {"env": {"ASPNETCORE_URLS": "http://+:8080"}},
        {"env": {"DOTNET_GCHeapHardLimitPercent": "4B"}},
        {"image": "cockroachdb/cockroach:v24"},
        {"image": "prom/prometheus:v3.1.0"},
        {"command": ["rabbitmq-server"]},
        {"image": "rabbitmq:4"},
        {"image": "rayproject/ray:2.49", "command": ["ray", "start"]},
        {"image": "acme/a", "command": ["ray", "start"]},
        {"image": "ghcr.io/dask/dask:2026.1"},
        {"command": ["tini", "--", "dask-worker"]},
        {"env": {"DOTNET_GCHeapHardLimit": "0"}},
        {"env": {"DOTNET_GCHeapHardLimitSOHPercent": "0x20"}},
        {"image": "jruby:9.4"},
        {"image": "otel/opentelemetry-collector-contrib:0.150.0"},
        {"command": ["/otelcol"]},
        {"image": "clickhouse/clickhouse-server:24"},
        {"image": "pingcap/tikv:v8"},
        {"image": "pingcap/tidb:v8"},
        {"image": "caddy:2"},
        {"image": "questdb/questdb:9.0"},
        {"image": "docker.dragonflydb.io/dragonflydb/dragonfly:v1.30"},
        {"command": ["dragonfly", "--maxmemory=0"]},
        {"image": "acme/cache", "env": {"DFLY_requirepass": "x"}},
        {"image": "mcr.microsoft.com/dotnet/aspnet:9.0", "env": {"DOTNET_PROCESSOR_COUNT": "0"}},
        {"image": "victoriametrics/vmagent", "args": ["-memory.allowedBytes=0"]},
    ],
)
def test_what_sizes_itself_by_both_limits(fields: dict[str, Any]) -> None:
    assert uses(**fields) == (READ, READ)


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "node:22"},
        {"image": "docker.io/library/node:22"},
        {"image": "registry.example.com/node:22"},
        {"image": "registry.access.redhat.com/ubi9/nodejs-20"},
        {"command": ["node", "server.js"]},
        {"env": {"NODE_OPTIONS": "--max-old-space-size-percentage=60"}},
        {"args": ["server.mjs"]},
        {"env": {"NODE_OPTIONS": "--max-old-space-size=400 --max_old_space_size_percentage=60"}},
        {"image": "mongo:7"},
        {"env": {"MSSQL_PID": "Express"}},
        {"image": "docker.redpanda.com/redpandadata/redpanda:v26.1"},
        {"command": ["/usr/bin/scylla"]},
        {"image": "scylladb/scylla:6.2", "args": ["--smp", "2", "--reserve-memory", "1G"]},
        {"image": "scylladb/scylla:6.2", "args": ["--memory=0"]},
    ],
)
def test_what_sizes_itself_by_the_memory_limit(fields: dict[str, Any]) -> None:
    assert uses(**fields) == (FREE, READ)


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "registry.k8s.io/ingress-nginx/controller:v1.14.0@sha256:ab"},
        {"image": "mirror.example.com/ingress-nginx/controller-chroot:v1"},
        {"image": "rancher/nginx-ingress-controller:nginx-1.12"},
        {"command": ["/nginx-ingress-controller"]},
        {"image": "dragonflydb/dragonfly", "args": ["--maxmemory=2gb"]},
        {"image": "dragonflydb/dragonfly", "env": {"DFLY_maxmemory": "2gb"}},
    ],
)
def test_what_sizes_itself_by_the_cpu_limit_alone(fields: dict[str, Any]) -> None:
    assert uses(**fields) == (READ, FREE)


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "redpandadata/redpanda", "args": ["redpanda", "start", "--memory", "2G"]},
        {"image": "scylladb/scylla:6.2", "args": ["--memory=2G", "--smp=2"]},
        {"image": "dragonflydb/dragonfly", "args": ["--maxmemory=2gb", "--proactor_threads=4"]},
        {"image": "dragonflydb/dragonfly", "env": {"DFLY_maxmemory": "2gb", "DFLY_proactor_threads": "4"}},
    ],
)
def test_a_database_with_sizes_of_its_own_reads_no_limit(fields: dict[str, Any]) -> None:
    assert uses(**fields) == (FREE, FREE)


@pytest.mark.parametrize(
    "image", ["dragonflyoss/client", "scylladb/scylla-operator", "redpandadata/console", "controller"]
)
def test_neighbours_of_these_programs_are_not_known(image: str) -> None:
    assert uses(image=image) == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    "fields",
    [
        {"env": {"ACME_MEMORY_LIMIT_PERCENT": "80"}},
        {"env": {"MEM_RATIO": "0.5"}},
        {"env": {"HEAP_MAX_PERCENT": "7"}},
        {"args": ["--enable-feature=a,auto-gomemlimit"]},
        {"args": ["--auto-gomemlimit"]},
        {"args": ["--enable-auto-gomemlimit"]},
        {"args": ["--memory.cache-percent=40"]},
        {"args": ["server", "--cache-memory-percentage=40"]},
        {"args": ["-heap.max.ratio", "0.5"]},
        {"args": ["--set=processors.memory_limiter.limit_percentage=80"]},
        {"args": ["--config=yaml:processors::memory_limiter::limit_percentage: 80"]},
        {"args": ["--config=yaml:processors: {memory_limiter: {check_interval: 1s, limit_percentage: 80}}"]},
        {"args": ["--cacheMemoryPercent=40"]},
        {"args": ["--memory.maxPct", "40"]},
        {"args": ["--heap-fraction=0.5"]},
        {"args": ["--max_server_memory_usage_to_ram_ratio=0.8"]},
        {"args": ["--memory-usage-ratio=0.8"]},
    ],
)
def test_a_name_for_a_share_of_memory_shows_that_the_memory_limit_is_read(fields: dict[str, Any]) -> None:
    assert uses(**fields)[1] == READ


@pytest.mark.parametrize(
    "fields",
    [
        {"env": {"FRAME_RATIO": "2"}},
        {"env": {"CPU_PERCENT": "2"}},
        {"env": {"MEMORY_PERCENTILES": "2"}},
        {"env": {"MEMORY": "1Gi"}},
        {"args": ["--diagram-ratio=2"]},
        {"args": ["--no-auto-gomemlimit"]},
        {"args": ["a memory percent"]},
        {"args": ["--no-enable-auto-gomemlimit"]},
        {"args": ["--memory-percentiles=9"]},
        {"args": ["--memory.ration=2"]},
        {"args": ["--diagramPercent=2"]},
    ],
)
def test_other_shares_and_other_words_for_memory_show_nothing(fields: dict[str, Any]) -> None:
    assert uses(**fields)[1] == UNKNOWN


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "golang:1.25"},
        {"env": {"GOGC": "50"}},
        {"env": {"GOMEMLIMIT": "1GiB"}},
        {"image": "erlang:27"},
        {"env": {"RUST_LOG": "info"}},
        {"image": "rust:1.90"},
        {"env": {"RAYON_NUM_THREADS": "2"}},
        {"env": {"NGINX_ENTRYPOINT_WORKER_PROCESSES_AUTOTUNE": "1"}},
        {"image": "envoyproxy/envoy:v1.37"},
        {"command": ["envoy", "-c", "/etc/envoy.yaml"]},
        {"image": "envoyproxy/envoy:v1", "args": ["--concurrency", "0"]},
        {"env": {"WEB_CONCURRENCY": "auto", "RAILS_ENV": "production"}},
        {"image": "ruby:3.4", "env": {"WEB_CONCURRENCY": "auto"}},
        {"env": {"GOMAXPROCS": "$(CPUS)"}},
        {"env": {"AUTOMEMLIMIT": "off"}},
        {"env": {"ELIXIR_ERL_OPTIONS": "+K true"}},
    ],
)
def test_what_sizes_itself_by_the_cpu_limit(fields: dict[str, Any]) -> None:
    assert uses(**fields) == (READ, FREE)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"env": {"JAVA_OPTS": f"{JVM_PERCENT} -Xmx1g"}}, (READ, FREE)),
        ({"env": {"JAVA_OPTS": JVM_PERCENT, "EXTRA": "-Xmx1g"}}, (READ, FREE)),
        ({"image": "eclipse-temurin:21", "args": ["-Xmx1g"]}, (READ, FREE)),
        ({"image": "eclipse-temurin:21", "env": {"X": "-XX:ActiveProcessorCount=2"}}, (FREE, READ)),
        ({"image": "eclipse-temurin:21", "env": {"X": "-XX:-UseContainerSupport"}}, (FREE, FREE)),
        ({"image": "cassandra:5", "env": {"MAX_HEAP_SIZE": "4G"}}, (READ, FREE)),
        ({"image": "node:22", "env": {"NODE_OPTIONS": "--max-old-space-size=400"}}, (FREE, FREE)),
        ({"command": ["node"], "args": ["--max_old_space_size", "400", "server.js"]}, (FREE, FREE)),
        ({"env": {"DOTNET_GCHeapHardLimit": "0x10000000", "DOTNET_PROCESSOR_COUNT": "2"}}, (FREE, FREE)),
        ({"env": {"AUTOMEMLIMIT": "0.9"}}, (READ, READ)),
        ({"env": {"AUTOMEMLIMIT": "0.9", "GOMEMLIMIT": "1GiB", "GOMAXPROCS": "2"}}, (FREE, FREE)),
        ({"image": "golang:1.25", "env": {"GODEBUG": "x=1,containermaxprocs=0"}}, (FREE, FREE)),
        ({"image": "prom/prometheus", "args": ["--no-auto-gomemlimit", "--no-auto-gomaxprocs"]}, (FREE, FREE)),
        ({"image": "victoriametrics/vmagent", "args": ["-memory.allowedBytes=1GB"]}, (READ, FREE)),
        ({"image": "mongo:7", "args": ["--wiredTigerCacheSizeGB", "1"]}, (FREE, FREE)),
        ({"image": "erlang:27", "env": {"ERL_FLAGS": "+S 2:2"}}, (FREE, FREE)),
        ({"env": {"COMPlus_GCHeapHardLimitSOH": "40000000"}}, (READ, FREE)),
        ({"image": "envoyproxy/envoy:v1.37", "args": ["--concurrency", "2"]}, (FREE, FREE)),
        ({"image": "envoyproxy/envoy:v1", "env": {"ENVOY_CGROUP_CPU_DETECTION": "False"}}, (FREE, FREE)),
        ({"image": "pingcap/tikv:v8", "env": {"TIKV_CPU_CORES_QUOTA": "4"}}, (FREE, READ)),
        (
            {"image": "otel/opentelemetry-collector", "args": ["--set=processors.memory_limiter.limit_mib=400"]},
            (READ, FREE),
        ),
        ({"image": "mongo:7", "args": ["--wiredTigerCacheSizeGB", "0.5"]}, (FREE, FREE)),
        ({"image": "app-jdk:1", "env": {"A": "-Xmx$(HEAP)"}}, (READ, FREE)),
        ({"env": {"JAVA_OPTS": "-Xmx1g -XX:MinHeapFreeRatio=5 -XX:InitiatingHeapOccupancyPercent=9"}}, (READ, FREE)),
        ({"env": {"TOKIO_WORKER_THREADS": "4"}}, (FREE, FREE)),
        ({"env": {"NGINX_ENTRYPOINT_WORKER_PROCESSES_AUTOTUNE": ""}}, (FREE, FREE)),
        ({"image": "dask/dask", "args": ["dask", "worker", "--nthreads", "2", "--memory-limit", "4GB"]}, (FREE, FREE)),
        ({"image": "mssql/server:2022", "env": {"MSSQL_MEMORY_LIMIT_MB": "2048"}}, (FREE, FREE)),
    ],
)
def test_a_size_of_its_own_frees_a_limit(fields: dict[str, Any], expected: tuple[str, str]) -> None:
    assert uses(**fields) == expected


@pytest.mark.parametrize("value", ["4", "", "automatic"])
def test_a_number_of_workers_shows_no_runtime(value: str) -> None:
    assert uses(env={"WEB_CONCURRENCY": value}) == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    ("option", "shown_by"),
    [("--auto-gomemlimit.ratio=0.8", "--auto-gomemlimit"), ("--enable-auto-gomemlimit", "--enable-auto-gomemlimit")],
)
def test_an_option_of_several_programs_names_itself_and_none_of_them(option: str, shown_by: str) -> None:
    container: dict[str, Any] = {"image": "quay.io/thanos/thanos:v0.39.2", "args": ["receive", option]}
    readers = [use_of(container, resource) for resource in ("cpu", "memory")]
    assert [(one.name, one.shown_by.partition(" in ")[0]) for one in readers if isinstance(one, LimitReader)] == [
        ("a Go program", shown_by),
        ("a program that takes a share of its memory limit", shown_by),
    ]


def test_a_value_that_the_pod_does_not_contain_counts_for_settings_of_any_value() -> None:
    unseen = {"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
    assert uses(more_env=[{"name": "GOMAXPROCS", **unseen}]) == (FREE, FREE)
    assert uses(more_env=[{"name": "AUTOMEMLIMIT", **unseen}]) == (READ, READ)
    assert uses(more_env=[{"name": "JAVA_OPTS", **unseen}]) == (READ, READ)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/sys/fs/cgroup/memory.max", (UNKNOWN, READ)),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", (UNKNOWN, READ)),
        ("/sys/fs/cgroup/cpu.max", (READ, UNKNOWN)),
    ],
)
def test_a_script_that_reads_the_cgroup_reads_the_limit(path: str, expected: tuple[str, str]) -> None:
    found = uses(command=["sh", "-c", f"exec web --share $(cat {path})"])
    assert tuple(word.replace(FREE, UNKNOWN) for word in found) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"image": "registry.example.com/team/pay:1"},
        {"image": "quay.io/calico/node:v3"},
        {"image": "prom/node-exporter:v1"},
        {"image": "bitnami/kafka-exporter:1"},
        {"image": "acme/javascript-ui"},
        {"args": ["node", "--endpoint=unix:///csi.sock"]},
        {"env": {"LANGUAGE": "en"}},
        {"labels": {"app": "java"}},
        {"labels": {"instrumentation.opentelemetry.io/inject-java": "false"}},
        {"labels": {"runtime": "fast"}},
        {"image": "java.example.com/team/pay"},
        {"args": ["--mode=java"]},
    ],
)
def test_what_shows_no_runtime(fields: dict[str, Any]) -> None:
    assert uses(**fields) == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("image", ["python:3.13", "php:8-fpm", "ruby:3"])
def test_a_known_runtime_that_reads_no_limit(image: str) -> None:
    assert uses(image=image) == (FREE, FREE)


def test_labels_do_not_speak_for_a_container_that_shows_its_own_runtime() -> None:
    assert uses(image="python:3.13", labels={"app.openshift.io/runtime": "java"}) == (FREE, FREE)


def test_no_text_of_a_container_stays_after_it_is_decoded() -> None:
    fields = {
        "env": {"SECRET_JAVA_OPTS": f"{JVM_PERCENT} hunter2"},
        "command": ["sh", "-c", "java -Dpassword.x=hunter2 -jar hunter2.jar"],
        "args": ["--token=hunter2"],
    }
    text = json.dumps(msgspec.to_builtins(container_of(fields)))
    assert ("hunter2" in text, "SECRET" in text, "MaxRAMPercentage" in text) == (False, False, True)


def test_an_encoded_container_shows_the_same() -> None:
    container = container_of({"env": {"JAVA_OPTS": JVM_PERCENT}, "args": ["-Xmx1g"]})
    assert msgspec.json.decode(msgspec.json.encode(container), type=Container) == container


def test_long_texts_are_read_up_to_a_maximum() -> None:
    """A pod may be a megabyte long. What is behind the maximum counts as not seen."""
    assert uses(args=["x" * 2_000_000, "-XX:MaxRAMPercentage=75"]) == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("part", ["mem.", "-", " --", "MEM_", "_", "memory_", "aMemory", "-Xmx0", "0", "=0", "enable-"])
def test_the_time_of_a_search_grows_only_with_the_length_of_the_text(part: str) -> None:
    text = "--" + part * 8000 + " ".join(literal for pattern in PATTERNS for literal in pattern.literals)
    started = time.process_time()
    uses(args=[text], env={text[:16_000]: text})
    assert time.process_time() - started < 2


ENVIRONMENTS = st.dictionaries(
    st.sampled_from(["JAVA_OPTS", "NODE_OPTIONS", "GOMAXPROCS", "GOMEMLIMIT", "AUTOMEMLIMIT", "ACME"]),
    st.sampled_from([JVM_PERCENT, "-Xmx1g", "--max-old-space-size=1", "2", "off", "x"]),
)
UNRELATED = st.dictionaries(
    st.from_regex(r"(URL|HOST|TOKEN|LOG)_[0-9]{1,3}", fullmatch=True),
    st.text("abcdefghijklmnopqrstuvwxyz:/ 0123456789", max_size=20),
    max_size=4,
)


@given(ENVIRONMENTS, UNRELATED, UNRELATED)
def test_unrelated_variables_never_change_the_answer(
    environment: dict[str, str], before: dict[str, str], after: dict[str, str]
) -> None:
    assert uses(env={**before, **environment, **after}) == uses(env=environment)


def test_a_pod_from_any_door_holds_no_text() -> None:
    plain = {"spec": {"containers": [{"name": "a", "env": [{"name": "A", "value": "hunter2"}], "args": ["hunter2"]}]}}
    for pod in (msgspec.convert(plain, Pod), msgspec.json.decode(json.dumps(plain), type=Pod)):
        assert "hunter2" not in repr(pod)


def test_values_that_are_no_text_show_nothing() -> None:
    """The API server refuses them; what is read from files must not fail on them."""
    strange = {"args": [1, None, 10**30, "\ud800"], "env": [{"name": 1, "value": 2}, {"name": "JAVA_OPTS", "value": 3}]}
    container = msgspec.convert({"name": "a", **strange}, Container)
    assert [sign.runtime for sign in container.runtime_signs] == ["a JVM"]
