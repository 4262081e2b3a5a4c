"""Random tiny gang cases that mix all fields of the form: two or three levels, up to six nodes."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from tests.benchmarks.gang_truth import truth

Raw = dict[str, Any]
TREES = (["block", "rack", "host"], ["rack", "host"], ["zone", "rack"])
KINDS = ("placed", "placed", "placed", "movable", "evictable", "jobs")


def mixed(seed: int) -> Raw:
    """Return a case with its truth."""
    rng = Random(f"mixed {seed}")
    kind, levels = rng.choice(KINDS), rng.choice(TREES)
    nodes = _nodes(rng, levels, 6 if kind == "placed" else 4)
    case: Raw = {"id": f"mixed-{seed}", "kind": kind, "levels": levels, "nodes": nodes}
    names = [node["name"] for node in nodes]
    number = {"placed": (1, 2, 2, 3), "jobs": (2, 3, 3)}.get(kind, (1, 1, 2))
    case["gangs"] = [_gang(rng, f"{rng.choice('ab')}-{i}", names, levels) for i in range(rng.choice(number))]
    if kind == "jobs":
        case["jobs"] = _jobs(rng, case["gangs"])
    elif kind != "placed":
        case["running"] = [_running(rng, f"r{i}", names, kind) for i in range(rng.choice((1, 2, 3)))]
    _together(rng, case)
    if rng.random() < 0.25:
        case["limits"] = [_limit(rng, case["gangs"]) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.2:
        case["reserve"] = [{"level": rng.choice(levels), "count": 1}]
    return case | {"truth": truth(case)}


def nested(seed: int) -> Raw:
    """Return a case with sets in sets, whose gangs repeat a part of what these say, and with pods that are gone."""
    rng = Random(f"nested {seed}")
    levels = rng.choice(TREES)
    nodes = _nodes(rng, levels, 5)
    names = [node["name"] for node in nodes]
    gangs = [_gang(rng, f"{rng.choice('ab')}-{i}", names, levels) for i in range(3)]
    case: Raw = {"id": f"nested-{seed}", "levels": levels, "nodes": nodes, "gangs": gangs}
    inside = [gang["name"] for gang in gangs]
    case["co_locate"] = [{"gangs": inside[: rng.choice((1, 2))], **_topology(rng, levels)}]
    if rng.random() < 0.7:
        case["co_locate"].insert(rng.choice((0, 1)), {"gangs": inside, **_topology(rng, levels)})
    for gang in gangs:
        _repeat(rng, gang, [each for each in case["co_locate"] if gang["name"] in each["gangs"]])
        _lose(rng, gang, names)
    if rng.random() < 0.3:
        case["reserve"] = [{"level": rng.choice(levels[-2:]), "count": rng.choice((0, 1))} for _ in range(2)]
    return case | {"truth": truth(case)}


def counted(seed: int) -> Raw:
    """Return a case with a set that counts pods, and gangs of which some need a number by themselves."""
    rng = Random(f"counted {seed}")
    levels = rng.choice(TREES)
    nodes = _nodes(rng, levels, 4)
    names = [node["name"] for node in nodes]
    gangs = [_gang(rng, f"g-{i}", names, levels) for i in range(rng.choice((2, 3)))]
    for gang in gangs:
        gang |= {"min_pods": rng.randint(0, gang["pods"])} if rng.random() < 0.3 else {}
    case: Raw = {"id": f"counted-{seed}", "levels": levels, "nodes": nodes, "gangs": gangs}
    inside = gangs[: rng.choice((1, 2, 2, 3))]
    together = {"gangs": [gang["name"] for gang in inside], **_topology(rng, levels)}
    together["min_pods"] = rng.randint(1, sum(gang["pods"] for gang in inside))
    together |= {"optional": True} if rng.random() < 0.2 else {}
    for gang in inside:
        gang["topology"] = {key: together[key] for key in ("required", "preferred") if key in together}
        gang.pop("slices", None), gang.pop("pinned", None), gang.pop("previous", None)
    if rng.random() < 0.2 and "optional" not in together:  # whether a job is there that may be away nobody says
        case["jobs"] = [{"name": "j0", "gangs": together["gangs"]}]
        others = [gang["name"] for gang in gangs if gang not in inside]
        case["jobs"] += [{"name": "j1", "gangs": others}] if others else []
    return case | {"co_locate": [together], "truth": truth({**case, "co_locate": [together]})}


def _repeat(rng: Random, gang: Raw, sets: list[Raw]) -> None:
    """Let a gang ask for nothing but what one of its sets asks for, or for a part of that."""
    if sets and (rng.random() < 0.8 or "slices" in gang or any(len(each["gangs"]) == 1 for each in sets)):
        of_set, keys = rng.choice(sets), rng.choice((["required"], ["preferred"], ["required", "preferred"]))
        gang["topology"] = {key: of_set[key] for key in keys if key in of_set}
        gang.pop("slices", None)


def _lose(rng: Random, gang: Raw, nodes: list[str]) -> None:
    """Let some of a gang's earlier pods be gone."""
    if "pinned" not in gang and rng.random() < 0.4:
        kept = gang.setdefault("previous", {})
        kept |= {name: rng.choice((1, 2)) for name in rng.sample([*nodes, "gone"], 2)}
        gang["lost"] = {name: rng.choice((1, 2)) for name in kept if rng.random() < 0.5}


