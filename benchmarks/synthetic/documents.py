"""A synthetic fleet as documents: the texts of its files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from random import Random

from benchmarks.synthetic import modes
from benchmarks.synthetic.deadlines import deadline, has_deadline
from benchmarks.synthetic.gangs import ragged
from benchmarks.synthetic.hardware import MILLI, Group, Hardware
from benchmarks.synthetic.modes import Rule
from benchmarks.synthetic.work import BANDS, FAMILIES, TENANTS, Shape

HEAD = "apiVersion: dovetail/v1alpha1\nkind: {}\nmetadata: {}\nspec:\n"
CHUNK = 20  # most replicas of a workload that may be one of many with the same shape
BOUND = frozenset({"ember", "iris"})  # tenants with rules on where each workload may run: one workload per shape
TIGHT = {"atlas": 134, "boreal": 121}  # quotas below what is asked for at load 1, in thousandths of the capacity
GENEROUS = 130  # per cent of what the other tenants ask for at load 1
FRONT_SHARE = 325  # thousandths of a front service, as at load 1, that a zone may hold

Kinds = frozenset[str]
ALL: Kinds = frozenset({"quota", "exclusive", "separate", "spread", "require", "forbid"})


def head(kind: str, name: str, rest: str = "") -> str:
    """Return the first lines of a document."""
    return HEAD.format(kind, f"{{name: {name}{rest}}}")


def project(name: str) -> str:
    """Return the Project."""
    lines = [
        '  documents: [cluster.yaml, policies.yaml, objective.yaml, "workloads/*.yaml"]',
        "  objective: fleet",
        f"  tenants: [{', '.join(TENANTS)}]",
    ]
    return head("Project", name) + "\n".join(lines) + "\n"


def objective(tiers: str) -> str:
    """Return the Objective."""
    bands = ", ".join(map(str, BANDS))
    return head("Objective", "fleet") + f"  bands: [{bands}]\n  tiers: [{tiers}]\n"


def cluster(hardware: Hardware, seed: int | None, also: Collection[str] = ()) -> str:
    """Return the Cluster: a group per kind and zone, failed GPUs node by node; a seed makes racks ragged."""
    lines = ["  levels: [{name: zone}, {name: rack}, {name: node}]", "  nodeGroups:"]
    for group in hardware.groups:
        lines += _group(group, _racks(group, seed), also)
    failed = [
        f"    {group.name}-{number:03d}: {{failedGpus: [{group.gpus - 1}]}}"
        for group in hardware.groups
        for number in range(group.failed)
    ]
    return head("Cluster", "fleet") + "\n".join([*lines, *(["  nodes:", *failed] if failed else [])]) + "\n"


def _racks(group: Group, seed: int | None) -> str:
    if seed is None:
        return f"size: {group.rack}"
    return f"sizes: {ragged(group.count, group.rack, Random(f'racks {seed} {group.name}'))}"


def _group(group: Group, racks: str, also: Collection[str]) -> Iterator[str]:
    kind = group.kind
    yield f"  - name: {group.name}"
    yield f"    count: {group.count}"
    yield f"    accelerator: {kind.accelerator}"
    yield f"    gpus: {group.gpus}"
    yield f"    cpu: {kind.cpu}"
    yield f"    memory: {kind.memory}Gi"
    yield f"    domains: {{zone: {{name: {group.zone}}}, rack: {{{racks}}}}}"
    if group.certified:
        yield '    labels: {certified: "yes"}'
    yield from modes.offered(kind, also)
    yield f"    pricePerHour: {group.price / 1_000_000:.6f}"


def workloads(found: Sequence[Shape], counts: Sequence[int], only: str, also: Collection[str] = ()) -> str:
    """Return the Workloads of a tenant; a shape with many replicas is several jobs, unless it is one service."""
    texts = []
    for number, (shape, count) in enumerate(zip(found, counts, strict=True)):
        if shape.tenant != only or not count:
            continue
        chunks = 1 if shape.single or only in BOUND else -(-count // CHUNK)
        for chunk in range(chunks):
            many = count * (chunk + 1) // chunks - count * chunk // chunks
            texts.append(workload(shape, f"{shape.family}-{number:03d}-{chunk}", many, also))
    return "---\n".join(texts)


def workload(shape: Shape, name: str, count: int, also: Collection[str] = ()) -> str:
    """Return one Workload, with a deadline perhaps where `also` has `deadlines`."""
    labels = {"family": shape.family, **shape.labels}
    marks = ", ".join(f'{key}: "{value}"' for key, value in labels.items())
    lines = [
        f"  type: {'service' if shape.single else 'job'}",
        f"  priority: {shape.band}",
        f"  replicas: {count}",
        f"  request: {{{_request(shape)}}}",
    ]
    if "deadlines" in also and has_deadline(shape, name):
        lines += deadline(shape, name, count)
    elif shape.accelerators:
        lines.append(f"  accelerators: [{', '.join(shape.accelerators)}]")
    if shape.milli:
        lines.append(f"  value: {shape.value}")
    rest = f", namespace: {shape.tenant}, labels: {{{marks}}}"
    return head("Workload", name, rest) + "\n".join(lines) + "\n"


def _request(shape: Shape) -> str:
    host = f"cpu: {shape.cpu}m, memory: {shape.memory}Mi"
    if not shape.milli:
        return host
    if shape.milli < MILLI:
        return f"share: {{compute: {shape.milli / MILLI:g}}}, {host}"
    return f"gpus: {shape.milli // MILLI}, {host}"


def _failures(also: Collection[str]) -> Iterator[Rule]:
    """Yield with `survive` that the foremost services survive the loss of a rack, and others go for that."""
    if "survive" in also:
        foremost = f"types: [service], priority: {{min: {max(BANDS)}}}"
        others = f"priority: {{max: {sorted(BANDS)[-2]}}}"
        yield "survive", "any-rack-may-fail", foremost, "", f"of: rack, mayEvict: {{{others}}}"


def _spares(nodes: int, also: Collection[str]) -> Iterator[Rule]:
    """Yield with `spares` that places are held free: whole nodes, four of one rack, and halves of GPUs."""
    if "spares" in also:
        whole, halves = max(1, nodes // 100), max(2, nodes // 25)
        yield "reserve", "spare-nodes", "", "", f"replicas: {whole}, request: {{gpus: 8, cpu: 32}}"
        yield "reserve", "spare-rack", "", "", "replicas: 4, request: {gpus: 8}, within: rack"
        yield "reserve", "spare-halves", "", "", f"replicas: {halves}, request: {{share: {{compute: 0.5}}, cpu: 2}}"


def policies(hardware: Hardware, found: Sequence[Shape], kinds: Kinds = ALL, also: Collection[str] = ()) -> str:
    """Return Policies of some kinds of rules, and on modes, failures and held places where these are asked for."""
    rules = [*_quotas(hardware.milli), *_apart(), *_spreads(found), *_nodes()]
    also_asked = [*modes.rules(also), *_failures(also), *_spares(hardware.nodes, also)]
    chosen = [*(rule for rule in rules if rule[0] in kinds), *also_asked]
    return "---\n".join(_policy(*rule) for rule in chosen)


def _policy(kind: str, name: str, who: str, nodes: str, parameters: str) -> str:
    selected = ", ".join(f"{key}: {{{chosen}}}" for key, chosen in (("workloads", who), ("nodes", nodes)) if chosen)
    match = f"  match: {{{selected}}}\n" if selected else ""
    return head("Policy", name) + f"{match}  rule: {{{kind}: {{{parameters}}}}}\n  enforcement: hard\n"


def _quotas(capacity: int) -> Iterator[Rule]:
    for tenant in TENANTS:
        asked = sum(family.share for family in FAMILIES if family.tenant == tenant) * GENEROUS // 100
        milli = capacity * TIGHT.get(tenant, asked) // 1000
        yield "quota", f"{tenant}-quota", f"tenants: [{tenant}]", "", f"limit: {{gpus: {_amount(milli)}}}"


def _amount(milli: int) -> str:
    return f"{milli // MILLI}.{milli % MILLI:03d}"


def _apart() -> Iterator[Rule]:
    yield "exclusive", "delta-alone-on-nodes", "tenants: [delta]", "", "at: node"
    yield "separate", "competitors-share-no-node", "matchLabels: {apart: node}", "", "by: tenant, at: node"
    yield "separate", "tenants-share-no-card", "matchLabels: {apart: gpu}", "", "by: tenant, at: gpu"


def _spreads(found: Sequence[Shape]) -> Iterator[Rule]:
    yield "spread", "even-over-zones", 'matchLabels: {spread: "even"}', "", "over: zone, maxSkew: 1"
    front = [shape for shape in found if "front" in shape.labels]
    most = max(1, (min(shape.target // shape.milli for shape in front) * FRONT_SHARE + 500) // 1000)
    yield "spread", "front-survives-a-zone", 'matchLabels: {front: "yes"}', "", f"over: zone, maxPerDomain: {most}"


def _nodes() -> Iterator[Rule]:
    yield "require", "risk-on-certified", "matchLabels: {certified: required}", 'matchLabels: {certified: "yes"}', ""
    yield "forbid", "iris-off-h100", "tenants: [iris]", "accelerators: [H100-80GB]", ""


Extra = tuple[str, str, str]  # tenant, name, lines of `spec`


def files(
    hardware: Hardware,
    found: Sequence[Shape],
    counts: Sequence[int],
    kinds: Kinds,
    extra: Iterable[Extra] = (),
    racks: int | None = None,
    also: Collection[str] = (),
) -> Mapping[str, str]:
    """Return the text of every file of a project.

    Parameters
    ----------
    extra : further workloads, written as they are.
    racks : a seed that makes racks ragged, and the objective ask for few of them; None for racks of equal size.
    also : how else GPUs may be cut and shared (`modes`), and what jobs promise (`deadlines`).
    """
    tiers = ", ".join(_tiers(racks is not None, also))
    texts = {
        "dovetail.yaml": project("fleet"),
        "cluster.yaml": cluster(hardware, racks, also),
        "policies.yaml": policies(hardware, found, kinds, also),
        "objective.yaml": objective(tiers),
    }
    more = list(extra)
    for tenant in TENANTS:
        own = [head("Workload", name, f", namespace: {tenant}") + lines for who, name, lines in more if who == tenant]
        texts[f"workloads/{tenant}.yaml"] = "---\n".join(filter(None, [workloads(found, counts, tenant, also), *own]))
    return texts


def _tiers(gangs: bool, also: Collection[str]) -> Iterator[str]:
    yield from ("mend", "admitted")
    if "deadlines" in also:
        yield "slo"
    yield from ("policies", "disruption", "cost")
    if gangs:
        yield "topology"
