"""Small hand-made gang cases, one per field of the form, with what is true of each."""

from __future__ import annotations

from typing import Any

Case = dict[str, Any]


def node(name: str, path: str = "", gpu: int = 4, **more: Any) -> Case:
    """Return a node at `block/rack`, with so many GPUs free."""
    block, _, rack = path.partition("/")
    domain = {"block": block, "rack": path, "host": name} if rack else {"host": name}
    return {"name": name, "domain": domain, "free": {"gpu": gpu, "pods": 10, "cpu_m": 8000, **more}}


def gang(name: str, pods: int, gpu: int = 1, **more: Any) -> Case:
    """Return a gang of pods with so many GPUs each."""
    return {"name": name, "pods": pods, "per_pod": {"pods": 1, "gpu": gpu}, "topology": {}, **more}


def case(name: str, nodes: list[Case], gangs: list[Case], truth: Case, **more: Any) -> Case:
    """Return a case."""
    levels = ["block", "rack", "host"] if "rack" in nodes[0]["domain"] else ["host"]
    return {"id": name, "levels": levels, "nodes": nodes, "gangs": gangs, "truth": truth, **more}


def named(name: str, block: int, rack: int, gpu: int) -> Case:
    """Return a node with a level whose name is no label."""
    path = f"b{block}/r{rack}"
    return {**node(name, gpu=gpu), "domain": {"T block": f"b{block}", "rack": path, "host": f"{path}/{name}"}}


TREE = [node("a", "b0/r0"), node("b", "b0/r0"), node("c", "b0/r1"), node("d", "b1/r2"), node("e", "b1/r2")]
FLAT = [node("a"), node("b"), node("c")]
THREE = [
    *(node("a", "b0/r0", 8), node("b", "b1/r0", 4), node("c", "b1/r0", 8)),
    *(node("d", "b2/r0", 8), node("e", "b2/r1", 8)),
]

