"""Gang cases of nodes that are overdrawn, of quotas that are, and of nodes that do not say all of their domains."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from tests.benchmarks.gang_peers import running
from tests.benchmarks.gang_samples import Case, case, gang, node
from tests.benchmarks.gang_truth import truth

TREES = (["zone", "block", "host"], ["block", "host"], ["zone", "block"])
NEEDS = ({"gpu": 1}, {"gpu": 2}, {"gpu": 1, "cpu_m": 500}, {"cpu_m": 500})


def victims(node_name: str, number: int, **more: Any) -> list[Case]:
    """Return pods of one GPU each on a node."""
    return [running(f"r{i}", {node_name: 1}, 1, evictable=True, **more) for i in range(number)]


def inside(name: str, zone: str = "", block: str = "", gpu: int = 1) -> Case:
    """Return a node that says in which zone and block it is, or not."""
    domain = {level: path for level, path in (("zone", zone), ("block", block)) if path}
    return {"name": name, "domain": {**domain, "host": name}, "free": {"gpu": gpu, "pods": 10}}


def ragged(name: str, nodes: list[Case], gangs: list[Case], truth: Case, **more: Any) -> Case:
    """Return a case of zones and blocks."""
    return {**case(name, nodes, gangs, truth, **more), "levels": ["zone", "block", "host"]}


HALF = [inside("a", "z1", "b1"), inside("b", "", "b1"), inside("c", "z1", "b2"), inside("d", "z2", "b3")]

STRAINED: list[Case] = [
    case(
        "victims-make-up-for-what-is-missing-first",
        [node("a", gpu=-1)],
        [gang("g", 1)],
        {"fits": False, "fewest_victims": 2},
        running=victims("a", 3),
    ),
    case(
        "victims-that-only-make-up-are-of-no-use",
        [node("a", gpu=-1)],
        [gang("g", 1)],
        {"fits": False},
        running=victims("a", 1),
    ),
    case(
        "who-asks-for-nothing-that-is-missing-does-not-mind",
        [node("a", gpu=2, cpu_m=-500)],
        [gang("g", 2)],
        {"fits": True, "optimum": {"host": 1}},
        running=victims("a", 1),
    ),
    case(
        "missing-amounts-that-are-no-multiple-of-requests",
        [node("a", cpu_m=-300)],
        [{**gang("g", 1), "per_pod": {"cpu_m": 500}}],
        {"fits": False, "fewest_victims": 2},
        running=[{"name": f"r{i}", "on": {"a": 1}, "per_pod": {"cpu_m": 500}, "evictable": True} for i in range(3)],
    ),
    case(
        "moves-make-up-first",
        [node("a", gpu=-1), node("b", gpu=2)],
        [gang("g", 1, eligible_nodes=["a"])],
        {"fits": False, "moves": 2},
        running=[running("r", {"a": 3}, 1, movable=True)],
    ),
    case(
        "nothing-moves-to-where-something-is-missing",
        [node("a", gpu=0), node("b", gpu=-1)],
        [gang("g", 2, eligible_nodes=["a"])],
        {"fits": False},
        running=[running("r", {"a": 1}, 2, movable=True), running("s", {"b": 1}, 1, movable=True)],
    ),
    case(
        "pods-that-are-kept-make-up-for-nothing",
        [node("a", gpu=-1), node("b", gpu=0)],
        [gang("g", 2, pinned={"a": 1})],
        {"fits": False, "fewest_victims": 1},
        running=[*victims("a", 2), {**victims("b", 1)[0], "name": "s"}],
    ),
    case(
        "an-overdrawn-domain-may-be-left-untouched",
        [node("a", "x/r0", gpu=-1), node("b", "x/r1", gpu=1)],
        [gang("g", 1)],
        {"fits": False, "fewest_victims": 2},
        running=victims("a", 2),
        reserve=[{"level": "rack", "count": 1}],
    ),
    case(
        "who-asks-for-none-of-an-overdrawn-quota-does-not-mind",
        [node("a")],
        [gang("g", 1, 0)],
        {"fits": True, "optimum": {"host": 1}},
        limits=[{"gangs": ["g"], "resource": "gpu", "max_new": -1}],
    ),
    case(
        "who-gets-nothing-new-does-not-mind-it-either",
        [node("a")],
        [gang("g", 2, pinned={"a": 2})],
        {"fits": True, "optimum": {"host": 1}},
        limits=[{"gangs": ["g"], "resource": "gpu", "max_new": -1}],
    ),
    ragged(
        "a-block-of-which-a-node-does-not-say-its-zone",
        HALF,
        [gang("g", 2, topology={"required": "block"})],
        {"fits": True, "optimum": {"zone": 1, "block": 1, "host": 2}},
    ),
    ragged(
        "a-node-is-in-the-zone-of-its-block",
        HALF,
        [gang("g", 3, topology={"required": "zone"})],
        {"fits": True, "optimum": {"zone": 1, "block": 2, "host": 3}},
    ),
    ragged(
        "a-block-in-no-zone-is-one-block",
        [inside("a", "", "b1"), inside("b", "", "b1"), inside("c", "z1", "b2")],
        [gang("g", 2, topology={"required": "block"})],
        {"fits": True, "optimum": {"zone": 1, "block": 1, "host": 2}},
    ),
    ragged(
        "a-block-in-no-zone-is-in-none-that-is-asked-for",
        [inside("a", "", "b1"), inside("b", "", "b1"), inside("c", "z1", "b2")],
        [gang("g", 2, topology={"required": "zone"})],
        {"fits": False},
    ),
    ragged(
        "one-id-in-two-zones-is-two-blocks",
        [inside("a", "z1", "b1"), inside("b", "z2", "b1"), inside("c", "z1", "b2")],
        [gang("g", 2, topology={"required": "block"})],
        {"fits": False},
    ),
]


def strained(seed: int) -> Case:
    """Return a tiny case with its truth: what runs may overdraw nodes, and these say some of their domains."""
    rng = Random(f"strained {seed}")
    levels = rng.choice(TREES)
    nodes = [_node(rng, i, levels) for i in range(rng.choice((2, 3, 3, 4)))]
    names = [each["name"] for each in nodes]
    abilities = rng.choice((["movable"], ["evictable"], ["movable", "evictable"]))
    runs = [_running(rng, f"r{i}", names, abilities) for i in range(rng.choice((2, 3, 3, 4)))]
    gangs = [_gang(rng, f"g{i}", names, levels) for i in range(rng.choice((1, 1, 1, 2)))]
    found: Case = {"id": f"strained-{seed}", "levels": levels, "nodes": nodes, "gangs": gangs, "running": runs}
    if len(gangs) == 2 and rng.random() < 0.5:
        found["co_locate"] = [{"gangs": ["g0", "g1"], "required": rng.choice(levels)}]
    elif len(gangs) == 2 and rng.random() < 0.4:
        found["jobs"] = [{"name": "j0", "gangs": ["g0"]}, {"name": "j1", "gangs": ["g1"]}]
    if rng.random() < 0.25:
        found["reserve"] = [{"level": rng.choice(levels), "count": 1}]
    if rng.random() < 0.25:
        limit = {"gangs": ["g0"], "resource": "gpu", "max_new": rng.randint(-1, 3)}
        found["limits"] = [{**limit, "queues": rng.choice(([], ["q"]))}]
    return found | {"truth": truth(found)}


def _node(rng: Random, index: int, levels: list[str]) -> Case:
    block = rng.choice("ab")
    domain = {"zone": "z1" if block == "a" else rng.choice(("z1", "z2")), "block": block, "host": f"h{index}"}
    free = {"gpu": rng.choice((-2, -1, -1, 0, 1, 2)), "cpu_m": rng.choice((-500, 0, 1000, 8000, 8000, 8000))}
    return {
        "name": f"n{index}",
        "domain": {each: domain[each] for each in levels if rng.random() < 0.88},
        "free": free,
    }


def _running(rng: Random, name: str, nodes: list[str], abilities: list[str]) -> Case:
    on = dict(Counter(rng.choice(nodes) for _ in range(rng.choice((1, 1, 2)))))
    found = {"name": name, "on": on, "per_pod": rng.choice(NEEDS), "priority": rng.choice((0, 1))}
    return found | {"queue": rng.choice("qp")} | (dict.fromkeys(abilities, True) if rng.random() < 0.9 else {})


def _gang(rng: Random, name: str, nodes: list[str], levels: list[str]) -> Case:
    pods = rng.choice((1, 2, 2, 3))
    found: Case = {"name": name, "pods": pods, "per_pod": rng.choice(NEEDS), "topology": {}}
    if rng.random() < 0.4:
        found["topology"] = {"required": rng.choice(levels)}
    if pods == 2 and rng.random() < 0.3:
        found["slices"] = [{"level": levels[-1], "size": 2}]
    if rng.random() < 0.3:
        found["eligible_nodes"] = sorted(rng.sample(nodes, len(nodes) - 1))
    if pods > 1 and rng.random() < 0.2:
        found["min_pods"] = 1
    if pods > 1 and rng.random() < 0.2:
        found["pinned"] = {rng.choice(nodes): 1}
    return found
