"""What is true of a small gang case, by trying everything; nothing of dovetail or of its benchmarks is used.

Pods are tuples with one count per node, in the order of the case's nodes; those of a gang that is away are empty.
Everything that a case says of gangs, sets, quotas, untouched domains, running pods and jobs is taken at its word:
pods that are kept count under every limit, and a limit that they break already cannot be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from typing import Any

Raw = dict[str, Any]
Pods = tuple[int, ...]
Path = tuple[str, ...]
Found = Mapping[str, Pods]
AWAY: Pods = ()


@dataclass(frozen=True)
class World:
    """A case with what was done to its running pods: victims gone, or pods elsewhere than they ran."""

    case: Raw
    asked: tuple[str, ...]
    victims: frozenset[str] = frozenset()
    moved: Mapping[str, Pods] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        """Names of nodes."""
        return [node["name"] for node in self.case["nodes"]]

    @cached_property
    def nodes(self) -> list[Raw]:
        """The nodes."""
        return list(self.case["nodes"])

    @cached_property
    def gangs(self) -> list[Raw]:
        """The gangs that are asked about."""
        return [gang for gang in self.case["gangs"] if gang["name"] in self.asked]

    @cached_property
    def sets(self) -> list[Raw]:
        """The sets whose gangs are asked about."""
        return [each for each in self.case.get("co_locate", []) if set(each["gangs"]) <= set(self.asked)]

    @cached_property
    def home(self) -> Mapping[str, list[Path]]:
        """The domain of each node, by level, as its path; what is outside all domains of a level is one by itself."""
        levels = self.case["levels"]
        own = {level: [_at(self.case, node, level) for node in self.nodes] for level in levels}
        return {
            level: list(zip(*(own[outer] for outer in levels[: i + 1]), strict=True))
            for i, level in enumerate(levels)
        }

    @cached_property
    def inside(self) -> Mapping[str, list[bool]]:
        """Whether each node is in a domain, by level."""
        levels = self.case["levels"]
        return {level: [_domain(self.case, node, level) is not None for node in self.nodes] for level in levels}

    @cached_property
    def running(self) -> Mapping[str, Pods]:
        """Where running pods are in the end."""
        found = {}
        for run in self.case.get("running", []):
            if run["name"] not in self.victims:
                found[run["name"]] = self.moved.get(run["name"], self.counts(run["on"]))
        return found

    @cached_property
    def free(self) -> list[Counter[str]]:
        """What each node has left, with what victims and moves give and take; negative where too much is taken."""
        left = [Counter(node["free"]) for node in self.case["nodes"]]
        for run in self.case.get("running", []):
            after = self.running.get(run["name"], (0,) * len(left))
            for node, (was, is_) in enumerate(zip(self.counts(run["on"]), after, strict=True)):
                left[node].update({name: (was - is_) * amount for name, amount in run["per_pod"].items()})
        return left

    @property
    def overfilled(self) -> bool:
        """Tell whether a pod was moved to a node where there is too little of anything that it asks for."""
        for run in self.case.get("running", []):
            pairs = zip(self.counts(run["on"]), self.running.get(run["name"], ()), strict=False)
            came = [node for node, (was, is_) in enumerate(pairs) if is_ > was]
            if any(amount and self.free[node][name] < 0 for node in came for name, amount in run["per_pod"].items()):
                return True
        return False

    def counts(self, by_node: Mapping[str, int]) -> Pods:
        """Return pods per node."""
        return tuple(by_node.get(name, 0) for name in self.names)

    def per_domain(self, level: str, pods: Pods) -> Counter[Path]:
        """Return pods per domain that holds any."""
        found: Counter[Path] = Counter()
        for home, count in zip(self.home[level], pods, strict=False):
            if count:
                found[home] += count
        return found


def _domain(case: Raw, node: Raw, level: str) -> str | None:
    """Return what a node says, or else all others say that are with it in what lies next inside."""
    if level in node["domain"]:
        return str(node["domain"][level])
    own = _next(case, node, level)
    said = {str(n["domain"][level]) for n in case["nodes"] if level in n["domain"] and _next(case, n, level) == own}
    return said.pop() if len(said) == 1 else None


def _next(case: Raw, node: Raw, level: str) -> str:
    """Return what a node is in at the next inner level."""
    inside = case["levels"][case["levels"].index(level) + 1 :]
    return _at(case, node, inside[0]) if inside else f"node {node['name']}"


def _at(case: Raw, node: Raw, level: str) -> str:
    """Return the domain that a node is in at a level, or what stands for itself as it is in none."""
    domain = _domain(case, node, level)
    return f"alone {_next(case, node, level)}" if domain is None else f"in {domain}"


def truth(case: Raw) -> Raw:
    """Return what is true of a case: as things are, with moves, with evictions, and of its jobs."""
    everyone = tuple(gang["name"] for gang in case["gangs"])
    wrong = _invalid(case)
    if wrong:
        return {"fits": False, "invalid": wrong}
    best = _best(World(case, everyone))
    found: Raw = {"fits": False} if best is None else {"fits": True, "optimum": best}
    if case.get("jobs"):
        found["most_admitted"] = _most_admitted(case)
    if best is None:
        fewest = {"moves": _fewest_moves(case, everyone), "fewest_victims": _fewest_victims(case, everyone)}
        found |= {key: number for key, number in fewest.items() if number is not None}
    return found


def _invalid(case: Raw) -> str | None:
    levels = case["levels"]
    for gang in case["gangs"]:
        required = gang["topology"].get("required")
        asked = [required, *(each["level"] for each in gang.get("slices", []))]
        unknown = [level for level in asked if level is not None and level not in levels]
        if unknown:
            return f"unknown level {unknown[0]}"
        if required and any(levels.index(s["level"]) < levels.index(required) for s in gang.get("slices", [])):
            return "a slice's level is above the gang's level"
        if any(each["size"] < 1 for each in gang.get("slices", [])):
            return "a slice of less than one pod"
    return None


# ---------------------------------------------------------------------- as things are


def _best(world: World) -> Raw | None:
    """Return the fewest domains of the placements with the most pods, None where nothing fits."""
    best: tuple[int, tuple[int, ...]] | None = None
    levels = world.case["levels"]
    for found in _placements(world):
        size = sum(map(sum, found.values()))
        if best is None or -size <= best[0]:
            reached = (-size, tuple(_domains(world, level, found) for level in levels))
            best = reached if best is None else min(best, reached)
    return None if best is None else dict(zip(levels, best[1], strict=True))


def _fits(world: World) -> bool:
    return any(True for _ in _placements(world))


def _placements(world: World) -> Iterator[Found]:
    if world.overfilled:
        return
    options = {gang["name"]: list(_options(world, gang)) for gang in world.gangs}
    for found in _joint(world, world.gangs, options, world.free):
        if _rules_hold(world, found):
            yield found


def _joint(
    world: World, gangs: Sequence[Raw], options: Mapping[str, list[Pods]], free: list[Counter[str]]
) -> Iterator[Found]:
    if not gangs:
        yield {}
        return
    first, kept = gangs[0], _charged(world, gangs[0])
    for pods in options[first["name"]]:
        left = _after(free, pods, kept, first["per_pod"])
        if left is not None:
            for rest in _joint(world, gangs[1:], options, left):
                yield {first["name"]: pods, **rest}


def _after(free: list[Counter[str]], pods: Pods, kept: Pods, per_pod: Raw) -> list[Counter[str]] | None:
    found = free
    for node, count in enumerate(pods):
        new = count - kept[node]
        if new > 0:
            left = {**free[node], **{name: free[node][name] - new * amount for name, amount in per_pod.items()}}
            if any(amount and left[name] < 0 for name, amount in per_pod.items()):
                return None
            found = [*found[:node], Counter(left), *found[node + 1 :]]
    return found


def _charged(world: World, gang: Raw) -> Pods:
    """Return the pods whose use is taken off `free` already."""
    kept, lost = gang.get("pinned") or gang.get("previous") or {}, gang.get("lost") or {}
    return world.counts({node: max(0, count - lost.get(node, 0)) for node, count in kept.items()})


def _options(world: World, gang: Raw) -> Iterator[Pods]:
    if _loose(world, gang["name"]):
        yield AWAY
    kept, most = _charged(world, gang), int(gang["pods"])
    shrinks = sum(kept) > most
    for size in range(max(1, _least(world, gang)), most + 1):
        shares = product(*(range(k + 1) for k in kept)) if shrinks else _shares(size - sum(kept), len(kept))
        for share in shares:
            pods = tuple(share) if shrinks else tuple(a + b for a, b in zip(share, kept, strict=True))
            new = not shrinks and any(share)
            if sum(pods) == size and (not new or _may_be(world, gang, share)) and _gang_holds(world, gang, pods):
                yield pods


def _loose(world: World, name: str) -> bool:
    """Tell whether a gang may be away: its set may, or needs some subgroups only, or none of its pods is needed."""
    mine = [each for each in world.sets if name in each["gangs"]]
    gang = next(gang for gang in world.gangs if gang["name"] == name)
    return any(s.get("optional") or s.get("min_subgroups") for s in mine) or not _least(world, gang)


def _least(world: World, gang: Raw) -> int:
    """Return how many pods are enough: by itself, or any number where a set counts pods and asks for no more."""
    mine = [each for each in world.sets if gang["name"] in each["gangs"]]
    totals = [each for each in mine if each.get("min_pods") is not None]
    if totals and not any(each.get("min_subgroups") for each in mine):
        own = {each["name"]: int(each["min_pods"]) for each in world.gangs if "min_pods" in each}
        least = [sum(own.get(name, 0) for name in each["gangs"]) for each in totals]
        if gang["name"] not in own or any(e["min_pods"] < sum_ for e, sum_ in zip(totals, least, strict=True)):
            return 0
    return int(gang["min_pods"] if "min_pods" in gang else gang["pods"])


def _shares(total: int, nodes: int) -> Iterator[Pods]:
    if total < 0:
        return
    if nodes == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _shares(total - first, nodes - 1):
            yield (first, *rest)


def _may_be(world: World, gang: Raw, new: Pods) -> bool:
    """Tell whether new pods are on nodes that the gang may use, in a domain of every level that it asks for."""
    asked = [gang["topology"].get("required"), *(e["level"] for k in ("slices", "spread") for e in gang.get(k, []))]
    for each in world.sets:
        if gang["name"] in each["gangs"]:
            asked += [each.get("required"), each.get("distinct")]
    for index, count in enumerate(new):
        node = world.case["nodes"][index]
        barred = node["name"] in gang.get("excluded_nodes", {}) or node["name"] in gang.get("lost", {})
        outside = any(level is not None and not world.inside[level][index] for level in asked)
        if count and (barred or outside or node["name"] not in gang.get("eligible_nodes", world.names)):
            return False
    return True


def _gang_holds(world: World, gang: Raw, pods: Pods) -> bool:
    required = gang["topology"].get("required")
    if required and len(world.per_domain(required, pods)) > 1:
        return False
    if max(pods) > gang.get("max_per_node", max(pods)):
        return False
    even = all(not n % s["size"] for s in gang.get("slices", []) for n in world.per_domain(s["level"], pods).values())
    return even and all(
        n <= s["max"] for s in gang.get("spread", []) for n in world.per_domain(s["level"], pods).values()
    )


# ---------------------------------------------------------------------- all gangs together


def _rules_hold(world: World, found: Found) -> bool:
    return (
        all(_set_holds(world, each, found) for each in world.sets)
        and all(_within_limit(world, each, found) for each in world.case.get("limits", []))
        and all(_reserved(world, each, found) for each in world.case.get("reserve", []))
    )


def _set_holds(world: World, together: Raw, found: Found) -> bool:
    there = {name: found[name] for name in together["gangs"] if found[name]}
    least, subgroups = together.get("min_pods"), together.get("min_subgroups") or {}
    needed = set() if subgroups else _firm(world, together)
    if not there:
        return bool(together.get("optional") or not (needed or least or any(subgroups.values())))
    if needed - there.keys():
        return False
    if sum(map(sum, there.values())) < (least or 0):
        return False
    if any(sum(name.startswith(policy) for name in there) < count for policy, count in subgroups.items()):
        return False
    if together.get("required") and len(_spanned(world, together["required"], there.values())) > 1:
        return False
    level = together.get("distinct")
    homes = Counter(d for pods in there.values() for d in world.per_domain(level, pods)) if level else Counter()
    return all(count == 1 for count in homes.values())


def _firm(world: World, together: Raw) -> set[str]:
    """Return the gangs that a set needs; what another set may lack it needs only if it may itself be away."""
    needed = {gang["name"] for gang in world.gangs if _least(world, gang)} & set(together["gangs"])
    others = [each for each in world.sets if each is not together and not together.get("optional")]
    return needed.difference(*(e["gangs"] for e in others if e.get("optional") or e.get("min_subgroups")))


def _spanned(world: World, level: str, found: Any) -> set[Path]:
    return {domain for pods in found for domain in world.per_domain(level, pods)}


def _within_limit(world: World, limit: Raw, found: Found) -> bool:
    new = 0
    for gang in world.gangs:
        if gang["name"] in limit["gangs"]:
            more = sum(found[gang["name"]]) - sum(_charged(world, gang))
            new += max(0, more) * gang["per_pod"].get(limit["resource"], 0)
    gone = [r for r in world.case.get("running", []) if r["name"] in world.victims]
    back = [r for r in gone if r.get("queue") in limit.get("queues", [])]
    given = sum(sum(r["on"].values()) * r["per_pod"].get(limit["resource"], 0) for r in back)
    return not new or bool(new <= limit["max_new"] + given)


def _reserved(world: World, reserve: Raw, found: Found) -> bool:
    kept = [_charged(world, gang) for gang in world.case["gangs"]]
    level = reserve["level"]
    told = {node for run in world.case.get("running") or [] for node in run["on"]}
    used = tuple(int(n["name"] not in told and any(n.get("used", {}).values())) for n in world.case["nodes"])
    touched = _spanned(world, level, [*found.values(), *kept, *world.running.values(), used])
    every = {home for home, inside in zip(world.home[level], world.inside[level], strict=True) if inside}
    wanted = sum(int(each["count"]) for each in world.case["reserve"] if each["level"] == level)
    return len(every - touched) >= wanted


def _domains(world: World, level: str, found: Found) -> int:
    """Count domains: once per set, and per gang that stands alone or asks for a topology of its own."""
    units = [each["gangs"] for each in world.sets]
    for gang in world.gangs:
        mine = [each for each in world.sets if gang["name"] in each["gangs"]]
        own = {key: asked for key, asked in gang["topology"].items() if asked is not None}
        repeated = not own or any(all(each.get(key) == own[key] for key in own) for each in mine)
        if not mine or not repeated:
            units.append([gang["name"]])
    return sum(len(_spanned(world, level, [found[name] for name in unit])) for unit in units)


# ---------------------------------------------------------------------- moves, evictions, jobs


def _fewest_victims(case: Raw, everyone: tuple[str, ...]) -> int | None:
    names = [run["name"] for run in case.get("running", []) if run.get("evictable")]
    for count in range(1, len(names) + 1):
        if any(_fits(World(case, everyone, victims=frozenset(some))) for some in combinations(names, count)):
            return count
    return None


def _fewest_moves(case: Raw, everyone: tuple[str, ...]) -> int | None:
    runs = [run for run in case.get("running", []) if run.get("movable")]
    if not runs:
        return None
    nodes, names = len(case["nodes"]), [node["name"] for node in case["nodes"]]
    before = {run["name"]: tuple(run["on"].get(name, 0) for name in names) for run in runs}
    ends = product(*(_shares(sum(before[run["name"]]), nodes) for run in runs))
    by_moves: dict[int, list[Mapping[str, Pods]]] = {}
    for end in ends:
        after = {run["name"]: pods for run, pods in zip(runs, end, strict=True)}
        pairs = ((was, is_) for name, pods in after.items() for was, is_ in zip(before[name], pods, strict=True))
        by_moves.setdefault(sum(max(0, is_ - was) for was, is_ in pairs), []).append(after)
    for moves in sorted(by_moves):
        if any(_fits(World(case, everyone, moved=after)) for after in by_moves[moves]):
            return moves
    return None


def _most_admitted(case: Raw) -> int:
    for count in range(len(case["jobs"]), 0, -1):
        for some in combinations(case["jobs"], count):
            if _fits(World(case, tuple(name for job in some for name in job["gangs"]))):
                return count
    return 0