SAMPLES: list[Case] = [
    case("elastic", FLAT[:1], [gang("g", 6, min_pods=2)], {"fits": True, "optimum": {"host": 1}}),
    case("elastic-too-few", FLAT[:1], [gang("g", 9, min_pods=5)], {"fits": False}),
    # Most pods would leave the rigid gang out; both fit with fewer.
    case(
        "elastic-beside-rigid",
        [node("a", gpu=5)],
        [gang("big", 1, 4), gang("wide", 5, min_pods=1)],
        {"fits": True, "optimum": {"host": 2}},
    ),
    case("max-per-node", FLAT, [gang("g", 3, max_per_node=1)], {"fits": True, "optimum": {"host": 3}}),
    case("max-per-node-not", FLAT, [gang("g", 4, max_per_node=1)], {"fits": False}),
    case(
        "spread",
        TREE,
        [gang("g", 6, spread=[{"level": "rack", "max": 2}])],
        {"fits": True, "optimum": {"block": 2, "rack": 3, "host": 3}},
    ),
    case("cpu-only", FLAT, [{**gang("g", 3, 0), "per_pod": {"cpu_m": 4000}}], {"fits": True, "optimum": {"host": 2}}),
    case("node-preferred", FLAT, [gang("g", 2, prefer_nodes={"c": 5})], {"fits": True, "optimum": {"host": 1}}),
    case(
        "slices",
        [node("a", "b0/r0", 3), node("b", "b0/r0", 3), node("c", "b0/r1", 4)],
        [gang("g", 8, topology={"required": "block"}, slices=[{"level": "rack", "size": 4}])],
        {"fits": True, "optimum": {"block": 1, "rack": 2, "host": 3}},
    ),
    case(
        "slices-that-do-not-divide",
        TREE,
        [gang("g", 5, slices=[{"level": "host", "size": 2}])],
        {"fits": False},
    ),
    case(
        "repaired",
        [node("a", gpu=3), node("b", gpu=2), node("c", gpu=4)],
        [gang("g", 3, pinned={"a": 2}, lost={"b": 1}, eligible_nodes=["a", "c"])],
        {"fits": True, "optimum": {"host": 1}},
    ),
    case(
        "grown",
        [node("a", gpu=0), node("b", gpu=1), node("c", gpu=4)],
        [gang("g", 4, previous={"a": 2})],
        {"fits": True, "optimum": {"host": 2}},
    ),
    case("shrunk", FLAT, [gang("g", 2, previous={"a": 1, "b": 2})], {"fits": True, "optimum": {"host": 1}}),
    case(
        "together-in-a-rack",
        TREE,
        [gang("x", 3, 2), gang("y", 1, 2)],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 2}},
        co_locate=[{"gangs": ["x", "y"], "required": "rack"}],
    ),
    case(
        "together-not",
        TREE,
        [gang("x", 3, 2), gang("y", 2, 2)],
        {"fits": False},
        co_locate=[{"gangs": ["x", "y"], "required": "rack"}],
    ),
    case(
        "distinct-racks-in-a-block",
        TREE,
        [gang("x", 2, 2), gang("y", 1, 4)],
        {"fits": True, "optimum": {"block": 1, "rack": 2, "host": 2}},
        co_locate=[{"gangs": ["x", "y"], "required": "block", "distinct": "rack"}],
    ),
    case(
        "distinct-racks-not",
        TREE[:2],
        [gang("x", 1), gang("y", 1)],
        {"fits": False},
        co_locate=[{"gangs": ["x", "y"], "distinct": "rack"}],
    ),
    case(
        "enough-of-a-set",
        FLAT[:1],
        [gang("w-0", 2), gang("w-1", 2), gang("w-2", 2)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["w-0", "w-1", "w-2"], "min_pods": 4}],
    ),
    case(
        "not-enough-of-a-set",
        FLAT[:1],
        [gang("w-0", 2), gang("w-1", 2), gang("w-2", 2)],
        {"fits": False},
        co_locate=[{"gangs": ["w-0", "w-1", "w-2"], "min_pods": 6}],
    ),
    case(
        "enough-subgroups",
        FLAT[:1],
        [gang("w-0", 2), gang("w-1", 2), gang("w-2", 2)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["w-0", "w-1", "w-2"], "min_subgroups": {"w": 2}}],
    ),
    case(
        "optional-set",
        FLAT[:1],
        [gang("must", 3), gang("may", 2)],
        {"fits": True},
        co_locate=[{"gangs": ["may"], "optional": True}],
    ),
    case(
        "quota",
        FLAT,
        [gang("g", 4), gang("h", 2)],
        {"fits": False},
        limits=[{"gangs": ["g", "h"], "resource": "gpu", "max_new": 5, "queues": []}],
    ),
    case(
        "quota-of-new-pods",
        FLAT,
        [gang("g", 4, pinned={"a": 2})],
        {"fits": True, "optimum": {"host": 1}},
        limits=[{"gangs": ["g"], "resource": "pods", "max_new": 2, "queues": []}],
    ),
    case(
        "reserve",
        TREE,
        [gang("g", 1, 4), gang("h", 1, 4)],
        {"fits": True, "optimum": {"block": 2, "rack": 2, "host": 2}},
        reserve=[{"level": "rack", "count": 2}],
    ),
    case(
        "reserve-not",
        TREE,
        [gang("g", 5, 4)],
        {"fits": False},
        reserve=[{"level": "rack", "count": 1}],
    ),
    # Two pods move from the emptiest node, so that four GPUs are free on one.
    case(
        "moves",
        [node("a", gpu=2), node("b", gpu=1), node("c", gpu=1)],
        [gang("g", 1, 4)],
        {"fits": False, "moves": 2},
        running=[
            {"name": "r0", "on": {"a": 2}, "per_pod": {"gpu": 1, "pods": 1}, "movable": True},
            {"name": "r1", "on": {"b": 3, "c": 3}, "per_pod": {"gpu": 1, "pods": 1}, "movable": True},
        ],
    ),
    case(
        "victims",
        [node("a", gpu=0), node("b", gpu=1)],
        [gang("g", 1, 4)],
        {"fits": False, "fewest_victims": 1},
        running=[
            {"name": "low", "on": {"a": 2}, "per_pod": {"gpu": 1}, "evictable": True, "priority": 1},
            {"name": "low2", "on": {"a": 1}, "per_pod": {"gpu": 2}, "evictable": True, "priority": 1},
            {"name": "high", "on": {"b": 1}, "per_pod": {"gpu": 3}, "evictable": True, "priority": 5},
        ],
    ),
    case(
        "victims-of-a-queue",
        [node("a", gpu=4), node("b", gpu=0)],
        [gang("g", 1, 4)],
        {"fits": False, "fewest_victims": 1},
        limits=[{"gangs": ["g"], "resource": "gpu", "max_new": 1, "queues": ["q"]}],
        running=[
            {"name": "x", "on": {"b": 1}, "per_pod": {"gpu": 3}, "evictable": True, "queue": "q"},
            {"name": "y", "on": {"b": 1}, "per_pod": {"gpu": 1}, "evictable": True, "queue": "other"},
        ],
    ),
    case(
        "jobs",
        FLAT,
        [gang("a0", 5), gang("a1", 5), gang("b0", 4), gang("c0", 4)],
        {"fits": False, "most_admitted": 2},
        jobs=[
            {"name": "large", "gangs": ["a0", "a1"]},
            {"name": "first", "gangs": ["b0"]},
            {"name": "second", "gangs": ["c0"]},
        ],
    ),
    case(
        "jobs-with-and-without-gpus",
        FLAT[:1],
        [gang("l", 1, 0), gang("w", 4), gang("m", 5)],
        {"fits": False, "most_admitted": 1},
        jobs=[{"name": "one", "gangs": ["l", "w"]}, {"name": "two", "gangs": ["m"]}],
    ),
    case(
        "slices-above-what-is-required",
        TREE,
        [gang("g", 1, topology={"required": "host"}, slices=[{"level": "rack", "size": 1}])],
        {"fits": False, "invalid": "level"},
    ),
    case("unknown-level", FLAT, [gang("g", 1, topology={"required": "pod"})], {"fits": False, "invalid": "level"}),
    # Kept pods: where they are, in which groups, and what they leave to others.
    case(
        "failed-nodes-take-nothing",
        [node("a", gpu=4), node("b", gpu=4)],
        [gang("g", 2, lost={"a": 1}, pinned={"b": 1}), gang("h", 1, 4, lost={"b": 1})],
        {"fits": True, "optimum": {"host": 2}},
    ),
    case(
        "kept-on-an-excluded-node",
        FLAT,
        [gang("g", 2, previous={"a": 1}, excluded_nodes={"a": "not ready"})],
        {"fits": True, "optimum": {"host": 2}},
    ),
    case(
        "kept-pods-in-groups-of-their-own",
        FLAT,
        [gang("g", 4, slices=[{"level": "host", "size": 2}], pinned={"a": 1, "b": 1})],
        {"fits": True, "optimum": {"host": 2}},
    ),
    case(
        "kept-pods-that-break-a-limit",
        FLAT,
        [gang("g", 4, spread=[{"level": "host", "max": 1}], pinned={"a": 2})],
        {"fits": False},
    ),
    case(
        "what-a-job-keeps-is-not-anothers",
        [node("a", gpu=2)],
        [gang("g", 4, previous={"a": 1}), gang("h", 3)],
        {"fits": False, "most_admitted": 0},
        jobs=[{"name": "grows", "gangs": ["g"]}, {"name": "new", "gangs": ["h"]}],
    ),
    case(
        "quota-beside-a-gang-that-shrinks",
        FLAT[:1],
        [gang("g", 2, previous={"a": 4}), gang("h", 3, min_pods=1)],
        {"fits": True, "optimum": {"host": 2}},
        limits=[{"gangs": ["g", "h"], "resource": "gpu", "max_new": 2, "queues": []}],
    ),
    # What cannot be placed at all takes nothing from the rest.
    case(
        "slices-in-vain-beside-a-job",
        FLAT,
        [gang("g", 3, slices=[{"level": "host", "size": 2}]), gang("h", 2)],
        {"fits": False, "most_admitted": 1},
        jobs=[{"name": "odd", "gangs": ["g"]}, {"name": "even", "gangs": ["h"]}],
    ),
    case(
        "slices-around-what-a-set-requires",
        [node("a", "b0/r0", 3), node("b", "b0/r0", 3)],
        [gang("g", 4, slices=[{"level": "block", "size": 2}]), gang("h", 1)],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 2}},
        co_locate=[{"gangs": ["g", "h"], "required": "rack"}],
    ),
    case(
        "elastic-in-whole-slices",
        FLAT[:1],
        [gang("g", 5, min_pods=1, topology={"required": "host"}, slices=[{"level": "host", "size": 2}])],
        {"fits": True, "optimum": {"host": 1}},
    ),
    case(
        "reserve-of-what-was-touched",
        [node("a", "b0/r0"), node("b", "b0/r1")],
        [gang("g", 1)],
        {"fits": False},
        reserve=[{"level": "rack", "count": 2}],
        running=[{"name": "r", "on": {"b": 1}, "per_pod": {"gpu": 1}}],
    ),
    # What may be away yields to what may not, and enough is enough.
    case(
        "optional-set-yields",
        FLAT[:1],
        [gang("must", 2), gang("may", 3)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["may"], "optional": True}],
    ),
    case(
        "subgroups-of-several-sizes",
        FLAT[:1],
        [gang("w-0", 1), gang("w-1", 1), gang("w-2", 4)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["w-0", "w-1", "w-2"], "min_subgroups": {"w": 2}}],
    ),
    case(
        "a-subgroup-of-every-policy",
        FLAT[:1],
        [gang("v-0", 3), gang("w-0", 3)],
        {"fits": False},
        co_locate=[{"gangs": ["v-0", "w-0"], "min_subgroups": {"v": 1, "w": 1}}],
    ),
    case(
        "jobs-at-their-least",
        FLAT[:1],
        [gang("g", 4, min_pods=1), gang("h", 4, min_pods=3)],
        {"fits": True, "optimum": {"host": 2}, "most_admitted": 2},
        jobs=[{"name": "one", "gangs": ["g"]}, {"name": "two", "gangs": ["h"]}],
    ),
    case(
        "no-more-victims-than-the-least-needs",
        [node("a", gpu=0)],
        [gang("g", 4, min_pods=2)],
        {"fits": False, "fewest_victims": 1},
        running=[
            {"name": "r0", "on": {"a": 1}, "per_pod": {"gpu": 2}, "evictable": True},
            {"name": "r1", "on": {"a": 1}, "per_pod": {"cpu_m": 1000}, "evictable": True},
            {"name": "r2", "on": {"a": 1}, "per_pod": {"gpu": 2}, "evictable": True},
        ],
    ),
    case(
        "jobs-and-what-evictions-would-give",
        [node("a", gpu=2)],
        [gang("g", 2), gang("h", 2)],
        {"fits": False, "most_admitted": 1, "fewest_victims": 1},
        jobs=[{"name": "one", "gangs": ["g"]}, {"name": "two", "gangs": ["h"]}],
        running=[{"name": "r", "on": {"a": 1}, "per_pod": {"gpu": 2}, "evictable": True}],
    ),
    case(
        "a-set-of-one-and-elastic",
        [node("a", "b0/r0", 3), node("b", "b0/r1", 3)],
        [gang("g", 6, min_pods=2, topology={"required": "rack"})],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 1}},
        co_locate=[{"gangs": ["g"], "required": "rack"}],
    ),
    case(
        "a-set-of-one-and-a-victim",
        [node("a", "b0/r0", 2), node("b", "b0/r1", 2)],
        [gang("g", 4)],
        {"fits": False, "fewest_victims": 1},
        co_locate=[{"gangs": ["g"], "required": "rack"}],
        running=[{"name": "r", "on": {"b": 1}, "per_pod": {"gpu": 2}, "evictable": True}],
    ),
    case(
        "together-and-apart",
        [node("a", "b0/r0"), node("b", "b0/r1")],
        [gang("x", 1), gang("y", 1)],
        {"fits": True, "optimum": {"block": 2, "rack": 4, "host": 4}},
        co_locate=[{"gangs": ["x", "y"], "required": "block"}, {"gangs": ["x", "y"], "distinct": "rack"}],
    ),
    case(
        "one-of-a-set-keeps-a-pod-where-nobody-else-may-be",
        FLAT,
        [
            gang("x", 2, excluded_nodes={"c": "cordoned"}),
            gang("y", 2, excluded_nodes={"c": "cordoned"}, pinned={"c": 1}),
        ],
        {"fits": True, "optimum": {"host": 2}},
        co_locate=[{"gangs": ["x", "y"]}],
    ),
    case(
        "victims-of-one-name",
        [node("a", gpu=0)],
        [gang("g", 2)],
        {"fits": False, "fewest_victims": 1},
        running=[{"name": "r", "on": {"a": 1}, "per_pod": {"gpu": n}, "evictable": True} for n in (1, 2)],
    ),
    case(
        "a-domain-that-somebody-uses",
        [{**node("a", "b0/r0", 2), "used": {"gpu": 2}}, node("b", "b0/r1", 2)],
        [gang("g", 1, 2)],
        {"fits": False},
        reserve=[{"level": "rack", "count": 1}],
        running=[{"name": "m", "on": {"b": 1}, "per_pod": {"gpu": 2}}],
    ),
    {
        **case("no-levels", [node("a", gpu=6)], [gang(name, 2) for name in ("u", "v", "w")], {"fits": True}),
        "levels": [],
        "co_locate": [{"gangs": ["u", "v", "w"], "min_pods": 4}],
    },
    {
        "id": "levels-keep-their-order-whatever-their-names",
        "levels": ["T block", "rack", "host"],
        "nodes": [named("a", 1, 1, 1), named("b", 1, 0, 1), named("c", 0, 1, 4), named("d", 1, 1, 4)],
        "gangs": [gang("x", 3), gang("y", 3, spread=[{"level": "T block", "max": 2}])],
        "truth": {"fits": True, "optimum": {"T block": 3, "rack": 3, "host": 3}},
    },
    case(
        "none-of-a-gang-is-needed",
        [node("a", gpu=3)],
        [gang("g", 2, min_pods=2), gang("h", 1, 2, min_pods=0)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["g", "h"]}],
    ),
    case(
        "none-of-a-gang-is-needed-in-a-job",
        [node("a", gpu=3)],
        [gang("g", 2), gang("h", 1, 2, min_pods=0), gang("i", 1)],
        {"fits": True, "most_admitted": 2},
        jobs=[{"name": "one", "gangs": ["g", "h"]}, {"name": "two", "gangs": ["i"]}],
    ),
    case(
        "what-keeps-pods-stays-in-a-set-that-may-be-incomplete",
        [node("a", "b0/r0", 2), node("b", "b0/r0", 3)],
        [gang("x", 6), gang("y", 4, pinned={"a": 1})],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 2}},
        co_locate=[{"gangs": ["x", "y"], "min_pods": 4}],
    ),
    case(
        "what-keeps-pods-and-cannot-be-whole-holds-its-room",
        [node("a", gpu=1), node("b", gpu=0)],
        [gang("x", 1), gang("y", 4, pinned={"b": 2})],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["x", "y"], "min_subgroups": {"x": 1}}],
    ),
    case(
        "a-set-that-may-be-away-holds-its-room-too",
        [node("a", gpu=0)],
        [gang("x", 2, pinned={"a": 1}), gang("y", 1)],
        {"fits": False},
        co_locate=[{"gangs": ["x"], "optional": True}],
    ),
    case(
        "no-job-whose-slices-its-kept-pods-break",
        [node("a", gpu=4), node("b", gpu=0), node("c", gpu=3)],
        [gang("g", 4, 2, slices=[{"level": "host", "size": 2}], previous={"b": 1, "c": 1})],
        {"fits": False, "most_admitted": 0},
        jobs=[{"name": "grows", "gangs": ["g"]}],
    ),
    case(
        "a-pod-that-runs-where-it-could-not-go-stays",
        [node("a", gpu=1), node("b", gpu=2), node("c", gpu=1)],
        [gang("g", 1, 3)],
        {"fits": False, "moves": 1},
        running=[
            {
                "name": name,
                "on": {name: 1},
                "per_pod": {"gpu": 1},
                "movable": True,
                "eligible_nodes": sorted({*"abc"} - {name}),
            }
            for name in "abc"
        ],
    ),
    case(
        "an-overdrawn-node-chases-nobody",
        [node("a", gpu=0), node("b", gpu=-1)],
        [gang("g", 2)],
        {"fits": False, "fewest_victims": 1},
        running=[
            {"name": "r", "on": {"a": 1}, "per_pod": {"gpu": 2}, "evictable": True},
            {"name": "s", "on": {"b": 2}, "per_pod": {"gpu": 1}, "evictable": True},
        ],
    ),
    case(
        "what-moves-leaves-its-domain-untouched",
        [node("a", "b0/r0", 3), node("b", "b0/r1", 2), node("c", "b0/r2", 2)],
        [gang("g", 1, 4)],
        {"fits": False, "moves": 2},
        reserve=[{"level": "rack", "count": 1}],
        running=[{"name": name, "on": {name: 1}, "per_pod": {"gpu": 1}, "movable": True} for name in "abc"],
    ),
    case(
        "as-many-pods-of-fewer-gangs",
        [node("a", "b0/r0", 1, memory_b=4), node("b", "b0/r1", 3, memory_b=1)],
        [
            gang("g", 1),
            {**gang("h", 1, min_pods=0), "per_pod": {"gpu": 1, "memory_b": 1}},
            gang("i", 1, min_pods=0),
            {**gang("j", 3, min_pods=1), "per_pod": {"gpu": 1, "memory_b": 1}},
        ],
        {"fits": True, "optimum": {"block": 3, "rack": 4, "host": 4}},
    ),
    case(
        "as-many-pods-of-the-smaller-set",
        FLAT[:1],
        [gang("g", 1), gang("x", 1), gang("y", 1), gang("z", 2, 1)],
        {"fits": True, "optimum": {"host": 2}},
        co_locate=[{"gangs": [name], "optional": True} for name in "xyz"],
        limits=[{"gangs": ["x", "y", "z"], "resource": "gpu", "max_new": 2}],
    ),
    case(
        "policies-of-which-one-begins-like-another",
        FLAT[:1],
        [gang("w-0", 9), gang("wx-0", 1), gang("wx-1", 1)],
        {"fits": False},
        co_locate=[{"gangs": ["w-0", "wx-0", "wx-1"], "min_subgroups": {"w": 1, "wx": 1}}],
    ),
    case(
        "earlier-pods-of-a-node-that-is-gone-are-placed-anew",
        [node("a", gpu=0), node("b", gpu=2)],
        [gang("g", 3, previous={"a": 1, "gone": 2})],
        {"fits": True, "optimum": {"host": 2}},
    ),
    case(
        "a-gang-whose-earlier-pods-are-all-gone-is-new",
        FLAT,
        [gang("g", 2, min_pods=1, previous={"gone": 3}), gang("h", 2, pinned={"gone": 1})],
        {"fits": True, "optimum": {"host": 2}},
    ),
    case(
        "more-earlier-pods-than-it-may-have-and-most-of-them-lost",
        FLAT[:2],
        [gang("g", 3, previous={"a": 3, "b": 2}, lost={"a": 3})],
        {"fits": True, "optimum": {"host": 1}},
    ),
    case(
        "a-lost-pod-is-new-wherever-it-goes",
        FLAT,
        [gang("g", 3, previous={"a": 2, "b": 1}, lost={"a": 1})],
        {"fits": False},
        limits=[{"gangs": ["g"], "resource": "gpu", "max_new": 0}],
    ),
    case(
        "a-domain-per-tenant",
        [node("a", "b0/r0"), node("b", "b0/r1"), node("c", "b1/r2")],
        [gang("g", 2)],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 1}},
        reserve=[{"level": "rack", "count": 1, "tenant": tenant} for tenant in "xy"],
    ),
    case(
        "no-domain-per-tenant",
        [node("a", "b0/r0"), node("b", "b0/r1")],
        [gang("g", 2)],
        {"fits": False},
        reserve=[{"level": "rack", "count": 1, "tenant": tenant} for tenant in "xy"],
    ),
    case(
        "gangs-that-repeat-an-inner-set-count-with-it-alone",
        [node("a", "b0/r0"), node("b", "b0/r1")],
        [gang("x", 2, topology={"required": "rack"}), gang("y", 2, topology={"required": "rack"}), gang("z", 4)],
        {"fits": True, "optimum": {"block": 2, "rack": 3, "host": 3}},
        co_locate=[{"gangs": ["x", "y", "z"], "required": "block"}, {"gangs": ["x", "y"], "required": "rack"}],
    ),
    case(
        "gangs-that-repeat-a-half-of-what-their-set-says",
        [node("a", "b0/r0"), node("b", "b0/r1")],
        [gang("x", 2, topology={"required": "block"}), gang("y", 2, topology={"preferred": "rack"})],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 1}},
        co_locate=[{"gangs": ["x", "y"], "required": "block", "preferred": "rack"}],
    ),
    case(
        "a-set-of-one-beside-a-set-of-more",
        [node("a", gpu=3), node("b", gpu=3)],
        [gang("x", 3), gang("y", 3)],
        {"fits": True, "optimum": {"host": 3}},
        co_locate=[{"gangs": ["x"]}, {"gangs": ["x", "y"]}],
    ),
    case(
        "jobs-whose-own-gangs-have-the-same-names",
        [node("a", "b0/r0", 3), node("b", "b0/r1", 3), node("c", "b1/r2", 2)],
        [],
        {"fits": False, "most_admitted": 2},
        jobs=[
            {
                "name": name,
                "gangs": [gang("main", pods), gang("more", 1)],
                "co_locate": [{"gangs": ["main", "more"], "required": "rack"}],
            }
            for name, pods in (("one", 2), ("two", 2), ("three", 2))
        ],
    ),
    case(
        "a-job-that-tells-of-a-gang-once-more",
        FLAT,
        [gang("main", 4)],
        {"fits": True, "most_admitted": 2, "optimum": {"host": 2}},
        jobs=[{"name": "one", "gangs": [gang("main", 4)]}, {"gangs": [gang("more", 4)]}],
    ),
    case(
        "a-set-counts-pods-of-gangs-that-are-there-in-part",
        FLAT[:1],
        [gang("x", 3), gang("y", 3)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["x", "y"], "min_pods": 4}],
    ),
    case(
        "what-a-gang-needs-by-itself-it-needs-in-its-set",
        FLAT[:1],
        [gang("x", 1, 5, min_pods=1), gang("y", 3)],
        {"fits": False},
        co_locate=[{"gangs": ["x", "y"], "min_pods": 2}],
    ),
    case(
        "a-set-that-needs-less-than-its-gangs-counts-by-itself",
        FLAT[:1],
        [gang("x", 1, 5, min_pods=1), gang("y", 3, min_pods=3)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["x", "y"], "min_pods": 3}],
    ),
    case(
        "a-set-that-may-be-away-is-not-there-without-what-its-gang-needs",
        FLAT[:1],
        [gang("x", 1, 5, min_pods=1), gang("y", 3), gang("z", 1)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["x", "y"], "min_pods": 2, "optional": True}],
    ),
    case(
        "a-kept-pod-stays-in-a-slice-that-lacks-one",
        [node("a", gpu=0), node("b", gpu=2)],
        [gang("g", 4, min_pods=1, previous={"a": 1}, slices=[{"level": "host", "size": 2}])],
        {"fits": False, "fewest_victims": 1},
        running=[{"name": "r", "on": {"a": 1}, "per_pod": {"gpu": 1}, "evictable": True}],
    ),
    case(
        "kept-pods-that-are-too-few-by-themselves-stay",
        [node("a", "b0/r0", 0), node("b", "b0/r0", 3)],
        [gang("g", 6, min_pods=3, previous={"a": 1, "b": 1}, slices=[{"level": "rack", "size": 2}])],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 2}},
    ),
    case(
        "a-slice-per-kept-pod-and-more-of-them",
        [node("a", "b0/r0", 1), node("b", "b0/r0", 1), node("c", "b0/r0", 3)],
        [
            gang("g", 6, min_pods=3, previous={"a": 1, "b": 1}, slices=[{"level": "host", "size": 2}])
            | {"topology": {"required": "rack"}}
        ],
        {"fits": True, "optimum": {"block": 1, "rack": 1, "host": 3}},
    ),
    case(
        "no-room-for-a-slice-per-kept-pod",
        [node("a", "b0/r0", 0), node("b", "b0/r0", 0)],
        [
            gang("g", 6, min_pods=3, previous={"a": 1, "b": 1}, slices=[{"level": "host", "size": 2}])
            | {"topology": {"required": "rack"}}
        ],
        {"fits": False},
    ),
    # A set of all says where they are, and leaves to another one what may be away.
    case(
        "optional-set-in-a-set-of-all",
        FLAT[:1],
        [gang("must", 3), gang("may", 2)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["must", "may"], "required": "host"}, {"gangs": ["may"], "optional": True}],
    ),
    case(
        "subgroups-in-a-set-of-all",
        FLAT[:1],
        [gang("must", 2), gang("w-0", 2), gang("w-1", 2)],
        {"fits": True, "optimum": {"host": 2}},
        co_locate=[
            {"gangs": ["must", "w-0", "w-1"], "required": "host"},
            {"gangs": ["w-0", "w-1"], "min_subgroups": {"w": 1}},
        ],
    ),
    case(
        "set-inside-an-optional-one",
        FLAT[:1],
        [gang("x", 3), gang("y", 2), gang("z", 1)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["x", "y"], "optional": True}, {"gangs": ["x"], "required": "host"}],
    ),
    case(
        "set-of-who-needs-no-pods",
        FLAT[:1],
        [gang("g", 4), gang("none", 1, min_pods=0)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["none"]}],
    ),
    case(
        "no-subgroups-are-needed",
        FLAT[:1],
        [gang("g", 4), gang("none", 4, 0)],
        {"fits": True, "optimum": {"host": 1}},
        co_locate=[{"gangs": ["none"], "min_subgroups": {"none": 0}}],
        limits=[{"gangs": ["g", "none"], "resource": "pods", "max_new": 4}],
    ),
    # All in one host by itself would be better only if slices of a set counted by themselves.
    case(
        "slices-count-with-their-set",
        THREE,
        [
            gang("sliced", 4, 2, slices=[{"level": "block", "size": 4}]),
            gang("thin", 8, 2, spread=[{"level": "rack", "max": 2}]),
        ],
        {"fits": True, "optimum": {"block": 3, "rack": 4, "host": 4}},
        co_locate=[{"gangs": ["sliced", "thin"], "preferred": "rack"}],
    ),
    case(
        "slices-of-all-of-a-set-count-with-it",
        THREE,
        [
            gang("sliced", 4, 2, slices=[{"level": "block", "size": 4}]),
            gang("thin", 8, 2, slices=[{"level": "rack", "size": 2}], spread=[{"level": "rack", "max": 2}]),
        ],
        {"fits": True, "optimum": {"block": 3, "rack": 4, "host": 4}},
        co_locate=[{"gangs": ["sliced", "thin"], "preferred": "rack"}],
    ),
]