def _nodes(rng: Random, levels: list[str], most: int) -> list[Raw]:
    found = []
    for number in range(rng.randint(2, most)):
        path = [f"b{rng.choice((0, 0, 1))}", f"r{rng.choice((0, 1))}", f"h{number}"]
        named = {level: "/".join(path[: i + 1]) for i, level in enumerate(("block", "rack", "host"))}
        named["zone"] = named["block"]
        inside = rng.randint(0, len(levels) - 1) if rng.random() < 0.05 else len(levels)
        domain = {level: named[level] for level in levels[:inside]}
        free = {"gpu": rng.choice((0, 1, 2, 3, 4)), "pods": rng.choice((2, 3, 10)), "cpu_m": rng.choice((1000, 4000))}
        node: Raw = {"name": f"n{number}", "domain": domain, "free": free}
        found.append(node | ({"used": {"gpu": 1}} if rng.random() < 0.1 else {}))
    return found


def _gang(rng: Random, name: str, nodes: list[str], levels: list[str]) -> Raw:
    pods, per = rng.choice((1, 2, 2, 3, 4)), {"pods": 1}
    per |= {"gpu": rng.choice((1, 1, 2))} if rng.random() < 0.7 else {}
    per |= {"cpu_m": rng.choice((500, 1000))} if rng.random() < 0.5 else {}
    gang: Raw = {"name": name, "pods": pods, "per_pod": per, "topology": _topology(rng, levels)}
    required = gang["topology"].get("required", levels[0])
    if pods > 1 and rng.random() < 0.2:
        gang["slices"] = [_slice(rng, levels, required) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.25:
        gang["min_pods"] = rng.choice((1, max(1, pods - 1)))
    if rng.random() < 0.15:
        gang["spread"] = [{"level": rng.choice(levels), "max": rng.choice((1, 2))}]
    if rng.random() < 0.15:
        gang["max_per_node"] = rng.choice((1, 2))
    if rng.random() < 0.15:
        gang["prefer_nodes"] = {rng.choice(nodes): rng.choice((1, 5))}
    return gang | _nodes_of(rng, nodes) | _kept(rng, nodes, pods)


def _topology(rng: Random, levels: list[str]) -> Raw:
    found = {}
    if rng.random() < 0.5:
        found["required"] = rng.choice(levels)
    if rng.random() < 0.3:
        found["preferred"] = rng.choice(levels)
    return found


def _slice(rng: Random, levels: list[str], required: str) -> Raw:
    inner = levels[levels.index(required) :] if rng.random() < 0.95 else levels
    return {"level": rng.choice(inner), "size": rng.choice((1, 2, 2))}


def _nodes_of(rng: Random, nodes: list[str]) -> Raw:
    found: Raw = {}
    if rng.random() < 0.2:
        found["eligible_nodes"] = sorted(rng.sample(nodes, max(1, len(nodes) - 1)))
    if rng.random() < 0.1:
        found["excluded_nodes"] = {rng.choice(nodes): "not ready"}
    return found


def _kept(rng: Random, nodes: list[str], pods: int) -> Raw:
    if pods == 1 or rng.random() > 0.3:
        return {}
    if rng.random() < 0.2:  # it has more than it may keep
        return {"previous": dict(Counter(rng.choice(nodes) for _ in range(pods + 1)))}
    kept = dict(Counter(rng.choice(nodes) for _ in range(rng.randint(1, pods - 1))))
    if rng.random() < 0.5:
        return {"previous": kept}
    return {
        "pinned": kept,
        "lost": {rng.choice([*sorted({*nodes} - {*kept}), "gone"]): 1} if rng.random() < 0.5 else {},
    }


def _together(rng: Random, case: Raw) -> None:
    names = [gang["name"] for gang in case["gangs"]]
    groups = [job["gangs"] for job in case.get("jobs", [])] or [names]
    for group in groups:
        if len(group) > 1 and rng.random() < 0.5:
            case.setdefault("co_locate", []).append(_set(rng, case, group[: rng.choice((2, 3))]))


def _set(rng: Random, case: Raw, names: list[str]) -> Raw:
    found: Raw = {"gangs": names}
    for key, chance in (("required", 0.4), ("preferred", 0.3), ("distinct", 0.3)):
        if rng.random() < chance:
            found[key] = rng.choice(case["levels"])
    members = [gang for gang in case["gangs"] if gang["name"] in names]
    if rng.random() < 0.2 and "jobs" not in case:
        found["optional"] = True
    if rng.random() < 0.2:
        found["min_pods"] = rng.randint(1, sum(gang["pods"] for gang in members))
    if rng.random() < 0.2:
        found["min_subgroups"] = dict.fromkeys({name[0] for name in names}, 1)
    loose = bool({"optional", "min_pods", "min_subgroups"} & found.keys())
    for gang in members:
        if loose:  # what is away keeps nothing, and what may be away counts with its set alone
            gang.pop("pinned", None), gang.pop("previous", None)
        if loose or (rng.random() < 0.5 and "slices" not in gang):
            gang["topology"] = {key: found[key] for key in ("required", "preferred") if key in found}
    return found


def _limit(rng: Random, gangs: list[Raw]) -> Raw:
    names = [gang["name"] for gang in gangs]
    own = names if rng.random() < 0.6 else [rng.choice(names)]
    resource, most = rng.choice((("gpu", 4), ("pods", 4), ("cpu_m", 2500)))
    return {"gangs": own, "resource": resource, "max_new": rng.randint(0, most), "queues": rng.choice(([], ["q"]))}


def _running(rng: Random, name: str, nodes: list[str], ability: str) -> Raw:
    on = dict(Counter(rng.choice(nodes) for _ in range(rng.choice((1, 1, 2)))))
    per = {"pods": 1, **rng.choice(({"gpu": 1}, {"gpu": 2}, {"cpu_m": 1000}, {"gpu": 1, "cpu_m": 500}))}
    found = {"name": name, "on": on, "per_pod": per, "priority": rng.choice((0, 1, 5)), "queue": rng.choice("qp")}
    return found | ({ability: True} if rng.random() < 0.85 else {})


def _jobs(rng: Random, gangs: list[Raw]) -> list[Raw]:
    number = rng.choice((2, 3))
    dealt = [[gang["name"] for gang in gangs[i::number]] for i in range(number)]
    return [{"name": f"j{i}", "gangs": names} for i, names in enumerate(dealt) if names]
