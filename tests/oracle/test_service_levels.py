"""Services with rates by MIG profile: engine and brute force agree in every tier, and `verify` with both (S2.8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from tests.oracle.brute import TooLarge, ascending, brute
from tests.oracle.test_mig import difference
from tests.support.fleet_cuts import cuts
from tests.support.mig_specs import tiny_mig
from tests.support.specs import policy

from dovetail.mig import Geometry
from dovetail.plan import Plan
from dovetail.rules.admission import Admission
from dovetail.spec import Request, Role, ServiceClass, Share, Slo, Spec, Workload
from dovetail.spec.workload import ShareMode

SLICE = 32
CAMPAIGN = 300


def rated(seed: int) -> Spec:
    """Return a Spec of a node or two on which what waits are services with rates."""
    draw = Random(f"rated {seed}")
    spec = tiny_mig(seed)
    nodes = tuple(
        replace(n, mechanism="fraction", price=draw.choice((0, 0, 5)), gpu_price=0) for n in spec.cluster.nodes
    )
    cluster = replace(spec.cluster, nodes=nodes, reconfiguration=spec.cluster.reconfiguration or "gpu")
    work = tuple(_service(draw, spec, w) if w.id.startswith("new") else w for w in spec.workloads)
    return replace(spec, cluster=cluster, workloads=work)


def _service(draw: Random, spec: Spec, work: Workload) -> Workload:
    (product,) = spec.accelerators
    geometry = spec.accelerators[product].mig
    assert geometry is not None
    rates = {f"{product}/{name}": rate for name, rate in _table(draw, geometry).items()}
    if draw.random() < 0.3:
        rates[product] = draw.choice((50, 100))
    modes: tuple[ShareMode, ...] = ("fraction", "mig") if product in rates else ("mig",)
    share = Share(draw.choice((100, 150)), memory=1000, modes=modes, rated=tuple(sorted(rates.items())))
    asked = Request(cpu=draw.choice((0, 1)), share=share)
    rate, open_ = draw.choice((100, 230, 400)), draw.random() < 0.6
    replicas = min(3, -(-rate // min(rates.values()))) if open_ else draw.choice((1, 2, 3))
    least = draw.choice((1, 1, min(2, replicas)))
    slo = Slo(rate, dict(sorted(rates.items())), open=open_, floors=_floors(draw))
    role = Role("", replicas, asked, draw.choice((asked.gpu_milli, 37)), accelerators=(product,))
    return replace(work, type="service", roles=(role,), slo=slo, min_replicas=least)


def going_on(seed: int) -> Spec:
    """Return a Spec of which what runs is of services too, with more replicas than run, and what waits may be."""
    draw = Random(f"going on {seed}")
    spec = rated(seed)
    work = tuple(_running(draw, spec, w) if w.id.startswith("run") else w for w in spec.workloads)
    return replace(spec, workloads=work)


def _running(draw: Random, spec: Spec, work: Workload) -> Workload:
    """Return a service of which one replica runs where its table lists it, or not: then its place is gone."""
    (product,) = spec.accelerators
    geometry = spec.accelerators[product].mig
    assert geometry is not None
    role, served = work.roles[0], _service(draw, spec, work)
    if draw.random() < 0.4 or served.slo is None:
        return work
    host = f"{product}/{role.request.mig}"
    rates = {**served.slo.rates, **({host: 90} if draw.random() < 0.8 else {})}
    share = served.roles[0].request.share
    assert share is not None
    asked = replace(role.request, mig="", mig_milli=0, share=replace(share, rated=tuple(sorted(rates.items()))))
    role = replace(served.roles[0], request=asked, replicas=min(2, max(1, served.replicas)))
    slo = replace(served.slo, rates=dict(sorted(rates.items())))
    more = {"movable": draw.random() < 0.7, "preemptible": draw.random() < 0.5, "min_replicas": 1}
    return replace(served, roles=(role,), slo=slo, **more)  # type: ignore[arg-type]


def _floors(draw: Random) -> ServiceClass:
    """Return what a class promises, often nothing but the rate."""
    if draw.random() < 0.5:
        return ServiceClass()
    return ServiceClass(draw.choice((1, 3)), draw.choice((0, 500)), draw.choice((0, 1, 2)), draw.choice((1000, 700)))


def _promised(draw: Random, spec: Spec, work: Workload) -> Workload:
    """Return a batch with a deadline, or a workload of a class."""
    (product,) = spec.accelerators
    geometry = spec.accelerators[product].mig
    assert geometry is not None
    floors = ServiceClass(draw.choice((1, 2)), draw.choice((0, 600, 1000)), draw.choice((0, 2)), 1000, 800)
    if draw.random() < 0.4:
        return replace(work, slo=Slo(listed=False, floors=floors))
    speed = draw.choice((300, 1000))
    share = work.roles[0].request.share
    rates = {f"{product}/{p.name}": (share.compute if share else p.milli) * speed // 1000 for p in geometry.profiles}
    rates[product] = (share.compute if share else 1000) * speed // 1000
    return replace(work, slo=Slo(draw.choice((100, 700, 1500)), rates, listed=False, floors=floors))


def promising(seed: int) -> Spec:
    """Return a Spec of work for MIG, running and waiting, of which some has a class or a deadline."""
    draw = Random(f"promising {seed}")
    spec = tiny_mig(seed)
    work = tuple(_promised(draw, spec, w) if draw.random() < 0.8 else w for w in spec.workloads)
    return replace(spec, workloads=work)


def _widened(draw: Random, work: Workload) -> Workload:
    """Return a workload that is elastic, and told what each of its widths is worth."""
    role = work.roles[0]
    replicas, step = draw.choice(((2, 1), (3, 1), (3, 2)))
    worths = sorted(draw.choice((100, 300, 500, 800, 1000)) for _ in range(1, replicas + 1, step))
    role = replace(role, replicas=replicas, least=1, step=step, worths=tuple(worths))
    return replace(work, roles=(role,), min_replicas=1)


def widened(seed: int) -> Spec:
    """Return a Spec of work for MIG of which what waits is elastic."""
    draw = Random(f"widened {seed}")
    spec = tiny_mig(seed)
    work = tuple(_widened(draw, w) if w.id.startswith("new") else w for w in spec.workloads)
    return replace(spec, workloads=work)


def demanded(seed: int) -> Spec:
    """Return a Spec of services and promises of which a policy demands something."""
    draw = Random(f"demanded {seed}")
    spec = rated(seed) if draw.random() < 0.5 else promising(seed)
    rule = Admission(draw.choice(("floors", "floors", "all")), or_none=draw.random() < 0.3)
    own = policy("p", rule, enforcement=draw.choice(("hard", "hard", 2)))
    return replace(spec, policies=(own,))


def _table(draw: Random, geometry: Geometry) -> Mapping[str, int]:
    """Return rates of one or two profiles, and of those that contain them."""
    plain = [profile for profile in geometry.profiles if "+" not in profile.name and "-" not in profile.name]
    listed = {
        profile.name: draw.choice((60, 100, 130, 250)) for profile in draw.sample(plain, draw.choice((1, 2, 2)))
    }
    found = {}
    for profile in plain:
        inside = [geometry.by_name[name] for name in listed]
        fits = [p.name for p in inside if p.compute <= profile.compute and p.size <= profile.size]
        if fits:
            found[profile.name] = max(listed[name] for name in fits)
    return found


def _small(spec: Spec, most: int = 3) -> bool:
    """Tell whether brute force has few combinations to go through."""
    return sum(w.replicas for w in spec.workloads if w.slo is not None) <= most


@cache
def cases() -> tuple[tuple[Spec, Plan, str | None], ...]:
    seeds = (seed for seed in range(SLICE) if _small(rated(seed)))
    return tuple(found for seed in seeds if (found := difference(seed, rated)) is not None)


def test_engine_and_brute_force_agree() -> None:
    assert [wrong for _, _, wrong in cases() if wrong] == []


def test_engine_and_brute_force_agree_on_classes_and_deadlines() -> None:
    found = [case for seed in range(SLICE // 2) if (case := difference(seed, promising)) is not None]
    assert [wrong for _, _, wrong in found if wrong] == []
    short = [plan for _, plan, _ in found if any(tier.name == "slo" and tier.value for tier in plan.tiers)]
    assert len(short) >= 4
    assert any(tier.name == "slo" and not tier.value for _, plan, _ in found for tier in plan.tiers)


def test_engine_and_brute_force_agree_on_services_that_run() -> None:
    seeds = (seed for seed in range(SLICE) if _small(going_on(seed), 4))
    found = [case for seed in seeds if (case := difference(seed, going_on)) is not None]
    assert [wrong for _, _, wrong in found if wrong] == []
    running = [spec for spec, _, _ in found if any(w.slo and w.id.startswith("run") for w in spec.workloads)]
    assert len(running) >= 3


@pytest.mark.parametrize("drawn", [rated, promising, widened, demanded])
def test_no_bound_of_fleets_cuts_what_brute_force_finds(drawn: Callable[[int], Spec]) -> None:
    found, looked = list[str](), 0
    for seed in range(SLICE // 4):
        spec = drawn(seed)
        try:
            optimum = brute(spec, leaves=3_000, evaluations=800) if _small(spec) else None
        except TooLarge:
            continue
        if optimum is not None:
            looked += 1
            best = ascending(optimum.tiers, optimum.values)
            found += [f"seed {seed}: {cut}" for cut in cuts(spec, best)]
    assert found == []
    assert looked >= 3


def test_engine_and_brute_force_agree_on_floors_that_are_demanded() -> None:
    seeds = (seed for seed in range(SLICE) if _small(demanded(seed)))
    found = [case for seed in seeds if (case := difference(seed, demanded)) is not None]
    assert [wrong for _, _, wrong in found if wrong] == []
    kinds = Counter(plan.outcome.status for _, plan, _ in found)
    assert min(kinds["infeasible"], kinds["optimal"]) >= 3, kinds


def test_engine_and_brute_force_agree_on_the_worth_of_widths() -> None:
    found = [case for seed in range(SLICE // 2) if (case := difference(seed, widened)) is not None]
    assert [wrong for _, _, wrong in found if wrong] == []
    widths = Counter(replica.workload for _, plan, _ in found for replica in plan.placements)
    assert len(found) >= 10
    assert len(set(widths.values())) >= 3


def test_the_specs_ask_for_something() -> None:
    found: Counter[str] = Counter()
    for spec, plan, _ in cases():
        services = [w for w in spec.workloads if w.slo is not None]
        found["open"] += any(w.asks_rate for w in services)
        on = [p.instance.partition("@")[0] for r, p in plan.placements.items() if r.workload.startswith("new")]
        found["mixed"] += len(set(on)) > 1
        found["short"] += any(tier.name == "slo" and tier.value for tier in plan.tiers)
        found["fewer"] += any(
            w.asks_rate
            and w.id not in plan.admitted
            and 0 < sum(r.workload == w.id for r in plan.placements) < w.replicas
            for w in services
        )
    assert min(found[name] for name in ("open", "mixed", "short", "fewer")) >= 3, found


@pytest.mark.campaign
@pytest.mark.parametrize("drawn", [rated, promising, widened, going_on, demanded])
def test_engine_and_brute_force_agree_on_many_specs(drawn: Callable[[int], Spec]) -> None:
    seeds = (seed for seed in range(SLICE, CAMPAIGN) if _small(drawn(seed), 4))
    found = [case for seed in seeds if (case := difference(seed, drawn)) is not None]
    assert [wrong for _, _, wrong in found if wrong] == []
