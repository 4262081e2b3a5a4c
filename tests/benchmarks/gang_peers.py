"""Hand-made gang cases in the manner of other schedulers' own tests: fields together, with what is true of each.

Each is about what one of them is known for: whole blocks and segments (Slurm), subgroups with levels of their own
(Volcano, KAI), consolidation and reclaim (KAI), quotas of queues (YuniKorn, Kueue), groups of gangs (Koordinator),
slices in slices (Kueue).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.benchmarks.gang_samples import TREE, Case, case, gang, node


def block(name: str, free: int, whole: int = 4) -> list[Case]:
    """Return the nodes of a block, each one rack, of which some are free as a whole."""
    return [node(f"{name}-{i}", f"{name}/{name}-r", 0, node=int(i < free)) for i in range(whole)]


def running(name: str, on: dict[str, int], gpu: int, **more: object) -> Case:
    """Return pods that run, with so many GPUs each."""
    return {"name": name, "on": on, "per_pod": {"gpu": gpu}, **more}


SEGMENTS = [*block("x", 3), *block("y", 2), *block("z", 3)]
WHOLE: Mapping[str, Any] = {"per_pod": {"node": 1}}

PEERS: list[Case] = [
    case(
        "segments-of-two-nodes",
        SEGMENTS,
        [gang("g", 6, slices=[{"level": "block", "size": 2}], **WHOLE)],
        {"fits": True, "optimum": {"block": 3, "rack": 3, "host": 6}},
    ),
    case(
        "segments-of-three-nodes",
        SEGMENTS,
        [gang("g", 6, slices=[{"level": "block", "size": 3}], **WHOLE)],
        {"fits": True, "optimum": {"block": 2, "rack": 2, "host": 6}},
    ),
    case(
        "no-segments-of-four",
        SEGMENTS,
        [gang("g", 4, slices=[{"level": "block", "size": 4}], **WHOLE)],
        {"fits": False},
    ),
    case(
        "a-block-stays-whole-for-its-tenant",
        [*block("x", 4), *block("y", 4)],
        [gang("g", 3, **WHOLE), gang("h", 2, **WHOLE)],
        {"fits": False},
        reserve=[{"level": "block", "count": 1}],
    ),
    case(
        "two-jobs-share-a-block-so-that-one-stays-whole",
        [*block("x", 4), *block("y", 4)],
        [gang("g", 2, **WHOLE), gang("h", 2, **WHOLE)],
        {"fits": True, "optimum": {"block": 2, "rack": 2, "host": 4}},
        reserve=[{"level": "block", "count": 1}],
    ),
    case(
        "slices-in-slices",
        [node("a", "b0/r0", 3), node("b", "b0/r0", 3), node("c", "b0/r1", 4), node("d", "b1/r2", 9)],
        [
            gang(
                "g",
                8,
                topology={"required": "block"},
                slices=[{"level": "rack", "size": 4}, {"level": "host", "size": 2}],
            )
        ],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 1}},
    ),
    case(
        "subgroups-with-levels-of-their-own",
        TREE,
        [gang(f"w-{i}", 2, 4, topology={"required": "rack"}) for i in range(3)],
        {
            "fits": True,
            "optimum": {"block": 4, "rack": 4, "host": 8},
        },  # the set, and each that has a level of its own
        co_locate=[{"gangs": ["w-0", "w-1", "w-2"], "preferred": "block", "min_subgroups": {"w": 2}}],
    ),
    case(
        "subgroups-in-one-block",
        TREE,
        [gang(f"w-{i}", 2, 4, topology={"required": "rack"}) for i in range(2)],
        {"fits": False},
        co_locate=[{"gangs": ["w-0", "w-1"], "required": "block", "min_subgroups": {"w": 2}}],
    ),
    case(
        "consolidation-frees-a-node",
        [node("a", gpu=2), node("b", gpu=2), node("c", gpu=1)],
        [gang("g", 1, 4)],
        {"fits": False, "moves": 1},
        running=[
            running("r0", {"a": 1}, 2, movable=True),
            running("r1", {"b": 2}, 1, movable=True),
        ],
    ),
    case(
        "consolidation-only-where-pods-may-go",
        [node("a", gpu=2), node("b", gpu=2), node("c", gpu=2)],
        [gang("g", 1, 4)],
        {"fits": False, "moves": 2},
        running=[
            running("r0", {"a": 1}, 2, movable=True, eligible_nodes=["a"]),
            running("r1", {"b": 2}, 1, movable=True),
        ],
    ),
    case(
        "reclaim-of-an-overdrawn-queue",
        [node("a", gpu=0)],
        [gang("g", 2)],
        {"fits": False, "fewest_victims": 1},
        running=[
            running("r0", {"a": 1}, 2, evictable=True, queue="q"),
            running("r1", {"a": 1}, 4, evictable=True, queue="q"),
        ],
        limits=[{"gangs": ["g"], "resource": "gpu", "max_new": -2, "queues": ["q"]}],
    ),
    case(
        "no-reclaim-where-the-queue-stays-overdrawn",
        [node("a", gpu=0)],
        [gang("g", 2)],
        {"fits": False},
        running=[running("r0", {"a": 1}, 2, evictable=True, queue="q")],
        limits=[{"gangs": ["g"], "resource": "gpu", "max_new": -1, "queues": ["q"]}],
    ),
    case(
        "a-queue-of-its-own-has-no-say",
        [node("a", gpu=0)],
        [gang("g", 2)],
        {"fits": False},
        running=[running("r0", {"a": 1}, 4, evictable=True, queue="other")],
        limits=[{"gangs": ["g"], "resource": "gpu", "max_new": 1, "queues": ["q"]}],
    ),
    case(
        "a-queue-reclaims-from-pods-as-urgent-as-its-own",
        [node("a", gpu=0)],
        [gang("g", 2, 1, priority=5)],
        {"fits": False, "fewest_victims": 1},
        running=[
            running("same", {"a": 1}, 2, evictable=True, priority=5),
            running("more", {"a": 1}, 2, priority=9),
            running("less", {"a": 1}, 1, evictable=True, priority=1),
        ],
    ),
    case(
        "priorities-beyond-those-of-documents",
        [node("a", gpu=0)],
        [gang("g", 2, 1)],
        {"fits": False, "fewest_victims": 2},
        running=[
            running("system", {"a": 1}, 1, evictable=True, priority=2_000_001_000),
            running("opportunistic", {"a": 1}, 1, evictable=True, priority=-(2**31)),
        ],
    ),
    case(
        "victims-where-the-rack-is",
        [node("a", "b0/r0", 1), node("b", "b0/r0", 1), node("c", "b0/r1", 0)],
        [gang("g", 4, topology={"required": "rack"})],
        {"fits": False, "fewest_victims": 1},
        running=[
            running("r0", {"a": 1, "b": 1}, 1, evictable=True),
            running("r1", {"c": 1}, 2, evictable=True),
            running("r2", {"c": 1}, 2, evictable=True),
        ],
    ),
    case(
        "a-repair-cannot-leave-its-rack",
        [node("a", "b0/r0", 0), node("b", "b0/r0", 4), node("c", "b0/r1", 4)],
        [gang("g", 2, topology={"required": "rack"}, pinned={"a": 1}, lost={"b": 1}, excluded_nodes={"b": "down"})],
        {"fits": False},
    ),
    case(
        "an-elastic-gang-grows-within-its-rack",
        [node("a", "b0/r0", 0), node("b", "b0/r0", 2), node("c", "b0/r1", 4)],
        [gang("g", 5, min_pods=2, topology={"required": "rack"}, previous={"a": 2})],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 2}, "most_pods": 4},
    ),
    case(
        "groups-of-gangs-under-a-quota",
        [node("a", gpu=9)],
        [gang(f"{job}-{role}", 2) for job in "pqr" for role in "mw"],
        {"fits": False, "most_admitted": 1},
        jobs=[{"name": job, "gangs": [f"{job}-m", f"{job}-w"]} for job in "pqr"],
        limits=[{"gangs": [f"{job}-{role}" for job in "pqr" for role in "mw"], "resource": "gpu", "max_new": 6}],
    ),
    case(
        "jobs-in-racks-of-their-own",
        TREE,
        [gang("p-m", 2), gang("p-w", 2), gang("q-m", 4, 2)],
        {"fits": True, "optimum": {"block": 2, "rack": 3, "host": 4}, "most_admitted": 2},
        jobs=[
            {
                "name": "p",
                "gangs": ["p-m", "p-w"],
                "co_locate": [{"gangs": ["p-m", "p-w"], "required": "block", "distinct": "rack"}],
            },
            {"name": "q", "gangs": ["q-m"]},
        ],
    ),
    case(
        "bytes-and-quotas-of-two-resources",
        [node("a", gpu=4, memory_b=3 * 2**30 + 5), node("b", gpu=4, memory_b=2**30)],
        [{"name": "g", "pods": 4, "per_pod": {"gpu": 1, "memory_b": 2**30, "pods": 1}, "topology": {}}],
        {"fits": True, "optimum": {"host": 2}},
        limits=[
            {"gangs": ["g"], "resource": "memory_b", "max_new": 4 * 2**30},
            {"gangs": ["g"], "resource": "gpu", "max_new": 4},
        ],
    ),
    case(
        "one-byte-short-of-the-quota",
        [node("a", gpu=4, memory_b=5 * 2**30)],
        [{"name": "g", "pods": 4, "per_pod": {"gpu": 1, "memory_b": 2**30, "pods": 1}, "topology": {}}],
        {"fits": False},
        limits=[{"gangs": ["g"], "resource": "memory_b", "max_new": 4 * 2**30 - 1}],
    ),
    case(
        "nine-jobs-that-keep-pods-and-one-free-gpu",
        [node("a", gpu=1, pods=20)],
        [gang(f"g-{i}", 2, pinned={"a": 1}) for i in range(9)],
        {"fits": False, "most_admitted": 1},
        jobs=[{"name": f"j-{i}", "gangs": [f"g-{i}"]} for i in range(9)],
    ),
    case(
        "two-of-six-subgroups-in-the-fewest-domains",
        [node("a", "b0/r0")],
        [gang(f"w-{i}", 2 if i < 2 else 1, topology={"required": "host"}) for i in range(6)],
        {"fits": True, "optimum": {"block": 3, "rack": 3, "host": 3}},
        co_locate=[{"gangs": [f"w-{i}" for i in range(6)], "min_subgroups": {"w": 2}}],
    ),
    case(
        "a-victim-that-is-partly-on-a-node-that-is-gone",
        [node("a", gpu=0)],
        [gang("p", 1)],
        {"fits": False, "fewest_victims": 1},
        running=[running("v", {"a": 1, "gone": 1}, 1, evictable=True)],
    ),
    case(
        "a-domain-is-touched-by-more-than-who-may-go",
        [{**node("a", "b0/r0", gpu=4), "used": {"gpu": 4}}, node("b", "b0/r1", gpu=8)],
        [gang("g", 1, 8)],
        {"fits": False},
        running=[running("v", {"a": 1}, 2, evictable=True)],
        reserve=[{"level": "rack", "count": 1}],
    ),
]
