"""GPUs shared by equal parts as brute force sees them: every mode and number of clients is tried (S3.5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dovetail.placement import Place, Places
from dovetail.rules import Context
from dovetail.spec import Node, ReplicaId, Role, Share, Spec

Way = tuple[str, int]  # mode, clients


def ways(node: Node) -> Iterator[Way]:
    """Yield all that GPUs of a node could be set to, what is told first where several will do."""
    yield "whole", 1
    if node.sharing is None:
        return
    for mode, most in (("mps", node.sharing.mps), ("time-slice", node.sharing.time_slicing)):
        for clients in range(2, min(most, 12) + 1):
            if node.sharing.parts in (None, clients):
                yield mode, clients


def taken(share: Share, node: Node) -> tuple[int, int]:
    """Return the compute that a share takes of a GPU of a node, and its peak there."""
    for name, compute, peak in share.elsewhere:
        if name == node.accelerator:
            return compute, peak
    return share.compute, share.peak


def enough(share: Share, node: Node, card: int, way: Way) -> bool:
    """Tell whether one of so many equal parts is enough for a share."""
    mode, clients = way
    if node.sharing is None:
        return False
    sharing = node.sharing
    ratio = {"mps": sharing.mps_oversubscription, "time-slice": sharing.oversubscription}.get(mode, 1000)
    compute, _ = taken(share, node)
    memory = compute * card / 1000 if share.memory is None else share.memory
    barred = mode in share.barred and not (mode == "time-slice" and node.accelerator in share.turns)
    return not barred and compute * clients <= ratio and memory * clients <= card


def groups(node: Node, gpus: Sequence[int]) -> list[list[int]]:
    """Return the GPUs that are set together."""
    return [list(gpus)] if node.mechanism == "devicePlugin" else [[gpu] for gpu in gpus]


def price(shares: Sequence[Share], node: Node, way: Way) -> tuple[float, ...]:
    """Return what policies ask for shares on GPUs set anew, tier by tier; first comes what hard ones object to."""
    found = [0.0] * 40
    for lean in (lean for share in shares for lean in share.leans if way[0] in lean.closed):
        if lean.everywhere or lean.policy in node.leaning:
            found[lean.rank + 1 if lean.weight else 0] += lean.weight or 1
    return tuple(found)


def way_of(
    node: Node,
    card: int,
    on: Mapping[int, Sequence[Role]],
    gpus: Sequence[int],
    today: Way | None = None,
    *,
    policies: bool = True,
) -> Way | None:
    """Return what GPUs that are set together are set to, None where nothing suits; `on` is who has parts or all."""
    shares = [role.request.share for gpu in gpus for role in on.get(gpu, ()) if role.request.share]
    whole = any(role.request.gpus for gpu in gpus for role in on.get(gpu, ()))
    most = max((sum(bool(r.request.share) for r in on.get(gpu, ())) for gpu in gpus), default=0)
    able = [
        way
        for way in ways(node)
        if most <= way[1] and not (whole and way[1] > 1) and all(enough(s, node, card, way) for s in shares)
    ]
    if today in able:
        return today
    prices = [price(shares if policies else (), node, way) for way in able]
    found = [pair for pair in zip(prices, range(len(able)), strict=True) if not pair[0][0]]
    return able[min(found)[1]] if found else None


def suits(node: Node, card: int, on: Mapping[int, Sequence[Role]]) -> bool:
    """Tell whether anything that the GPUs of a node could be set to suits those who are on them."""
    return all(way_of(node, card, on, gpus, policies=False) is not None for gpus in groups(node, range(node.gpus)))


def settings(
    spec: Spec, places: Places, today: Mapping[tuple[str, int], Way], *, running: bool = False
) -> dict[tuple[str, int], Way] | None:
    """Return what every GPU of groups with clients is set to, by node and GPU; None where policies leave nothing."""
    on: dict[str, dict[int, list[Role]]] = defaultdict(lambda: defaultdict(list))
    for replica, place in places.items():
        if not place.instance:
            for gpu in place.gpus:
                on[place.node][gpu].append(spec.by_id[replica.workload].by_role[replica.role])
    found: dict[tuple[str, int], Way] = {}
    for name, held in on.items():
        node = spec.cluster.by_name[name]
        if node.mechanism == "fraction":
            continue
        for gpus in groups(node, range(node.gpus)):
            if any(role.request.share for gpu in gpus for role in held.get(gpu, ())):
                before = next((today[name, gpu] for gpu in gpus if (name, gpu) in today), None)
                card = spec.accelerators[node.accelerator or ""].memory
                way = way_of(node, card, held, gpus, before)
                if way is None and running:
                    way = way_of(node, card, held, gpus, before, policies=False)
                if way is None:
                    return None
                found |= {(name, gpu): way for gpu in gpus}
    return found


def told(context: Context) -> dict[tuple[str, int], Way]:
    """Return what GPUs are set to today: as told, else as suits those whose place stands."""
    spec, by_name = context.spec, context.spec.cluster.by_name
    said = {}
    for gpu, setting in spec.current.settings.items():
        name, _, index = gpu.rpartition("/")
        if name in by_name:
            said[name, int(index)] = (setting.mode, setting.clients)
    for name in {name for name, _ in said}:  # GPUs that are set together are set alike
        if by_name[name].mechanism == "devicePlugin":
            first = next(way for key, way in sorted(said.items()) if key[0] == name)
            said |= {(name, gpu): first for gpu in range(by_name[name].gpus)}
    found = settings(spec, context.today.places, said, running=True)
    assert found is not None
    return found


def restarted(context: Context, places: Places) -> set[ReplicaId] | None:
    """Return the clients that stay in place on GPUs that are set anew, None where policies let nothing be set."""
    before = told(context)
    after = settings(context.spec, places, before)
    if after is None:
        return None
    return {
        replica
        for replica, place in context.today.places.items()
        if places.get(replica) == place and _client(context.spec, replica, place)
        if before[place.node, place.gpus[0]] != after[place.node, place.gpus[0]]
    }


def _client(spec: Spec, replica: ReplicaId, place: Place) -> bool:
    role = spec.by_id[replica.workload].by_role[replica.role]
    parted = spec.cluster.by_name[place.node].mechanism != "fraction"
    return parted and bool(role.request.share) and not place.instance
