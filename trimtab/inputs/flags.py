"""Options that several verbs have: each is declared here once, with the help that fits most of them.

A verb for which an option means something narrower says so: `POOL.with_help("Show only this pool.")`. An option of a
single verb is declared in the dataclass of that verb. That a flag has one type is held by tests/cli/test_options.py.
"""

from __future__ import annotations

from trimtab.inputs.option import file_option, option

# The cluster
KUBECONFIG = file_option(
    "--kubeconfig",
    help="A kubeconfig file. Default: KUBECONFIG, then ~/.kube/config; in a pod, its own account.",
)
CONTEXT = option("--context", metavar="NAME", help="A context of the kubeconfig. Default: the current context.")
CLUSTER = option(
    "--cluster",
    metavar="SNAPSHOT",
    repeats=True,
    help="A file or folder from trimtab capture or kubectl get -o yaml; `live` reads the cluster.",
)
NOW_HELP = "The present time, from which ages and histories count back: an RFC 3339 time, `now`, or `none`."
NOW = option("--now", metavar="TIME", help=f"{NOW_HELP} Default: none, so ages and time windows are ignored.")
NOW_BY_CLOCK = NOW.with_help(f"{NOW_HELP} Default: now.")
"""The option of a verb that needs the present time."""
SERVER_VERSION = option("--server-version", metavar="VERSION", help="The Kubernetes version, such as 1.33.")

# Which objects
NAMESPACE = option(
    "-n",
    "--namespace",
    metavar="NAME",
    repeats=True,
    help="The namespace of the workloads that you ask about. You can repeat the option. Default: all namespaces.",
)
SYSTEM_NAMESPACE = option(
    "--system-namespace",
    metavar="NAME",
    repeats=True,
    former=("-n", "--namespace"),
    help="The namespace in which Trimtab is installed.",
)
ALL_NAMESPACES = option(
    "-A", "--all-namespaces", help="Include all namespaces, even if --namespace names one. This is the default."
)
SELECTOR = option(
    "-l", "--selector", metavar="SELECTOR", help="Include only objects with these labels, in kubectl's syntax."
)
FILENAME = option("-f", "--filename", metavar="PATH", repeats=True, help="Manifest files; - is standard input.")
POOL = option("--pool", metavar="NAME", repeats=True, help="Read only the nodes of this pool. Default: all nodes.")
POLICIES = option(
    "--policies", metavar="PATH", repeats=True, help="Files or folders with policies. Default: those of the cluster."
)
TEAM_LABEL = option(
    "--team-label", metavar="LABEL", help="The label of pods or namespaces whose value is the name of the team."
)
SINCE = option("--since", metavar="DURATION|DATE", help="The start of the report: an age such as 12h, or a date.")

# Usage
USAGE = option(
    "--usage",
    metavar="PATH",
    repeats=True,
    help="Usage series: CSV, Parquet or a saved response of Prometheus, gzip or not.",
)
PROMETHEUS = option("--prometheus", metavar="URL", help="The URL of Prometheus or another server with the same API.")
HEADER = option(
    "--header",
    metavar="'NAME: VALUE'",
    repeats=True,
    help="A header to log in or to select a tenant, such as Authorization or X-Scope-OrgID.",
)
HEADER_FILE = file_option(
    "--header-file",
    repeats=True,
    help="A file with one header in each line, so that no secret is visible in the list of processes.",
)
TOKEN_FILE = file_option("--token-file", help="The file with a bearer token to log in.")
CA = file_option("--ca", help="A file with the authorities that sign Prometheus' certificate.")
MATCHER = option("--matcher", metavar="MATCHER", help='A matcher for every query, such as cluster="prod".')
BY = option("--by", metavar="LABEL", help="Report each value of this label separately.")
DAYS = option("--days", minimum=1, maximum=366, help="The number of days of history.")
STEP = option("--step", minimum=15, maximum=86_400, help="The number of seconds between two points of a series.")
RATE = option(
    "--rate", metavar="WINDOW", help="The window over which cpu usage is averaged. It must span at least four scrapes."
)
RULE = option("--rule", metavar="RULE", help="The rule for requests, as for `trimtab recommend`.")
SUMMARY = file_option(
    "--summary",
    repeats=True,
    help="The output of kubectl get --raw /api/v1/nodes/NODE/proxy/stats/summary. Several files are several times.",
)

# Machines and prices
PRICES = option(
    "--prices",
    metavar="FILE|URL",
    repeats=True,
    help="A file with the prices that you pay: OpenCost's CSV, or the JSON of OpenCost's /assets or of the Prometheus "
    "metric node_total_hourly_cost. These prices take precedence over labels, settings and list prices.",
)
MAX_PODS = option(
    "--max-pods", minimum=1, maximum=10_000, help="The kubelet's maxPods, the largest number of pods of a node."
)
AUTOSCALER_FLAGS = option(
    "--autoscaler-flags",
    metavar="FLAGS",
    help="The flags of the cluster autoscaler, for snapshots that do not contain them (a capture does not). Semicolons "
    "separate the flags of several autoscalers.",
)

# What is done and shown
EXPLAIN = option(
    "--explain", metavar="KIND NAME", repeats=True, help="Show all reasons for one node or one pod (NAMESPACE/NAME)."
)
DETAILS = option("--details", former=("--explain",), help="Also show what stays unchanged and why.")
COMPARE = option("--compare/--no-compare", help="Compare with the alternatives.")
RESIZE = option(
    "--resize",
    help="Also show how many more nodes can be drained if the requests of running pods shrink first, as policies with "
    "`running: resize` allow.",
)
ROWS = option("--rows", minimum=0, maximum=10_000, help="The number of rows in the report.")
STRICT = option("--strict", help="Exit with 1 also if there are only warnings.")
WITHOUT = option("--without", metavar="NAME", repeats=True, help="Skip this rule. You can repeat the option.")
MANIFESTS = option("--manifests", help="Print only the proposed objects, as YAML.")
WRITE = option("--write", metavar="PATH", help="Write the report to this folder or object store.")
APPLY = option("--apply", help="Change the cluster. Without this option nothing is changed.")
UNDO = option("--undo", help="Undo what --apply did.")
TAKE_OVER = option("--take-over", help="Also replace what another client wrote.")
YES = option("--yes", help="Do it. Without this option the command only lists what it would do.")
DRY_RUN = option("--dry-run", help="Show what would happen, and change nothing.")
WHY = option("--why", metavar="TEXT", help="The reason, which other users see.")
AT_ONCE = option("--at-once", minimum=1, maximum=16, help="How much is done at the same time.")
FORCE = option("--force", help="Do it even if it is not due.")
ONCE = option("--once", help="Run one round and exit.")
IMAGE = option("--image", metavar="IMAGE", help="The container image.")

# Processes
LISTEN = option(
    "--listen", metavar="HOST:PORT", help="The address to serve on. With port 0 the system chooses a free port."
)
READY_FILE = file_option("--ready-file", help="A file that the process writes as soon as it serves its HTTP pages.")
CERTS = option("--certs", metavar="FOLDER", help="The folder with the certificate.")
OVERHEAD = option("--overhead", help="The component that writes pod overhead.")
