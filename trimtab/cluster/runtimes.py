"""The language runtimes and servers that size themselves by the limits of their container, as a table.

A row says by which words in an image, variables, options and programs a runtime is recognized, which limits it reads if
it is not told otherwise, and which settings make it independent of a limit. `trimtab.cluster.runtime_signs` reads the
table. General signs come before names: any text with `RAMPercentage` shows a JVM, whatever the variable is called.

All patterns are valid for Python and for RE2, because compiled policies use them in CEL. They have no nested
repetitions, because the texts come from users.
"""

from trimtab.cluster.runtime_patterns import (
    CPU,
    MEMORY,
    OPTION_VALUE,
    OWN_SIZE,
    Runtime,
    SizeSetting,
    TellingValue,
    TextPattern,
    size_option,
)

_OPTION_START = "(^|[=,\\s])-{0,2}(enable-)?"
"""What is in front of an option's name that switches it on; neither `--no-` nor `--no-enable-` is among it."""
_AUTO_MEMORY_LIMIT = TextPattern("auto-gomemlimit", f"{_OPTION_START}auto-gomemlimit")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


RUNTIMES: tuple[Runtime, ...] = (
    Runtime(
        name="a JVM",
        reads=(CPU, MEMORY),
        source="openjdk/jdk, os_linux.cpp: physical and available memory by OSContainer::memory_limit_in_bytes, and "
        "active_processor_count (JDK-8146115); Arguments::set_heap_size; eclipse-openj9/openj9-docs, "
        "xxusecontainersupport.md; paketo-buildpacks/libjvm, helper/memory_calculator.go; "
        "questdb/questdb, core/docker-entrypoint.sh: java without a heap size",
        words=_words(
            "java openjdk jdk jre jvm temurin corretto zulu liberica semeru graalvm sapmachine dragonwell "
            "jruby kotlin scala clojure groovy tomcat jetty wildfly payara quarkus micronaut springboot "
            "openliberty maven gradle sbt"
        ),
        images=_words(
            "open-liberty activemq artemis cassandra cp-kafka cp-kafka-connect cp-ksqldb-server "
            "cp-schema-registry cp-server cp-zookeeper druid elasticsearch flink hazelcast jboss-eap jenkins "
            "kafka kafka-connect kafka-ui keycloak logstash neo4j nexus nexus3 nifi opensearch pulsar questdb "
            "solr sonarqube spark trino websphere-liberty zookeeper"
        ),
        label_words=("spring", "spring-boot"),
        usual_variables=_words(
            "JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS JAVA_OPTS JAVA_OPTIONS JAVA_OPTS_APPEND "
            "JAVA_ARGS JAVA_HOME JVM_OPTS JVM_ARGS CATALINA_OPTS MAVEN_OPTS GRADLE_OPTS SBT_OPTS ANT_OPTS "
            "ES_JAVA_OPTS LS_JAVA_OPTS OPENSEARCH_JAVA_OPTS SOLR_JAVA_MEM SOLR_OPTS KAFKA_HEAP_OPTS "
            "KAFKA_OPTS KAFKA_JVM_PERFORMANCE_OPTS ZK_SERVER_HEAP SERVER_JVMFLAGS JVMFLAGS HADOOP_OPTS "
            "HBASE_OPTS ACTIVEMQ_OPTS JENKINS_JAVA_OPTS JAVA_OPTS_KC_HEAP JAVA_MAX_MEM_RATIO "
            "JAVA_INITIAL_MEM_RATIO JBOSS_HOME JBOSS_JAVA_SIZING PREPEND_JAVA_OPTS CONTAINER_HEAP_PERCENT "
            "BPL_JVM_HEADROOM BPL_JVM_HEAD_ROOM BPL_JVM_THREAD_COUNT BPL_JVM_LOADED_CLASS_COUNT "
            "BPL_SPRING_CLOUD_BINDINGS_DISABLED SPRING_PROFILES_ACTIVE SPRING_APPLICATION_JSON MAX_HEAP_SIZE "
            "OPENJ9_JAVA_OPTIONS IBM_JAVA_OPTIONS"
        ),
        variable="(^|_)(JAVA|JDK|JRE|JVM)(_|$)|^(SPRING|QUARKUS|MICRONAUT|JBOSS|WILDFLY|CATALINA)_",
        limit_options=(
            TextPattern("RAMPercentage", "(Initial|Max|Min)?RAMPercentage"),
            TextPattern("RAMFraction", "(Initial|Max|Min)?RAMFraction"),
            TextPattern("MaximumHeapSizePercent"),
            TextPattern("UseCGroupMemoryLimitForHeap"),
            TextPattern("+UseContainerSupport"),
        ),
        options=(
            TextPattern("-XX:"),
            TextPattern("-javaagent:"),
            TextPattern("-Xm", "-Xm[snx][0-9]"),
            TextPattern("-Xs", "(^|\\s)-Xs[shc]"),
            TextPattern("-D", "(^|\\s)-D[a-z]+[.]"),
        ),
        programs=_words("java jruby spark-submit catalina.sh mvn gradle sbt"),
        files=("jar", "war"),
        settings=(
            SizeSetting(
                frees=(MEMORY,),
                options=(size_option("-Xmx", ""), size_option("-XX:MaxHeapSize=", ""), size_option("-XX:MaxRAM=", "")),
            ),
            SizeSetting(frees=(MEMORY,), variable="MAX_HEAP_SIZE|.*_?XMX|ES_HEAP_SIZE|LS_HEAP_SIZE"),
            SizeSetting(frees=(CPU,), options=(size_option("-XX:ActiveProcessorCount=", ""),)),
            SizeSetting(frees=(CPU, MEMORY), options=(TextPattern("-XX:-UseContainerSupport"),), is_switch=True),
        ),
    ),
    Runtime(
        name="the .NET runtime",
        reads=(CPU, MEMORY),
        source="dotnet/docs, docs/core/runtime-config/garbage-collector.md (heap hard limit: 75% of the container's "
        "limit by default; heap hard limit percent; limits for each heap); dotnet/runtime, "
        "src/coreclr/inc/clrconfignames.h, PROCESSOR_COUNT: the number of processors, if it is between 1 and 65535; "
        "otherwise by affinity and the cpu limit",
        words=("dotnet", "dotnetcore", "aspnet", "aspnetcore", "csharp"),
        usual_variables=_words(
            "DOTNET_GCHeapHardLimitPercent COMPlus_GCHeapHardLimitPercent DOTNET_gcServer COMPlus_gcServer "
            "DOTNET_GCHeapCount DOTNET_GCConserveMemory DOTNET_ENVIRONMENT DOTNET_RUNNING_IN_CONTAINER "
            "ASPNETCORE_URLS ASPNETCORE_ENVIRONMENT ASPNETCORE_HTTP_PORTS"
        ),
        variable="^(DOTNET|COMPlus|ASPNETCORE)_",
        limit_options=(TextPattern("GCHeapHardLimitPercent"),),
        programs=("dotnet",),
        files=("dll",),
        settings=(
            # The absolute limit is used before a percentage, and limits of single heaps before both. 0 is no limit.
            SizeSetting(
                frees=(MEMORY,),
                variable="(DOTNET|COMPlus)_GCHeapHardLimit(SOH)?",
                value="(0[xX])?0*[1-9a-fA-F][0-9a-fA-F]*",
            ),
            SizeSetting(frees=(CPU,), variable="(DOTNET|COMPlus)_PROCESSOR_COUNT", value="0*[1-9][0-9]{0,4}"),
        ),
    ),
    Runtime(
        name="Node.js",
        reads=(MEMORY,),
        source="nodejs/node, doc/api/cli.md: --max-old-space-size and --max-old-space-size-percentage, which takes "
        "precedence; src/node_options.cc: a share of the constrained memory; "
        "src/node.cc, ResourceConstraints by uv_get_constrained_memory",
        words=("nodejs",),
        label_words=("node", "javascript", "typescript", "nextjs"),
        images=_words("library/node bitnami/node chainguard/node cimg/node circleci/node node-chrome"),
        usual_variables=("NODE_OPTIONS", "NODE_ENV", "NODE_EXTRA_CA_CERTS", "NODE_PATH", "NPM_CONFIG_LOGLEVEL"),
        limit_options=(TextPattern("percentage", "max[-_]old[-_]space[-_]size[-_]percentage"),),
        options=(TextPattern("--max", "--max[-_](old|semi)[-_]space[-_]size"),),
        programs=_words("node nodejs npm npx yarn pnpm pm2-runtime"),
        files=("js", "cjs", "mjs", "ts"),
        settings=(
            SizeSetting(
                frees=(MEMORY,),
                options=(TextPattern("--max", f"--max[-_]old[-_]space[-_]size{OPTION_VALUE}{OWN_SIZE}"),),
            ),
        ),
        overriding_options=(TextPattern("percentage", "max[-_]old[-_]space[-_]size[-_]percentage"),),
    ),
    Runtime(
        name="a Go program",
        reads=(CPU,),
        source="go.dev, release notes of Go 1.25: GOMAXPROCS considers the cgroup's cpu limit unless the variable "
        "GOMAXPROCS or GODEBUG=containermaxprocs=0 is set",
        words=("golang",),
        label_words=("go",),
        usual_variables=("GOGC", "GOMEMLIMIT", "GODEBUG", "GOTRACEBACK", "GOMAXPROCS"),
        variable="^AUTOMEMLIMIT",
        # Several programs in Go have these options: Prometheus, Alertmanager, Thanos, GCS FUSE.
        limit_options=(_AUTO_MEMORY_LIMIT, TextPattern("auto-gomaxprocs", f"{_OPTION_START}auto-gomaxprocs")),
        programs=("go",),
        settings=(
            SizeSetting(frees=(CPU,), variable="GOMAXPROCS", value="[1-9][0-9]*"),
            SizeSetting(
                frees=(CPU,), variable="GODEBUG", value=".*containermaxprocs=0.*", frees_unseen=False, is_switch=True
            ),
        ),
    ),
    Runtime(
        name="automemlimit, which sets Go's memory limit",
        reads=(MEMORY,),
        source="github.com/KimMachineGun/automemlimit: AUTOMEMLIMIT is a share of the cgroup's limit, or off; it does "
        "nothing where GOMEMLIMIT is set",
        usual_variables=("AUTOMEMLIMIT",),
        settings=(
            SizeSetting(frees=(MEMORY,), variable="GOMEMLIMIT"),
            SizeSetting(frees=(MEMORY,), variable="AUTOMEMLIMIT", value="off|", frees_unseen=False, is_switch=True),
        ),
    ),
    Runtime(
        name="Prometheus",
        reads=(CPU, MEMORY),
        source="prometheus/prometheus, CHANGELOG.md of 3.0 (#15373, #15376): GOMEMLIMIT and GOMAXPROCS follow the "
        "container's limits unless --no-auto-gomemlimit and --no-auto-gomaxprocs are set",
        images=("prometheus",),
        settings=(
            SizeSetting(frees=(MEMORY,), options=(TextPattern("--no-auto-gomemlimit"),), is_switch=True),
            SizeSetting(frees=(MEMORY,), variable="GOMEMLIMIT"),
            SizeSetting(frees=(CPU,), options=(TextPattern("--no-auto-gomaxprocs"),), is_switch=True),
            SizeSetting(frees=(CPU,), variable="GOMAXPROCS", value="[1-9][0-9]*"),
        ),
    ),
    Runtime(
        name="VictoriaMetrics",
        reads=(CPU, MEMORY),
        source="VictoriaMetrics/VictoriaMetrics, lib/memory/memory.go: -memory.allowedPercent, 60 by default, unless "
        "-memory.allowedBytes is above 0; lib/cgroup/cpu.go: GOMAXPROCS by the cgroup's quota",
        images=_words("victoria-metrics victoria-logs vmagent vminsert vmselect vmsingle vmstorage vmalert"),
        limit_options=(TextPattern("memory.allowedPercent"),),
        settings=(
            SizeSetting(frees=(MEMORY,), options=(size_option("-memory.allowedBytes"),)),
            SizeSetting(frees=(CPU,), variable="GOMAXPROCS", value="[1-9][0-9]*"),
        ),
    ),
    Runtime(
        name="the Erlang VM",
        reads=(CPU,),
        source="erlang.org, release notes of OTP 23: the default number of schedulers obeys the cgroup's cpu quota; "
        "erl +S",
        words=("erlang", "elixir"),
        images=("rabbitmq", "emqx", "ejabberd", "vernemq", "couchdb"),
        usual_variables=("ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ELIXIR_ERL_OPTIONS", "RELEASE_COOKIE"),
        variable="^(ERL|ELIXIR|RABBITMQ)_",
        programs=("erl", "elixir", "iex", "mix", "rabbitmq-server"),
        settings=(SizeSetting(frees=(CPU,), options=(size_option("+S", "\\s{0,4}"),)),),
    ),
    Runtime(
        name="RabbitMQ",
        reads=(MEMORY,),
        source="rabbitmq.com, memory threshold: vm_memory_high_watermark.relative is a share of the container's limit; "
        "docker-library/rabbitmq, docker-entrypoint.sh of 3.8 computes it from the cgroup's limit",
        images=("rabbitmq",),
        variable="^RABBITMQ_",
        limit_options=(TextPattern("vm_memory_high_watermark.relative"),),
        programs=("rabbitmq-server",),
        settings=(
            SizeSetting(
                frees=(MEMORY,),
                options=(
                    size_option("vm_memory_high_watermark.absolute"),
                    size_option("total_memory_available_override_value"),
                ),
            ),
        ),
    ),
    Runtime(
        name="MongoDB",
        reads=(MEMORY,),
        source="mongodb.com, hostInfo: a container's memory limit is the memory of which WiredTiger's cache takes half "
        "by default; the page about WiredTiger says that it may not see the limit: set --wiredTigerCacheSizeGB",
        images=("mongo", "mongodb", "percona-server-mongodb", "mongodb-community-server", "mongodb-enterprise-server"),
        programs=("mongod",),
        settings=(SizeSetting(frees=(MEMORY,), options=(size_option("--wiredTigerCacheSizeGB"),)),),
    ),
    Runtime(
        name="ClickHouse",
        reads=(CPU, MEMORY),
        source="ClickHouse/ClickHouse: base/base/getMemoryAmount.cpp reads the cgroup's memory limit, of which "
        "max_server_memory_usage_to_ram_ratio is a share; src/Common/getNumberOfCPUCoresToUse.cpp obeys the cgroup's "
        "cpu limit",
        images=("clickhouse", "clickhouse-server"),
        programs=("clickhouse-server",),
    ),
    Runtime(
        name="Envoy",
        reads=(CPU,),
        source="envoyproxy/envoy, source/server/options_impl_platform_linux.cc, and the release notes of 1.37: without "
        "--concurrency, the number of workers obeys the cgroup's cpu limit, unless ENVOY_CGROUP_CPU_DETECTION is false",
        images=("envoy", "envoy-contrib", "envoy-distroless"),
        usual_variables=("ENVOY_CGROUP_CPU_DETECTION", "ENVOY_UID"),
        programs=("envoy",),
        settings=(
            SizeSetting(frees=(CPU,), options=(size_option("--concurrency"),)),
            SizeSetting(
                frees=(CPU,),
                variable="ENVOY_CGROUP_CPU_DETECTION",
                value="[fF][aA][lL][sS][eE]",
                frees_unseen=False,
                is_switch=True,
            ),
        ),
    ),
    Runtime(
        name="the OpenTelemetry Collector",
        reads=(CPU, MEMORY),
        source="open-telemetry/opentelemetry-collector, memory limiter: limit_percentage is a share of the cgroup's "
        "memory limit, and limit_mib takes precedence; it is a Go program. Its configuration is mostly in a ConfigMap",
        words=("otelcol",),
        images=_words(
            "opentelemetry-collector opentelemetry-collector-contrib opentelemetry-collector-k8s "
            "otel-collector aws-otel-collector splunk-otel-collector dynatrace-otel-collector"
        ),
        limit_options=(TextPattern("limit_percentage"),),
        programs=("otelcol", "otelcol-contrib", "otelcol-k8s"),
        settings=(
            # Not `spike_limit_mib`, which may be beside a percentage.
            SizeSetting(
                frees=(MEMORY,), options=(TextPattern("limit_mib", f"(^|[^_a-z])limit_mib{OPTION_VALUE}{OWN_SIZE}"),)
            ),
            SizeSetting(frees=(CPU,), variable="GOMAXPROCS", value="[1-9][0-9]*"),
        ),
    ),
    Runtime(
        name="TiKV",
        reads=(CPU, MEMORY),
        source="tikv/tikv, components/tikv_util/src/sys/mod.rs, SysQuota: cpus and memory are at most those of the "
        "cgroup, and at most TIKV_CPU_CORES_QUOTA cpus",
        images=("tikv",),
        usual_variables=("TIKV_CPU_CORES_QUOTA",),
        programs=("tikv-server",),
        settings=(SizeSetting(frees=(CPU,), variable="TIKV_CPU_CORES_QUOTA"),),
    ),
    Runtime(
        name="TiDB",
        reads=(CPU, MEMORY),
        source="pingcap/tidb, pkg/util/memory/meminfo.go: in a container, the total memory is at most the cgroup's "
        "limit; pkg/util/cgmon/cgmon.go sets GOMAXPROCS by the cgroup's quota",
        images=("tidb",),
        programs=("tidb-server",),
    ),
    Runtime(
        name="Caddy",
        reads=(CPU, MEMORY),
        source="caddyserver/caddy, cmd/main.go: automaxprocs and automemlimit by the cgroup's limits",
        images=("caddy",),
        programs=("caddy",),
        settings=(
            SizeSetting(frees=(MEMORY,), variable="GOMEMLIMIT"),
            SizeSetting(frees=(MEMORY,), variable="AUTOMEMLIMIT", value="off", frees_unseen=False, is_switch=True),
            SizeSetting(frees=(CPU,), variable="GOMAXPROCS", value="[1-9][0-9]*"),
        ),
    ),
    Runtime(
        name="CockroachDB",
        reads=(CPU, MEMORY),
        source="cockroachdb/cockroach: cgroups.AdjustMaxProcs sets GOMAXPROCS, and shares of --cache and "
        "--max-sql-memory are of cgroups.GetMemoryLimit",
        images=("cockroach",),
        programs=("cockroach",),
    ),
    Runtime(
        name="SQL Server",
        reads=(MEMORY,),
        source="learn.microsoft.com, SQL Server on Linux: memory.memorylimitmb, by default 80% of the memory",
        images=("mssql/server", "azure-sql-edge"),
        usual_variables=("MSSQL_SA_PASSWORD", "MSSQL_PID"),
        variable="^MSSQL_",
        settings=(SizeSetting(frees=(MEMORY,), variable="MSSQL_MEMORY_LIMIT_MB"),),
    ),
    Runtime(
        name="a Rust program",
        reads=(CPU,),
        source="doc.rust-lang.org, std::thread::available_parallelism: the affinity mask and the cgroup's quota "
        "(rust-lang/rust#92697); tokio, TOKIO_WORKER_THREADS",
        words=("rust",),
        usual_variables=("RUST_LOG", "RUST_BACKTRACE", "TOKIO_WORKER_THREADS", "RAYON_NUM_THREADS"),
        settings=(SizeSetting(frees=(CPU,), variable="TOKIO_WORKER_THREADS", value="[1-9][0-9]*"),),
    ),
    Runtime(
        name="nginx, which counts its workers by the cpu limit",
        reads=(CPU,),
        source="nginxinc/docker-nginx, entrypoint/30-tune-worker-processes.sh: it reads the cgroup's quota if the "
        "variable is not empty",
        usual_variables=("NGINX_ENTRYPOINT_WORKER_PROCESSES_AUTOTUNE",),
        settings=(
            SizeSetting(
                frees=(CPU,),
                variable="NGINX_ENTRYPOINT_WORKER_PROCESSES_AUTOTUNE",
                value="",
                frees_unseen=False,
                is_switch=True,
            ),
        ),
    ),
    Runtime(
        name="the Ingress NGINX Controller",
        reads=(CPU,),
        source="kubernetes/ingress-nginx, internal/ingress/controller/config/config.go: WorkerProcesses is "
        "runtime.NumCPU of pkg/util/runtime/cpu_linux.go, which reads the cgroup's cpu quota; the setting "
        "worker-processes is in a ConfigMap",
        images=("ingress-nginx/controller", "ingress-nginx/controller-chroot", "nginx-ingress-controller"),
        programs=("nginx-ingress-controller",),
    ),
    Runtime(
        name="Seastar, the framework of Redpanda and ScyllaDB",
        reads=(MEMORY,),
        source="scylladb/seastar, src/core/resource.cc: calculate_memory takes all of the cgroup's memory but a "
        "reserve, unless --memory sets a size; of the cgroup's cpus, it reads only the cpuset",
        images=("redpanda", "redpanda-unstable", "scylla", "scylla-enterprise"),
        programs=("redpanda", "scylla"),
        settings=(SizeSetting(frees=(MEMORY,), options=(size_option("--memory"),)),),
    ),
    Runtime(
        name="Dragonfly",
        reads=(CPU, MEMORY),
        source="dragonflydb/dragonfly, src/server/dfly_main.cc: UpdateResourceLimitsIfInsideContainer reads the "
        "cgroup's memory and cpu limits; without --maxmemory, 80% of the memory, and each option can be a variable "
        "DFLY_*; romange/helio, util/proactor_pool.cc: --proactor_threads",
        images=("dragonflydb/dragonfly",),
        variable="^DFLY_",
        programs=("dragonfly",),
        settings=(
            SizeSetting(frees=(MEMORY,), options=(size_option("--maxmemory"),)),
            SizeSetting(frees=(MEMORY,), variable="DFLY_maxmemory"),
            SizeSetting(frees=(CPU,), options=(size_option("--proactor_threads"),)),
            SizeSetting(frees=(CPU,), variable="DFLY_proactor_threads", value="0*[1-9][0-9]*"),
        ),
    ),
    Runtime(
        name="Ray",
        reads=(CPU, MEMORY),
        source="ray-project/ray, python/ray/_private/utils.py: get_num_cpus and get_system_memory read the cgroup",
        images=("rayproject/ray", "ray-ml", "ray-llm"),
        variable="^RAY_",
        programs=("ray",),
        settings=(SizeSetting(frees=(CPU,), options=(size_option("--num-cpus"),)),),
    ),
    Runtime(
        name="Dask",
        reads=(CPU, MEMORY),
        source="dask/distributed, distributed/system.py and dask/system.py: MEMORY_LIMIT and CPU_COUNT are those of "
        "the cgroup",
        images=("dask", "dask-notebook"),
        variable="^DASK_",
        programs=("dask", "dask-worker"),
        settings=(
            SizeSetting(frees=(CPU,), options=(size_option("--nthreads"),)),
            SizeSetting(
                frees=(MEMORY,),
                options=(
                    # Without a unit, a number of at most 1 is a share.
                    TextPattern("--memory-limit", f"--memory-limit{OPTION_VALUE}{OWN_SIZE}[0-9.]{{0,20}}\\s?[kKMGT]"),
                ),
            ),
        ),
    ),
    Runtime(
        name="a program that takes a share of its memory limit",
        reads=(MEMORY,),
        # A general sign, beside the rows for programs: an option or variable whose name has words for memory and share.
        source="prometheus/alertmanager, --enable-feature=auto-gomemlimit; VictoriaMetrics, -memory.allowedPercent; "
        "open-telemetry/opentelemetry-collector, processors.memory_limiter.limit_percentage",
        variable="(^|_)(MEM|MEMORY|HEAP|RAM)_([A-Z_]{0,30}_)?(PERCENT|PERCENTAGE|PCT|RATIO|FRACTION)($|_)",
        limit_options=(
            _AUTO_MEMORY_LIMIT,
            TextPattern(
                "ercent",
                "[._:-](mem|memory|heap|ram|[a-z]{1,15}(Mem|Memory|Heap|Ram|RAM))([A-Z._:-][a-zA-Z._:-]{0,40})?"
                "([pP]ercent(age)?|[rR]atio|[fF]raction|[pP]ct)($|[^a-zA-Z0-9])",
                other_literals=("atio", "raction", "pct", "Pct"),
            ),
        ),
        settings=(SizeSetting(frees=(MEMORY,), variable="GOMEMLIMIT"),),
    ),
    Runtime(
        name="a script that reads the memory limit",
        reads=(MEMORY,),
        source="kernel.org, cgroup v2: memory.max; cgroup v1: memory.limit_in_bytes",
        limit_options=(TextPattern("/memory.max"), TextPattern("memory.limit_in_bytes")),
    ),
    Runtime(
        name="a script that reads the cpu limit",
        reads=(CPU,),
        source="kernel.org, cgroup v2: cpu.max; cgroup v1: cpu.cfs_quota_us",
        limit_options=(TextPattern("/cpu.max"), TextPattern("cpu.cfs_quota_us")),
    ),
    Runtime(
        name="Python",
        reads=(),
        source="docs.python.org, os.process_cpu_count: the cpus of the machine or of the affinity mask",
        words=("python", "django", "flask", "uvicorn", "gunicorn"),
        usual_variables=("PYTHONUNBUFFERED", "DJANGO_SETTINGS_MODULE"),
        programs=("python", "gunicorn", "uvicorn", "celery"),
        files=("py",),
    ),
    Runtime(
        name="PHP",
        reads=(),
        source="php.net, memory_limit: a fixed amount",
        words=("php", "laravel"),
        programs=("php", "php-fpm"),
    ),
    Runtime(
        name="Puma, which counts its workers by the cpu limit",
        reads=(CPU,),
        source="puma/puma, WEB_CONCURRENCY=auto: as many workers as Concurrent.available_processor_count, which "
        "ruby-concurrency/concurrent-ruby computes by the cgroup's quota",
        # gunicorn, uvicorn and the platforms read a number from the same variable.
        telling_values=(TellingValue("WEB_CONCURRENCY", "auto"),),
    ),
    Runtime(
        name="Ruby",
        reads=(),
        source="docs.ruby-lang.org, Etc.nprocessors: the cpus of the machine or of the affinity mask",
        words=("ruby", "rails"),
        usual_variables=("RAILS_ENV", "RACK_ENV"),
        programs=("ruby", "bundle", "rails", "puma"),
    ),
)
"""All rows. A container may show several of them."""
