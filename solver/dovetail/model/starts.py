"""Start positions for the MIG instances that a solution counts (S3.3, S5.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dovetail.mig import Geometry, Instance, arrange, parse_instance
from dovetail.model.state import Slot
from dovetail.problem import Present, Problem
from dovetail.spec import Layout


def new_instances(
    problem: Problem, index: int, slots: Mapping[Slot, int], stays: Mapping[Present, int], gpu: int
) -> dict[str, list[Instance]]:
    """Return the instances of a GPU for what does not stay in place on it, by profile, ascending by start.

    Parameters
    ----------
    slots : what the GPU holds.
    stays : what stays in place on its node.
    """
    counts: Counter[str] = Counter()
    for slot, count in slots.items():
        if slot.profile:
            counts[slot.profile] += count
    geometry = problem.geometry(problem.nodes[index])
    if not counts or geometry is None:
        return {}
    kept = [parse_instance(p.instance) for p, n in stays.items() if n and p.instance and p.gpus == (gpu,)]
    counts.subtract(Counter(instance.profile for instance in kept))
    layout = problem.layouts[index].get(gpu, ())
    found = instances_beside(geometry, +counts, kept, layout, single=problem.spec.cluster.unit == "instance")
    if found is None:
        raise AssertionError(f"instances {dict(counts)} find no place beside {kept} on one {geometry.product}")
    by_profile: dict[str, list[Instance]] = {}
    for instance in sorted(found, key=lambda one: one.start):
        by_profile.setdefault(instance.profile, []).append(instance)
    return by_profile


def instances_beside(
    geometry: Geometry, counts: Mapping[str, int], kept: list[Instance], layout: Layout, *, single: bool
) -> list[Instance] | None:
    """Return instances for some counts beside those that stay, today's where they do; None where there are none.

    Parameters
    ----------
    single : whether single instances can be made and destroyed; else what stays has all of today's layout stay.
    """
    idle = [instance for instance in layout if instance not in kept]
    offered = Counter(instance.profile for instance in idle)
    if all(offered[name] >= count for name, count in counts.items()):
        return [one for name, n in counts.items() for one in [i for i in idle if i.profile == name][:n]]
    if not single:
        if kept:
            return None
        found = arrange(geometry, counts)
        return None if found is None else list(found)
    chosen, left = list[Instance](), Counter(dict(counts))
    for instance in idle:
        if left[instance.profile]:
            less = left - Counter([instance.profile])
            if arrange(geometry, less, [*kept, *chosen, instance]) is not None:
                chosen, left = [*chosen, instance], less
    rest = arrange(geometry, left, [*kept, *chosen])
    return None if rest is None else [*chosen, *rest]
