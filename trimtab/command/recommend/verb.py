"""`trimtab recommend`: what should every container ask for, judging by what it used?"""

import re
from typing import Any

import click

from trimtab.cluster import quantity
from trimtab.cluster.mistake import Mistake
from trimtab.cluster.snapshot import build
from trimtab.command import live, output
from trimtab.command.main import Wrong
from trimtab.command.plan.asked import documents, moment
from trimtab.command.recommend import moments, patch, sources, standing, takeover, vpa
from trimtab.command.recommend.draw import as_csv, draw
from trimtab.command.recommend.page import page
from trimtab.command.recommend.report import RecommendReport
from trimtab.command.recommend.tell import report
from trimtab.policy.facts import from_snapshot
from trimtab.runtime import clock
from trimtab.sizing.enough import Seen, seen
from trimtab.sizing.request import Terms
from trimtab.sizing.rule import RULES
from trimtab.sketch.book import RESOURCES, Book
from trimtab.usage.owners import Owners

_WINDOW = re.compile(r"[1-9]\d*(s|m|h)")
FORMS = ("table", "json", "yaml", "csv", "html")


@click.command("recommend")
@live.options
@click.option("--usage", "paths", multiple=True, metavar="PATH",
              help="CSV or Parquet (timestamp, namespace, pod, container, cpu, memory), a saved answer of Prometheus, "
                   "VPA checkpoints; - for standard input.")  # fmt: skip
@click.option("--prometheus", "url", metavar="URL", help="Prometheus, Thanos, Mimir or what speaks like them.")
@click.option(
    "--kubelets",
    is_flag=True,
    help="With --cluster live: ask each node's kubelet, not the metrics API; takes `get` on nodes/proxy.",
)
@click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'",
              help="To log in or name a tenant: Authorization, X-Scope-OrgID, …")  # fmt: skip
@click.option("--ca", metavar="FILE", help="Certificates that Prometheus' own is signed by.")
@click.option("--matcher", default="", metavar="MATCHER", help='For every query, such as cluster="prod".')
@click.option("--namespace", "namespaces", multiple=True, metavar="NAME", help="Only these.")
@click.option("--days", default=14, show_default=True, type=click.IntRange(1, 60), help="Of history.")
@click.option("--step", default=300, show_default=True, type=click.IntRange(15, 3600), help="Seconds between points.")
@click.option("--rate", default="5m", show_default=True, metavar="WINDOW",
              help="Cpu is averaged over it: four scrapes at least.")  # fmt: skip
@click.option("--start-up", "start_up", default=0, show_default=True, type=click.IntRange(0, 3600), metavar="SECONDS",
              help="Leave out what a pod's first seconds took of cpu, and say how much that was.")  # fmt: skip
@click.option("--now", metavar="TIME", help="The end of the history asked of Prometheus, and what age is counted from.")
@click.option("--rule", type=click.Choice(list(RULES)), default="p95", show_default=True,
              help="Of static workloads. `steady`: P95 and 5 %, of cpu at most a quarter above P90; `lean`: of cpu P90 "
                   "and 5 %.")  # fmt: skip
@click.option("--least-cpu", default="10m", show_default=True, metavar="QUANTITY", help="Never ask for less.")
@click.option("--least-memory", default="16Mi", show_default=True, metavar="QUANTITY", help="Never ask for less.")
@click.option("--allow-hpa", is_flag=True, help="Change requests that an HPA counts by, and say what it would do.")
@click.option("--guaranteed", is_flag=True, help="Change Guaranteed pods too, request and limit together.")
@click.option(
    "--vpa-down",
    is_flag=True,
    help="The VPA's webhook cannot act: P95 instead of P5. Of a live cluster it is looked at.",
)
@click.option("--patch", "folder", metavar="FOLDER", help="Write kustomize patches there.")
@click.option("--export-vpa", "export", metavar="FILE", type=click.Path(dir_okay=False, writable=True),
              help="Write checkpoints there that a fresh VPA begins with.")  # fmt: skip
@click.option("--number", is_flag=True, help="Of a single series: only the request, in cores or bytes, not rounded.")
@click.option("-o", "--output", "form", type=click.Choice(FORMS), default="table", show_default=True,
              help="The form of the report.")  # fmt: skip
@click.option("--output-file", type=click.Path(dir_okay=False, writable=True),
              help="Write here instead of to the terminal.")  # fmt: skip
