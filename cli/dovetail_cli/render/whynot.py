"""Why a workload is where it is, or is not admitted, and what a node holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from dovetail.faults import CODES
from dovetail.placement import Place, Room, obstacle
from dovetail.plan import Plan
from dovetail.rules import context_of
from dovetail.spec import Node, Policy, Spec, Workload
from dovetail.whynot import (
    Bar,
    Change,
    Explanation,
    Shortage,
    Tried,
    Way,
    Without,
    applying,
    cuts_of,
    modes_of,
    shortages,
    to_document,
)
from dovetail_cli.render import machine
from dovetail_cli.render import review as facts
from dovetail_cli.render.columns import PLAIN, Screen, headline, layout, prose
from dovetail_cli.render.text import conflict_lines
from dovetail_cli.render.words import amount, gpus, human_change, human_unit, nodes, plural

FORMATS = ("table", "json", "yaml")
_MOST = 20
_MOST_TOLD = 5
_READABLE = 100  # columns of prose, where more are not better
_CUT = "Time was up before more was planned; --work or --time-limit says how long each plan may take"
_MARKS = {"alone": "!", "together": "!", "unknown": "?", "aside": "=", "idle": "="}


def of_workload(found: Explanation, places: facts.Places, name: str = "table", screen: Screen = PLAIN) -> str:
    """Return why a workload is where it is, or is not admitted in full; `json` and `yaml` hold the Explanation."""
    if name in ("json", "yaml"):
        return machine.rendered(to_document(found), name)
    spec, plan, workload = found.spec, found.plan, found.workload
    title = (f"dovetail explain: {workload.id}", _state(plan, workload), f"plan {facts.status(plan)}")
    blocks = [headline(title, screen), _where(spec, plan, workload, screen)]
    if plan.outcome.status in ("infeasible", "unknown"):
        return _joined([*blocks, conflict_lines(facts.Review(plan, spec=spec, places=places), screen)])
    if workload.id in plan.admitted:
        blocks += [list(_reasons(plan, workload, screen)), _lacks(spec, plan, workload, screen)]
    blocks += [_policies(found, places, screen), _ways(workload, found.ways, screen)]
    blocks += [_tried(found.tried, screen), _without(found.without, screen)]
    if found.cut:
        blocks.append(prose(_CUT, screen))
    return _joined(blocks)


def of_code(code: str, screen: Screen = PLAIN) -> str:
    """Return what a code means."""
    info = CODES[code]
    read = replace(screen, width=min(_READABLE, screen.width or _READABLE))
    blocks = [prose(f"{code}: {info.title}", screen, indent=0), prose(info.explanation, read, indent=0)]
    return _joined(blocks)


def _block(title: str, rows: Sequence[Sequence[str]], screen: Screen, *below: str) -> list[str]:
    """Return rows under a title and above what else is said of them; nothing where there are none."""
    if not rows:
        return []
    said = [line for text in below for line in prose(text, screen, indent=4)]
    return [*prose(title, screen), *layout(rows, screen, indent=4), *said]


def _tried(found: Tried | None, screen: Screen) -> list[str]:
    """Return what other nodes would change, the best of them one by one and the others counted."""
    if found is None or not found.nodes:
        return []
    able = [each for each in found.nodes if not each.obstacle]
    rows = [("=" if not each.changes else "~", each.node, _changes(each.changes)) for each in able[:_MOST_TOLD]]
    if len(able) > _MOST_TOLD:
        rows.append(("", plural(len(able) - _MOST_TOLD, "more node"), "no better than these"))
    counts = Counter(each.obstacle for each in found.nodes if each.obstacle)
    rows += [("!", plural(count, "node"), _why_not(why)) for why, count in sorted(counts.items())]
    what = plural(found.replicas, "replica")
    head = f"Why on {found.node}: {what} there on another node, everything else where it is"
    number = plural(len(found.nodes), "node")
    tail = f"{number} tried of {found.hosts:,} that could host it; those that look alike are tried once"
    return _block(head, rows, screen, tail)


def _why_not(obstacle: str) -> str:
    return f"{obstacle} forbids it" if obstacle.startswith("policy ") else obstacle


def _without(found: Sequence[Without], screen: Screen) -> list[str]:
    return _block("Elsewhere, each planned anew", [_elsewhere(each) for each in found], screen)


def _elsewhere(found: Without) -> tuple[str, str, str]:
    surely = "proved" if found.certain else "as far as was found"
    if found.admitted is None:
        return "!", f"off {found.what}", f"there is no plan ({surely})"
    if not found.changes:
        return "=", f"off {found.what}", f"as good ({surely})"
    return "~" if found.changes[0].worse else "+", f"off {found.what}", f"{_changes(found.changes)} ({surely})"


def _changes(found: Sequence[Change]) -> str:
    """Return the tiers that differ, the first of them first: what comes after it is never traded for it."""
    told = (f"{each.tier} {human_change(each.here, each.there, each.unit)} {human_unit(each.unit)}" for each in found)
    return ", ".join(told) or "as good"


def _joined(blocks: Sequence[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _state(plan: Plan, workload: Workload) -> str:
    if plan.outcome.status in ("infeasible", "unknown"):
        return "NO PLAN"
    found = plan.admitted.get(workload.id)
    if found is None:
        return "admitted in full"
    return facts.admission(found, by_rate=workload.asks_rate) if found.replicas else "NOT ADMITTED"


def _where(spec: Spec, plan: Plan, workload: Workload, screen: Screen) -> list[str]:
    held = [place for replica, place in plan.placements.items() if replica.workload == workload.id]
    modes = Counter(plan.shared[gpu].mode for place in held for gpu in place.gpu_names if gpu in plan.shared)
    told = ", ".join(f"{plural(count, 'replica')} by {mode}" for mode, count in sorted(modes.items()))
    rows = [("runs on", nodes([place.node for place in held]))] if held else []
    rows += [("shares GPUs", told)] if told else []
    return layout([*rows, *_takes(spec, workload)], screen)


def _takes(spec: Spec, workload: Workload) -> Iterator[tuple[str, str]]:
    """Yield what replicas take of which GPUs, role by role, where that is not the same of all."""
    present = sorted({node.accelerator for node in spec.cluster.nodes if node.accelerator})
    for role in workload.roles:
        if role.request.varies:
            able = [name for name in present if name in (role.accelerators or present)]
            taken = ((amount(Decimal(role.request.on(name).gpu_milli) / 1000), name) for name in able)
            told = ", ".join(f"{part} of {name}" for part, name in taken)
            yield "takes", f"{role.name}: {told}" if role.name else told


def _reasons(plan: Plan, workload: Workload, screen: Screen) -> Iterator[str]:
    for code in plan.admitted[workload.id].reasons:
        info = CODES.get(code)
        yield from layout([("!", code, info.title if info else "")], screen)
        if info:
            yield from prose(info.explanation, screen, indent=6)


def _lacks(spec: Spec, plan: Plan, workload: Workload, screen: Screen) -> list[str]:
    rows = [row for each in shortages(spec, plan, workload) for row in _shortage(each)]
    return _block("What is missing, and what there is", rows, screen)


def _shortage(found: Shortage) -> Iterator[tuple[str, str]]:
    request = found.role.request
    name = f"role {found.role.name}: " if found.role.name else ""
    gpu = f"{amount(Decimal(request.gpu_milli) / 1000)} GPU{' or more' if request.varies else ''}"
    asks = [gpu] if request.gpu_milli else []
    asks += [f"{amount(Decimal(request.cpu) / 1000)} cpu"] if request.cpu else []
    asks += [f"{request.memory:,} MiB"] if request.memory else []
    yield "missing", f"{name}{_number(found)} of {', '.join(asks) or 'nothing'} each"
    closed = f"; hard policies close {found.able - found.open:,} of them" if found.able > found.open else ""
    yield "nodes", f"{found.able:,} of {found.nodes:,} could host one if they were empty{closed}"
    if request.gpu_milli:
        idle = amount(Decimal(found.free) / 1000)
        where = "on the others" if found.able > found.open else "there"
        where += f" beside {amount(Decimal(found.held) / 1000)} that policies hold free" if found.held else ""
        yield (
            "free",
            f"{idle} GPU{'' if idle == '1' else 's'} idle {where}; the best node has {found.most:,} that fit",
        )
    yield "room", f"for {plural(found.fit, 'replica')}, as far as GPUs, cpu and memory go"


def _number(found: Shortage) -> str:
    """Return how many replicas are missing; of a rate that alone is asked for, how much and who serves it."""
    if found.rate is None:
        return plural(found.missing, "replica")
    missing, least = found.rate
    fewest = f"{least:,} to " if least < found.missing else ""
    return f"{amount(Decimal(missing) / 1000)}/s, which would take {fewest}{plural(found.missing, 'replica')}"


def _policies(found: Explanation, places: facts.Places, screen: Screen) -> list[str]:
    """Return the hard policies that apply to a workload, and what each of them does to what is not admitted."""
    spec, workload = found.spec, found.workload
    if workload.id not in found.plan.admitted:
        rows = [_written(policy, places) for policy in applying(spec, workload)]
        return _block("Hard policies that apply to it", rows, screen)
    told = [(_MARKS[bar.stand], *_written(bar.policy, places), _stands(bar)) for bar in found.bars]
    told.sort(key=lambda row: "!?=".index(row[0]))
    head = "Hard policies that apply to it or keep it out, all else staying where it is"
    least = max((bar.needed for bar in found.bars), default=1)
    tail = [f"fewer than {least:,} more replicas would not do"] if least > 1 else []
    return _block(head, told, screen, *tail)


def _written(policy: Policy, places: facts.Places) -> tuple[str, str, str]:
    place = places.policy(policy.name)
    return policy.name, policy.rule.kind, f"{place.file}:{place.line}" if place else policy.origin


def _stands(bar: Bar) -> str:
    """Return what a policy does to one more replica, or to as many as a workload needs at the least."""
    more = f"{bar.needed:,} more replicas" if bar.needed > 1 else "one more replica"
    if bar.keeps_out and bar.policy.rule.needs_current:
        return f"without it other work could move, and {more} would find room"
    if bar.stand == "unknown":
        return f"not known whether it keeps {more} out"
    if bar.stand == "idle":
        return f"does not keep {more} out"
    if bar.stand == "aside":
        spent = f"forbids {more} as such; " if bar.spent else ""
        return f"{spent}without it {more} would have no place either"
    others = f" and {', '.join(bar.beside)}" if bar.beside else ""
    where = " where work of lower priority is" if bar.evicting else ""
    return f"without it{others} {more} would have {'places' if bar.needed > 1 else 'a place'}{where}"


def _ways(workload: Workload, ways: Sequence[Way], screen: Screen) -> list[str]:
    rows = [_way(way, workload) for way in sorted(ways, key=lambda way: not way.helps)]
    return _block("Tried as ways out, each of them planned", rows, screen)


def _way(way: Way, workload: Workload) -> tuple[str, str, str]:
    if way.helps:
        beside = f"; {plural(len(way.plan.admitted), 'other workload')} not in full" if way.plan.admitted else ""
        fewest = ", the fewest that do" if way.least else ""
        return "+", str(way.patch), f"admits it in full{fewest}{beside}"
    surely = "proved" if way.certain else "no better plan found"
    if way.admitted is None:
        return "!", str(way.patch), f"leaves no plan ({surely})"
    if not way.admitted:
        return "!", str(way.patch), f"does not admit it ({surely})"
    least = "" if workload.asks_rate else f"{way.admitted:,} of "
    there = plural(way.admitted if workload.asks_rate else workload.replicas, "replica")
    return "~", str(way.patch), f"admits {least}{there} ({surely})"


def of_node(spec: Spec, plan: Plan, name: str, screen: Screen = PLAIN) -> str:
    """Return what a node holds, what it has left, and who may not use it; without a plan what it is."""
    node = spec.cluster.by_name[name]
    head = headline((f"dovetail explain: node {name}", f"plan {facts.status(plan)}"), screen)
    if plan.outcome.status in ("infeasible", "unknown"):
        return _joined([head, layout(_made(node), screen), ["  there is no plan that says what it holds"]])
    held = [(str(replica), _on(place)) for replica, place in sorted(plan.placements.items()) if place.node == name]
    waiting = [
        (workload, facts.meaning(plan.admitted[workload].reasons))
        for workload in sorted(plan.admitted)
        if any(
            obstacle(spec.by_id[workload], role, node, spec.accelerators) is None
            for role in spec.by_id[workload].roles
        )
    ]
    room = context_of(spec).view(plan.placements).rooms.get(name) or Room(node, spec.accelerators)
    blocks = [head, layout(_left(node, room), screen)]
    blocks.append(_block("Keeps free for policies", list(_kept_free(plan, node)), screen))
    blocks += [_modes(spec, plan, node, screen), _cuts(spec, plan, node, screen)]
    blocks.append(_listed("Holds", held, screen) or ["  holds nothing"])
    blocks.append(_listed("Waits, and could run here if there were room and no policy", waiting, screen))
    return _joined(blocks)


def _made(node: Node) -> list[tuple[str, str]]:
    """Return what a node is."""
    gpus = f"{node.gpus} {node.accelerator or ''}".strip()
    return [
        _in(node),
        ("GPUs", gpus),
        ("cpu", f"{amount(Decimal(node.cpu) / 1000)}{_own_cpu(node)}"),
        ("memory", f"{node.memory:,} MiB{_own_memory(node)}"),
        *_state_of(node),
    ]


def _left(node: Node, room: Room) -> list[tuple[str, str]]:
    """Return what a node is, and what is left of it."""
    idle = sum(not room.tenants[index] for index in node.healthy_gpus())
    return [
        _in(node),
        ("GPUs", f"{node.gpus} {node.accelerator or ''}, {idle} idle".replace(" ,", ",")),
        ("cpu", f"{amount(Decimal(room.cpu) / 1000)} of {amount(Decimal(node.cpu) / 1000)} left{_own_cpu(node)}"),
        ("memory", f"{room.memory:,} of {node.memory:,} MiB left{_own_memory(node)}"),
        *_state_of(node),
    ]


def _in(node: Node) -> tuple[str, str]:
    return "in", ", ".join(f"{level} {path}" for level, path in node.domains.items()) or "no domain"


def _state_of(node: Node) -> Iterator[tuple[str, str]]:
    marks = [word for word, holds in (("down", node.down), ("cordoned", node.cordoned)) if holds]
    marks += [f"{gpus(sorted(node.failed_gpus))} failed"] if node.failed_gpus else []
    marks += [f"taint {taint.key}:{taint.effect}" for taint in node.taints]
    if marks:
        yield "state", ", ".join(marks)


def _kept_free(plan: Plan, node: Node) -> Iterator[tuple[str, str]]:
    """Yield what of a node policies hold free, by policy."""
    around = {*node.domains.values(), node.name}
    for policy, told in sorted(plan.held.items()):
        places = [place for place in told.held if place.node == node.name]
        if places:
            on = gpus(sorted({index for place in places for index in place.gpus}))
            yield policy, f"{plural(len(places), 'place')}{f' on {on}' if on else ''}"
        for path in around.intersection(told.untouched):
            yield policy, f"all of {path}"


def _own_cpu(node: Node) -> str:
    """Return what a node has of its own where policies let more be promised."""
    own = node.owned.cpu
    return "" if own == node.cpu else f", which promises more than its {amount(Decimal(own) / 1000)}"


def _own_memory(node: Node) -> str:
    own = node.owned.memory
    return "" if own == node.memory else f", which promises more than its {own:,} MiB"


def _modes(spec: Spec, plan: Plan, node: Node, screen: Screen) -> list[str]:
    """Return how the node's GPUs are shared, and why so."""
    rows = []
    for shared, setting, why in modes_of(spec, plan, node):
        told = f"{setting.mode}, {setting.clients} clients"
        rows.append((gpus(shared), told, "; ".join(why)))
    return _block("Shares GPUs", rows, screen)


def _cuts(spec: Spec, plan: Plan, node: Node, screen: Screen) -> list[str]:
    """Return who is on MIG instances of the node's GPUs, and why so."""
    rows = [
        (gpus(cut.gpus), f"{cut.replicas}x {cut.profile}", cut.workload, "; ".join(cut.why))
        for cut in cuts_of(spec, plan, node)
    ]
    return _block("Cuts GPUs", rows[:_MOST], screen)


def _on(place: Place) -> str:
    return " ".join(filter(None, (gpus(place.gpus), place.instance)))


def _listed(title: str, rows: Sequence[tuple[str, str]], screen: Screen) -> list[str]:
    more = [f"{len(rows) - _MOST:,} more"] if len(rows) > _MOST else []
    return _block(title, rows[:_MOST], screen, *more)
