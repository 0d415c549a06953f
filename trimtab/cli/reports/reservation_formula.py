"""The report of `trimtab reserved formula`: for each node, the reservations of each profile, term by term."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from trimtab.cli import output
from trimtab.cli.output import ReportPart
from trimtab.inputs.node_shapes import FormulaNode
from trimtab.reservations.formula import NodeReservations, ResourceReservation, compare_profiles, withheld_price_share
from trimtab.reservations.profile import GIB, Profile
from trimtab.sizing.cost import GIB_PER_CORE, HOURS_PER_MONTH

LARGE_SHARE = 0.15
"""If reservations cost at least this share of a node's price, the report suggests larger nodes."""


class TermReport(ReportPart, frozen=True, kw_only=True):
    """One term of a formula; a reservation is the sum of its terms."""

    kind: str
    """The kind of term: `base`, `bracket`, `per-pod`, `small-machine`, `max-share`, `minimum`, `rounding`."""
    amount: float
    """The amount of the term in millicores or bytes. It is negative if the term lowers the reservation."""
    low: float
    """The beginning of a bracket, or the amount for each pod."""
    high: float | None
    """The end of the counted part of a bracket, or the number of pods."""
    percent: float
    """The share in percent, of a bracket or of the size; 0 for a term that is an amount."""


class ReservationReport(ReportPart, frozen=True, kw_only=True):
    """What is reserved of one resource, in millicores or bytes."""

    size: float
    """The amount that the machine has."""
    lost: float
    """The amount that the hypervisor and the kernel take, so that the kubelet does not see it."""
    kube: float
    """The amount that is reserved for the kubelet and the container runtime (kubeReserved)."""
    system: float
    """The amount that is reserved for the operating system (systemReserved)."""
    eviction: float
    """The amount below which the kubelet evicts pods, so that pods cannot request it."""
    allocatable: int
    """The amount that is left for pods."""
    terms: list[TermReport]
    """The terms of the formula, which add up to what is reserved."""


class ProfileReport(ReportPart, frozen=True, kw_only=True):
    """The reservations of one profile."""

    profile: str
    """The name of the profile, as --profile takes it."""
    title: str
    """The vendor or the program whose formula it is."""
    source: str
    """Where the formula was published."""
    cpu: ReservationReport
    """The reservation of cpu."""
    memory: ReservationReport
    """The reservation of memory."""
    ephemeral_storage: ReservationReport | None
    """The reservation of disk; null if the profile does not define it, or the disk is not known."""
    process_ids: int | None
    """The number of reserved process ids; null if the profile does not define it."""
    price_share: float
    """The share of the node's price that pays for cpu and memory that pods cannot request, from 0 to 1."""
    dollars_per_month: float | None
    """The dollars per month that the share of the price amounts to; null if the node's price is not known."""
    fits_machine: bool
    """Whether any cpu and memory is left for pods."""


class PodLimitReport(ReportPart, frozen=True, kw_only=True):
    """One limit on the number of pods."""

    kind: str
    """What sets the limit: `kubelet`, `interfaces`, `prefixes`, `cilium`, `addresses`."""
    pods: int
    """The number of pods that the limit permits."""


class WithheldReport(ReportPart, frozen=True, kw_only=True):
    """The resources of existing nodes that pods cannot use: capacity minus allocatable."""

    millicores: int
    """The millicores that pods cannot use."""
    bytes: int
    """The bytes of memory that pods cannot use."""


class NodeFormulaReport(ReportPart, frozen=True, kw_only=True):
    """One node size, one machine type, or one kind of node in a cluster."""

    name: str
    """The size as given, the machine type, or what the nodes of this kind have in common."""
    nodes: int
    """The number of nodes of this kind in the snapshot; 0 without a snapshot."""
    millicores: int
    """The cpu of the machine in millicores."""
    memory_bytes: int
    """The memory of the machine in bytes."""
    max_pods: int
    """The kubelet's maxPods: the largest number of pods on the node."""
    now: WithheldReport | None
    """The resources that nodes of this kind withhold from pods now; null without a snapshot."""
    dollars_per_hour: float | None
    """The price of a node in dollars an hour; null if it is not known."""
    price_region: str
    """The region of the list price; empty if the price is the node's own."""
    pod_limits: list[PodLimitReport]
    """What limits the number of pods on the node; the smallest number holds."""
    profiles: list[ProfileReport]
    """What each profile reserves of the node."""
    notes: list[str]
    """What the formulas assume of the node, one sentence each."""


class ReservedFormulaReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab reserved formula`. Published as deploy/schemas/reserved-formula-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab reserved formula"
    api_version: str = output.API_VERSION
    kind: str = "ReservedFormulaReport"
    nodes: list[NodeFormulaReport]
    """The sizes, types or kinds of nodes, each with the reservations of all profiles."""


def build_report(profiles: Sequence[Profile], shapes: Sequence[FormulaNode]) -> ReservedFormulaReport:
    """Returns the report of all reservation profiles for all nodes in `shapes`."""
    return ReservedFormulaReport(nodes=[_report_shape(profiles, shape) for shape in shapes])


def _report_shape(profiles: Sequence[Profile], shape: FormulaNode) -> NodeFormulaReport:
    size = shape.size
    rows = [_report_profile(reservations, shape) for reservations in compare_profiles(profiles, size)]
    return NodeFormulaReport(
        name=shape.name,
        nodes=shape.nodes,
        millicores=size.millicores,
        memory_bytes=size.memory_bytes,
        max_pods=int(size.max_pods),
        price_region=shape.price_region,
        now=None
        if shape.withheld_now is None
        else WithheldReport(millicores=shape.withheld_now[0], bytes=shape.withheld_now[1]),
        dollars_per_hour=None if shape.price is None else shape.price / 1e6,
        pod_limits=[PodLimitReport(kind=limit.kind, pods=limit.pods) for limit in shape.limits],
        profiles=rows,
        notes=[*shape.notes, *_note_large_shares(rows)],
    )


def _note_large_shares(rows: Sequence[ProfileReport]) -> list[str]:
    large = [row.profile for row in rows if row.price_share >= LARGE_SHARE]
    if not large:
        return []
    return [
        f"The formula of {', '.join(large)} reserves at least {LARGE_SHARE:.0%} of the price of the node; of "
        "larger nodes a smaller share is reserved."
    ]


def _report_profile(reservations: NodeReservations, shape: FormulaNode) -> ProfileReport:
    profile = reservations.profile
    share = withheld_price_share(reservations, cpu_price_share(shape))
    month = None if shape.price is None else round(float(share) * shape.price * HOURS_PER_MONTH / 1e6, 2)
    return ProfileReport(
        profile=profile.name,
        title=profile.title,
        source=profile.source,
        cpu=_report_resource(reservations.cpu),
        memory=_report_resource(reservations.memory),
        ephemeral_storage=None if reservations.disk is None else _report_resource(reservations.disk),
        process_ids=reservations.process_ids,
        price_share=round(float(share), 4),
        dollars_per_month=month,
        fits_machine=reservations.fits_machine,
    )


def cpu_price_share(shape: FormulaNode) -> Fraction:
    """Returns the share of a node's price that pays for its cores, if one core costs as much as 7.5 GiB of memory."""
    cores = Fraction(shape.size.millicores, 1000) * Fraction(GIB_PER_CORE)
    return cores / (cores + Fraction(shape.size.memory_bytes, GIB))


def _report_resource(reservation: ResourceReservation) -> ReservationReport:
    return ReservationReport(
        size=float(reservation.size),
        lost=float(reservation.lost),
        kube=float(reservation.kube),
        system=float(reservation.system),
        eviction=float(reservation.eviction),
        allocatable=reservation.allocatable,
        terms=[
            TermReport(
                kind=term.kind,
                amount=float(term.amount),
                low=float(term.low),
                high=None if term.high is None else float(term.high),
                percent=float(100 * term.share),
            )
            for term in reservation.terms
        ],
    )