def verb(cluster: live.Asked, paths: tuple[str, ...], url: str | None, now: str | None, **more: Any) -> None:
    """What should every container ask for, judging by what it used; what would that save, and how sure is it?

    P95 where the request is static, P5 where a VPA takes over; memory by the peaks of six hours. What is asked for
    now, replicas, VPAs, HPAs and prices come from --cluster. Changes nothing.
    """
    at, terms, headers = _checked(cluster, paths, url, now, more)
    found = _standing(cluster, more["vpa_down"])
    owners = Owners(found.pods, found.workloads)
    book = Book(more["days"] + 1, start_up=more["start_up"])  # so many times 24 hours touch one calendar day more
    notes = sources.from_files(book, paths, owners, at)
    if url is not None:
        server = sources.Server(url=url, headers=headers, ca=more["ca"], days=more["days"], step=more["step"],
                                rate=more["rate"], namespaces=more["namespaces"], extra=more["matcher"])  # fmt: skip
        at = at if at is not None else int(clock.utc().timestamp())
        sources.from_prometheus(book, server, owners, at)
    notes += sources.left_out(book)
    notes += sources.unseen(book, more["rate"]) if url is not None else []
    alone = live.LIVE in cluster.paths and not paths and url is None
    notes += moments.add(book, cluster, owners, kubelets=more["kubelets"]) if alone else []
    notes += [f"{container}: its start took up to {most:.2f} cores, which is left out."
              for container, most in sorted(book.starts.items()) if most]  # fmt: skip
    if not book.pages and not book.advice:
        notes.append("No usage was found: look at the source, --namespace, --matcher, --days and --now.")
    if more["number"]:
        output.write(_number(book, terms), more["output_file"])
        return
    terms = Terms(rule=terms.rule, least_cpu=terms.least_cpu, least_memory=terms.least_memory, most=found.most,
                  allow_hpa=terms.allow_hpa, guaranteed=terms.guaranteed)  # fmt: skip
    told = report(book, found, terms, at, notes)
    if more["folder"]:
        written, others = patch.write(told, more["folder"])
        count = f"{len(written)} patch{'' if len(written) == 1 else 'es'}"
        click.echo(f"{count} and a kustomization.yaml in {more['folder']}", err=True)
        if others:
            click.echo(f"No patch, since kustomize cannot merge their containers: {', '.join(others)}", err=True)
    if more["export"]:
        exported = vpa.checkpoints(book, found)
        output.write(vpa.text(exported), more["export"])
        click.echo(f"{len(exported)} checkpoints in {more['export']}", err=True)
    _emit(more["form"], more["output_file"], told)


def _checked(
    cluster: live.Asked, paths: tuple[str, ...], url: str | None, now: str | None, more: dict[str, Any]
) -> tuple[int | None, Terms, dict[str, str]]:
    """The moment, the terms and the headers. Raises Wrong with every mistake of the options."""
    at, mistakes = moment(now)
    least = {}
    for resource in RESOURCES:
        text = more[f"least_{resource}"]
        if quantity.is_quantity(text):
            least[resource] = max(1, quantity.of(resource, text))
        else:
            mistakes.append(Mistake(file=f"--least-{resource}", expected="a quantity", came=repr(text)))
    if not _WINDOW.fullmatch(more["rate"]):
        mistakes.append(Mistake(file="--rate", expected="a window such as 5m or 2h", came=repr(more["rate"])))
    if not paths and url is None and live.LIVE not in cluster.paths:
        expected = "usage: --usage PATH, --prometheus URL or --cluster live"
        mistakes.append(Mistake(file="command line", expected=expected, came="none"))
    if more["kubelets"] and (live.LIVE not in cluster.paths or paths or url is not None):
        expected = "--cluster live, without --usage and --prometheus"
        mistakes.append(Mistake(file="--kubelets", expected=expected, came="another source"))
    if url is not None and not url.startswith(("http://", "https://")):
        mistakes.append(Mistake(file="--prometheus", expected="an address such as https://prometheus:9090", came=url))
    if mistakes:
        raise Wrong(mistakes)
    terms = Terms(rule=RULES[more["rule"]], least_cpu=least["cpu"], least_memory=least["memory"],
                  allow_hpa=more["allow_hpa"], guaranteed=more["guaranteed"])  # fmt: skip
    return at, terms, sources.header(more["headers"])


def _standing(cluster: live.Asked, vpa_down: bool) -> standing.Cluster:
    if not cluster.paths:
        return standing.Cluster(
            notes=["No --cluster: what is asked for now is not known, and nothing is saved or spent."]
        )
    found, mistakes = documents(live.read(cluster))
    built = build(found)
    if mistakes or built.mistakes:
        raise Wrong([*mistakes, *built.mistakes])
    acts, notes = not vpa_down, list[str]()
    if acts and live.LIVE in cluster.paths and built.snapshot.objects.get("VerticalPodAutoscaler"):
        acts, notes = takeover.acts(cluster)
    stands = standing.stands(built.snapshot, found, from_snapshot(built.snapshot, vpa_acts=acts))
    stands.notes += notes
    return stands


def _number(book: Book, terms: Terms) -> str:
    """Of the one series there is. Raises Wrong where there are more, or where it is too short."""
    known = [seen(resource, book.window(one, resource), kind=one.kind) for one, resource in book.pages]
    if len(known) != 1 or not isinstance(known[0], Seen):
        came = f"{len(known)} series" if len(known) != 1 else str(known[0])
        raise Wrong([Mistake(file="--usage", expected="one series of a day at least", came=came)])
    return f"{terms.rule.of(known[0])!r}\n"


def _emit(form: str, output_file: str | None, told: RecommendReport) -> None:
    if form == "csv":
        output.write(as_csv(told), output_file)
        return
    title = "trimtab recommend"
    output.emit(form, output_file, told, lambda console: draw(console, told), title, page=lambda: page(told))
