"""Random small gang cases, and what is true of them by trying everything; nothing of dovetail is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations, combinations_with_replacement, product
from random import Random
from typing import Any

Case = dict[str, Any]
Pods = Mapping[str, int]
LEVELS = ["block", "rack", "host"]


# ---------------------------------------------------------------------- gangs placed as things are


def placed(seed: int) -> Case:
    """Return a case of gangs on a small tree, with its truth."""
    rng = Random(f"placed {seed}")
    nodes = [_node(rng, f"b{b}/r{k}", f"b{b}r{k}h{h}") for b, k, h in _places(rng)]
    gangs = [_gang(rng, f"g{i}", [n["name"] for n in nodes]) for i in range(rng.choice((1, 2, 2, 3)))]
    case: Case = {"id": f"placed-{seed}", "levels": LEVELS, "nodes": nodes, "gangs": gangs}
    if len(gangs) > 1 and rng.random() < 0.4:
        case["co_locate"] = [_set(rng, gangs[:2])]
    if rng.random() < 0.15:
        limit: Case = {"resource": rng.choice(("gpu", "pods")), "max_new": rng.choice((1, 2, 3, 5)), "queues": []}
        case["limits"] = [{"gangs": [g["name"] for g in gangs], **limit}]
    if rng.random() < 0.15:
        case["reserve"] = [{"level": rng.choice(("rack", "host")), "count": 1}]
    return case | {"truth": _truth(case)}


def _places(rng: Random) -> list[tuple[int, int, int]]:
    racks = [(b, k) for b in range(rng.choice((1, 2))) for k in range(rng.choice((1, 2)))]
    return [(b, k, h) for b, k in racks for h in range(rng.choice((1, 1, 2)))]


def _node(rng: Random, rack: str, name: str) -> Case:
    free = {"gpu": rng.choice((0, 1, 2, 3, 4)), "pods": rng.choice((2, 3, 10)), "cpu_m": rng.choice((1000, 4000))}
    return {"name": name, "domain": {"block": rack[:2], "rack": rack, "host": name}, "free": free}


def _gang(rng: Random, name: str, nodes: list[str]) -> Case:
    pods, per = rng.choice((1, 2, 2, 3, 4)), {"pods": 1}
    per |= {"gpu": rng.choice((1, 1, 2))} if rng.random() < 0.7 else {}
    per |= {"cpu_m": rng.choice((500, 1000))} if rng.random() < 0.5 else {}
    within = rng.choice((None, None, "block", "rack", "host"))
    gang: Case = {"name": name, "pods": pods, "per_pod": per, "topology": {"required": within} if within else {}}
    if pods in (2, 4) and within in (None, "block") and rng.random() < 0.3:
        gang["slices"] = [{"level": rng.choice(("rack", "host")), "size": 2}]
    elif rng.random() < 0.2:
        gang["min_pods"] = 1
    if rng.random() < 0.15:
        gang["spread"] = [{"level": rng.choice(("rack", "host")), "max": rng.choice((1, 2))}]
    if rng.random() < 0.2:
        gang["eligible_nodes"] = sorted(rng.sample(nodes, max(1, len(nodes) - 1)))
    elif pods > 1 and rng.random() < 0.2:
        gang[rng.choice(("pinned", "previous"))] = {rng.choice(nodes): 1}
    elif pods > 1 and "min_pods" not in gang and rng.random() < 0.1:
        gang["previous"] = dict.fromkeys(nodes[:2], pods)
    return gang


def _set(rng: Random, gangs: list[Case]) -> Case:
    found = rng.choice(
        ({"required": "block"}, {"required": "rack"}, {"distinct": "rack"}, {"required": "block", "distinct": "rack"})
    )
    for gang in gangs:
        if rng.random() < 0.5 and "slices" not in gang:
            gang["topology"] = {key: level for key, level in found.items() if key == "required"}
    return {"gangs": [gang["name"] for gang in gangs], **found}


def _truth(case: Case) -> Case:
    """Return whether all fits and the fewest domains, elastic gangs as large as they can be."""
    best: tuple[int, tuple[int, ...]] | None = None
    for pods in product(*(list(_options(case, gang)) for gang in case["gangs"])):
        by_name = {gang["name"]: found for gang, found in zip(case["gangs"], pods, strict=True)}
        if _holds(case, by_name):
            size = sum(sum(found.values()) for found in pods)
            reached = (-size, tuple(_count(case, level, by_name) for level in LEVELS))
            best = reached if best is None else min(best, reached)
    return {"fits": False} if best is None else {"fits": True, "optimum": dict(zip(LEVELS, best[1], strict=True))}


def _options(case: Case, gang: Case) -> Iterator[Pods]:
    names = [n["name"] for n in case["nodes"] if n["name"] in gang.get("eligible_nodes", [n["name"]])]
    before, most = Counter(_kept(gang)), int(gang["pods"])
    shrinks = before.total() > most
    for size in range(int(gang.get("min_pods", most)), most + 1):
        for new in combinations_with_replacement(names, size if shrinks else max(0, size - before.total())):
            pods = Counter(new) if shrinks else before + Counter(new)
            if pods.total() == size and (not shrinks or pods <= before) and _allowed(case, gang, pods):
                yield pods


def _kept(gang: Case) -> Pods:
    found: Pods = gang.get("pinned") or gang.get("previous") or {}
    return found


def _allowed(case: Case, gang: Case, pods: Pods) -> bool:
    required = gang["topology"].get("required")
    if required and len(_domains(case, required, [pods])) > 1:
        return False
    even = all(n % s["size"] == 0 for s in gang.get("slices", []) for n in _held(case, s["level"], pods).values())
    return even and all(n <= s["max"] for s in gang.get("spread", []) for n in _held(case, s["level"], pods).values())


def _held(case: Case, level: str, pods: Pods) -> Counter[str]:
    home = {n["name"]: n["domain"][level] for n in case["nodes"]}
    found: Counter[str] = Counter()
    for node, count in pods.items():
        found[home[node]] += count
    return found


def _domains(case: Case, level: str, pods: list[Pods]) -> set[str]:
    return {domain for each in pods for domain in _held(case, level, each)}


def _holds(case: Case, by_name: Mapping[str, Pods]) -> bool:
    used: Counter[tuple[str, str]] = Counter()
    new: Counter[str] = Counter()
    for gang in case["gangs"]:
        added = Counter(by_name[gang["name"]]) - Counter(_kept(gang))
        for resource, amount in gang["per_pod"].items():
            new[resource] += amount * added.total()
            for node, count in added.items():
                used[node, resource] += amount * count
    free = {(n["name"], resource): amount for n in case["nodes"] for resource, amount in n["free"].items()}
    if any(amount > free.get(at, 0) for at, amount in used.items()):
        return False
    if any(new[limit["resource"]] > limit["max_new"] for limit in case.get("limits", [])):
        return False
    return all(_set_holds(case, s, by_name) for s in case.get("co_locate", [])) and _reserved(case, by_name)


def _set_holds(case: Case, together: Case, by_name: Mapping[str, Pods]) -> bool:
    pods = [by_name[name] for name in together["gangs"]]
    if "required" in together and len(_domains(case, together["required"], pods)) > 1:
        return False
    homes = (
        Counter(d for each in pods for d in _domains(case, together["distinct"], [each]))
        if ("distinct" in together)
        else Counter()
    )
    return all(count == 1 for count in homes.values())


def _reserved(case: Case, by_name: Mapping[str, Pods]) -> bool:
    touched = [*by_name.values(), *(_kept(gang) for gang in case["gangs"])]
    for each in case.get("reserve", []):
        every = {n["domain"][each["level"]] for n in case["nodes"]}
        if len(every - _domains(case, each["level"], touched)) < each["count"]:
            return False
    return True


def _count(case: Case, level: str, by_name: Mapping[str, Pods]) -> int:
    sets = case.get("co_locate", [])
    units = [s["gangs"] for s in sets]
    for gang in case["gangs"]:
        mine = [s.get("required") for s in sets if gang["name"] in s["gangs"]]
        own = gang["topology"].get("required")
        if not mine or (own and own != mine[0]):
            units.append([gang["name"]])
    return sum(len(_domains(case, level, [by_name[name] for name in unit])) for unit in units)


# ---------------------------------------------------------------------- moves, evictions, jobs


def contested(seed: int) -> Case:
    """Return a case where running pods may move, or may be evicted, or where jobs compete, with its truth."""
    rng, kind = Random(f"contested {seed}"), ("movable", "evictable", "jobs")[seed % 3]
    amounts = (2, 3, 4) if kind == "jobs" else (0, 1, 2)
    free = {f"n{i}": rng.choice(amounts) for i in range(rng.choice((2, 3)))}
    nodes = [{"name": n, "domain": {"host": n}, "free": {"gpu": gpus, "pods": 20}} for n, gpus in free.items()]
    case: Case = {"id": f"contested-{seed}", "levels": ["host"], "nodes": nodes}
    if kind == "jobs":
        return case | _jobs(rng, free)
    wanted = [_wanted(rng, f"g{i}") for i in range(rng.choice((1, 2)))]
    if kind == "movable":  # more than is free on any node, and no more than is free in all
        wanted = [_wanted(rng, "g") | {"pods": 1, "per_pod": {"pods": 1, "gpu": rng.choice((2, 3))}}]
    running = [_running(rng, f"r{i}", [*free], kind) for i in range(rng.choice((1, 2, 3)))]
    truth: Case = {"fits": _fit(free, wanted)}
    if not truth["fits"]:
        truth |= _moves(free, running, wanted) if kind == "movable" else _victims(free, running, wanted)
    return case | {"gangs": wanted, "running": running, "truth": truth}


def _wanted(rng: Random, name: str) -> Case:
    topology = {"required": "host"} if rng.random() < 0.6 else {}
    per = {"pods": 1, "gpu": rng.choice((1, 2))}
    return {"name": name, "pods": rng.choice((1, 1, 2, 3)), "per_pod": per, "topology": topology}


def _running(rng: Random, name: str, nodes: list[str], ability: str) -> Case:
    on = dict(Counter(rng.choice(nodes) for _ in range(rng.choice((1, 1, 2)))))
    return {"name": name, "on": on, "per_pod": {"gpu": rng.choice((1, 1, 2))}, ability: True, "priority": 1}


def _jobs(rng: Random, free: Pods) -> Case:
    gangs = [_wanted(rng, f"g{i}") for i in range(rng.choice((3, 4, 5)))]
    jobs = [{"name": f"j{i}", "gangs": [g["name"] for g in gangs[i::3]]} for i in range(3)]
    by_name = {gang["name"]: gang for gang in gangs}
    fitting = [
        count
        for count in range(1, 4)
        for some in combinations(jobs, count)
        if _fit(free, [by_name[name] for job in some for name in job["gangs"]])
    ]
    most = max(fitting, default=0)
    return {"gangs": gangs, "jobs": jobs, "truth": {"fits": most == 3, "most_admitted": most}}


def _fit(free: Pods, gangs: list[Case]) -> bool:
    if not gangs:
        return True
    first, gpus = gangs[0], gangs[0]["per_pod"]["gpu"]
    for some in combinations_with_replacement([*free], first["pods"]):
        if first["topology"] and len(set(some)) > 1:
            continue
        left = Counter(free)
        left.subtract({node: count * gpus for node, count in Counter(some).items()})
        if min(left.values()) >= 0 and _fit(left, gangs[1:]):
            return True
    return False


def _victims(free: Pods, running: list[Case], wanted: list[Case]) -> Case:
    for count in range(1, len(running) + 1):
        for some in combinations(running, count):
            left = Counter(free)
            for each in some:
                left.update({node: pods * each["per_pod"]["gpu"] for node, pods in each["on"].items()})
            if _fit(left, wanted):
                return {"fewest_victims": count}
    return {}


def _moves(free: Pods, running: list[Case], wanted: list[Case]) -> Case:
    pods = [(node, r["per_pod"]["gpu"]) for r in running for node, count in r["on"].items() for _ in range(count)]
    fewest: int | None = None
    for ends in product([*free], repeat=len(pods)):
        moves = sum(end != node for end, (node, _) in zip(ends, pods, strict=True))
        left = Counter(free)
        for end, (node, gpus) in zip(ends, pods, strict=True):
            left.update({node: gpus})
            left.subtract({end: gpus})
        if (fewest is None or moves < fewest) and min(left.values()) >= 0 and _fit(left, wanted):
            fewest = moves
    return {} if fewest is None else {"moves": fewest}
