"""The layouts of GPUs in MIG mode, today and in a plan, and who restarts where one changes (S5.4).

A plan's layouts follow from its places and from today's layouts, so that nothing is cut that nobody asked for:

- a GPU whose layout holds all that runs on it, or that nothing runs on, keeps the layout;
- a GPU that takes whole-GPU replicas or shares by fraction is no longer cut;
- any other GPU gets the instances that are in use. Where single instances can be made and destroyed, idle ones of
  today's layout stay as far as they do not stand in the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.mig import Geometry, Instance, legal, parse_instance
from dovetail.placement.place import Place, Places
from dovetail.spec import Current, Layout, ReplicaId, Spec

Layouts = Mapping[str, Layout]
"""The instances of each GPU in MIG mode, by `node/index`."""


def layout_of(instances: Iterable[Instance]) -> Layout:
    """Return instances in the order of a layout, by start."""
    return tuple(sorted(set(instances), key=lambda instance: (instance.start, instance.profile)))


def declared_layouts(spec: Spec, current: Current | None = None) -> dict[str, Layout]:
    """Return the layouts of today that documents or the base plan tell; of another state than the Spec's if given."""
    current, found = spec.current if current is None else current, dict[str, Layout]()
    for node in () if current.all_gpus else spec.cluster.nodes:
        for index, layout in node.mig_layout.items():
            found[f"{node.name}/{index}"] = layout
    told = {**found, **current.gpus}
    return {gpu: layout for gpu, layout in told.items() if _is_sound(spec, gpu, layout)}


def _is_sound(spec: Spec, gpu: str, layout: Layout) -> bool:
    """Tell whether a GPU exists and can be cut so; what a state from outside says beyond that means nothing."""
    name, _, index = gpu.rpartition("/")
    node = spec.cluster.by_name.get(name)
    geometry = _geometry(spec, gpu)
    return node is not None and geometry is not None and int(index) < node.gpus and legal(geometry, layout) is None


def planned_layouts(spec: Spec, today: Layouts, places: Iterable[Place]) -> dict[str, Layout]:
    """Return the layouts that places ask for, beside those of today that nobody disturbs, by `node/index`."""
    used: dict[str, list[Instance]] = {}
    uncut: set[str] = set()
    strict = any(node.mig_strategy == "single" for node in spec.cluster.nodes)
    for place in places:
        if place.instance:
            used.setdefault(place.gpu_names[0], []).append(parse_instance(place.instance))
        elif today or strict:
            uncut.update(place.gpu_names)
    found = {gpu: layout for gpu, layout in today.items() if gpu not in uncut}
    for gpu, instances in used.items():
        before = found.get(gpu, ())
        if not set(instances) <= set(before):
            kept = before if spec.cluster.unit == "instance" else ()
            found[gpu] = _beside(_geometry(spec, gpu), instances, kept)
    _keep_to_strategies(spec, today, found, used, uncut)
    return dict(sorted(found.items()))


def _keep_to_strategies(
    spec: Spec, today: Layouts, found: dict[str, Layout], used: Mapping[str, list[Instance]], uncut: set[str]
) -> None:
    """Cut all GPUs of nodes of the strategy `single` into the one profile that is in use, or none of them.

    Where any is cut so already, those that nobody uses stay as they are: nobody asked for more.
    """
    chosen = spec.cluster.positions == "toolChosen"
    single = (node for node in spec.cluster.nodes if node.mig_strategy == "single" and node.gpus)
    for node in single:
        names = {gpu: f"{node.name}/{gpu}" for gpu in node.healthy_gpus()}
        profiles = {instance.profile for name in names.values() for instance in used.get(name, ())}
        before = {instance.profile for name in names.values() for instance in today.get(name, ())}
        if not profiles and uncut & set(names.values()):
            for name in names.values():
                found.pop(name, None)
        for name in names.values() if len(profiles) == 1 else ():
            changes = name in used and _key(found[name], chosen) != _key(today.get(name), chosen)
            anew = changes if name in used else not before & profiles
            if anew and name not in uncut:
                found[name] = _full(_geometry(spec, name), used.get(name, []), *profiles)


def _full(geometry: Geometry | None, used: list[Instance], profile: str) -> Layout:
    """Return a layout of as many instances of one profile as a GPU holds beside those in use."""
    known = geometry.by_name.get(profile) if geometry else None
    return _beside(geometry, used, tuple(Instance(profile, start) for start in (known.starts if known else ())))


def _beside(geometry: Geometry | None, instances: list[Instance], idle: Layout) -> Layout:
    """Return a layout of instances in use, with idle ones as far as they go with them."""
    found = list(instances)
    for instance in idle:
        if geometry and instance not in found and legal(geometry, layout_of([*found, instance])) is None:
            found.append(instance)
    return layout_of(found)


def _geometry(spec: Spec, gpu: str) -> Geometry | None:
    node = spec.cluster.by_name.get(gpu.rpartition("/")[0])
    accelerator = spec.accelerators.get(node.accelerator) if node and node.accelerator else None
    return accelerator.mig if accelerator else None


def recut(spec: Spec, before: Layouts, after: Layouts) -> frozenset[str]:
    """Return the GPUs whose mode or layout changes; where a tool chooses the starts, layouts compare by profiles."""
    chosen = spec.cluster.positions == "toolChosen"
    return frozenset(
        gpu for gpu in before.keys() | after.keys() if _key(before.get(gpu), chosen) != _key(after.get(gpu), chosen)
    )


def _key(layout: Layout | None, chosen: bool) -> object:
    if layout is None:
        return None
    return tuple(sorted(instance.profile for instance in layout)) if chosen else frozenset(layout)


def restarted(spec: Spec, changed: frozenset[str], running: Places, places: Places) -> frozenset[ReplicaId]:
    """Return the replicas that restart although their place is the same, since a GPU is cut anew under them."""
    if not changed or spec.cluster.unit == "instance":
        return frozenset()
    nodes = {gpu.rpartition("/")[0] for gpu in changed} if spec.cluster.unit == "node" else set()
    return frozenset(
        replica
        for replica, place in running.items()
        if places.get(replica) == place
        and place.gpus
        and (place.node in nodes or any(gpu in changed for gpu in place.gpu_names))
    )
