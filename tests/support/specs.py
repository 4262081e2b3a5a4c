"""Makes tiny Specs by hand: `make_spec(nodes=[node("a", gpus=4)], workloads=[workload("w", 2, gpus=1)])`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dovetail.placement import Place
from dovetail.rules import Rule
from dovetail.spec import (
    Accelerator,
    Cluster,
    Current,
    Enforcement,
    Group,
    Node,
    NodeSelector,
    Objective,
    Observed,
    Policy,
    PresentReplica,
    ReplicaId,
    Request,
    Role,
    Share,
    Spec,
    Topology,
    Waiver,
    Workload,
    WorkloadSelector,
)

CARD = "H100-80GB"
CARDS = {
    CARD: Accelerator(CARD, memory=81_920),
    "A100-40GB": Accelerator("A100-40GB", memory=40_960),
    "L4": Accelerator("L4", memory=23_040),
}
TYPE_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gang": {"atomic": True},
    "service": {"min_replicas": 1},
    "job": {},
}


def node(name: str, gpus: int = 8, *, cpu: int = 100_000, memory: int = 1_000_000, **more: Any) -> Node:
    """Return a node; amounts in milli-cores and MiB, mechanism `fraction` unless told otherwise."""
    given = {"group": "pool", "accelerator": CARD if gpus else None, "mechanism": "fraction", **more}
    return Node(name=name, cpu=cpu, memory=memory, gpus=gpus, **given)


def request(
    gpus: int = 0,
    share: int | tuple[int, int] | None = None,
    *,
    cpu: int = 1000,
    memory: int = 1024,
    **resources: int,
) -> Request:
    """Return a request; `share` is milli-GPU, or milli-GPU and MiB."""
    part = None if share is None else Share(share) if isinstance(share, int) else Share(*share)
    return Request(cpu=cpu, memory=memory, gpus=gpus, share=part, resources=resources)


def role(name: str, replicas: int, asked: Request, **more: Any) -> Role:
    """Return a role; its value defaults as documents' do (S2.9)."""
    value = more.pop("value", asked.gpu_milli or asked.cpu)
    observed = more.pop("observed", None)
    return Role(
        name, replicas, asked, value, observed=Observed(observed) if isinstance(observed, int) else None, **more
    )


def workload(
    id: str,
    replicas: int = 1,
    *,
    type: str = "job",
    gpus: int = 0,
    share: int | tuple[int, int] | None = None,
    cpu: int = 1000,
    memory: int = 1024,
    resources: Mapping[str, int] | None = None,
    accelerators: tuple[str, ...] = (),
    value: int | None = None,
    observed: int | None = None,
    roles: Sequence[Role] = (),
    **more: Any,
) -> Workload:
    """Return a workload of one role without a name, or of the given roles; `more` are fields of `Workload`."""
    if not roles:
        asked = request(gpus, share, cpu=cpu, memory=memory, **(resources or {}))
        extra = {} if value is None else {"value": value}
        roles = [role("", replicas, asked, accelerators=accelerators, observed=observed, **extra)]
    namespace, _, name = id.rpartition("/")
    given: dict[str, Any] = {"tenant": namespace, **TYPE_DEFAULTS[type], **more}
    if given.get("atomic"):
        given["min_replicas"] = sum(r.replicas for r in roles)
        given.setdefault("movable", given.get("checkpoint_every") is not None)
    return Workload(id=id, namespace=namespace, name=name, type=type, roles=tuple(roles), **given)  # type: ignore[arg-type]


def policy(
    name: str,
    rule: Rule,
    *,
    enforcement: str | int = "hard",
    workloads: WorkloadSelector | None = None,
    nodes: NodeSelector | None = None,
) -> Policy:
    """Return a policy; an integer enforcement is the weight of a soft one."""
    kind = Enforcement("soft", enforcement) if isinstance(enforcement, int) else Enforcement(enforcement)  # type: ignore[arg-type]
    return Policy(name, rule, workloads or WorkloadSelector(), nodes, kind)


def replica(text: str) -> ReplicaId:
    """Return a replica's identity from its text, `[namespace/]workload[.role]#index`."""
    owner, _, ordinal = text.rpartition("#")
    workload_id, _, role_name = owner.partition(".")
    return ReplicaId(workload_id, role_name, int(ordinal))


def place(name: str, *gpus: int) -> Place:
    """Return a place."""
    return Place(name, gpus)


def places(rows: Mapping[str, Place]) -> dict[ReplicaId, Place]:
    """Return places keyed by identities' text."""
    return {replica(text): where for text, where in rows.items()}


def current(rows: Mapping[str, Place], elapsed: Mapping[str, int] | None = None) -> Current:
    """Return a current state; `elapsed` is in milliseconds."""
    return Current(
        tuple(
            PresentReplica(replica(text), where.node, where.gpus, where.instance)
            for text, where in sorted(rows.items())
        ),
        elapsed or {},
    )


def grouped_gang() -> tuple[Spec, dict[ReplicaId, Place]]:
    """Return a gang in groups of a leader and two workers, and its places: a group on each of two nodes."""
    roles = [role("lead", 2, request(1)), role("work", 4, request(1))]
    topology = Topology(groups=(Group("node", roles={"lead": 1, "work": 2}),))
    spec = make_spec([node("a", 3), node("b", 3)], [workload("g", type="gang", roles=roles, topology=topology)])
    return spec, {
        ReplicaId("g", name, n * size + i): place(host, (name == "work") + i)
        for n, host in enumerate("ab")
        for name, size in (("lead", 1), ("work", 2))
        for i in range(size)
    }


def make_spec(
    nodes: Iterable[Node],
    workloads: Iterable[Workload] = (),
    policies: Iterable[Policy] = (),
    *,
    waivers: Iterable[Waiver] = (),
    objective: Objective | None = None,
    running: Mapping[str, Place] | None = None,
    elapsed: Mapping[str, int] | None = None,
    levels: tuple[str, ...] = ("rack", "node"),
    as_of: dt.date | None = None,
    name: str = "test",
) -> Spec:
    """Return a Spec with everything sorted as the builder of documents sorts it."""
    return Spec(
        name=name,
        cluster=Cluster(name, levels, tuple(nodes)),
        accelerators=CARDS,
        workloads=tuple(sorted(workloads, key=lambda w: w.id)),
        policies=tuple(sorted(policies, key=lambda p: p.name)),
        waivers=tuple(sorted(waivers, key=lambda w: w.name)),
        objective=objective or Objective(),
        current=current(running or {}, elapsed),
        as_of=as_of,
    )
