"""The policies of a project, in every format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dovetail.faults import Position
from dovetail.policylist import GPUS, LiftedBy, Listed, PolicyList, Price, Priced, Pricing, to_document
from dovetail.spec import Policy
from dovetail.spec.policy import POLICY_TIER
from dovetail_cli.render import machine, markdown
from dovetail_cli.render.columns import PLAIN, Screen, headline, layout
from dovetail_cli.render.markdown import Section
from dovetail_cli.render.review import status
from dovetail_cli.render.words import human_unit, human_value, plural

FORMATS = ("table", "json", "yaml", "md")
_MOST_NAMED = 5
_LABELS = {GPUS: "GPUs asked for", "cost": "money"}


def rendered(
    found: PolicyList, pricing: Pricing | None, name: str, screen: Screen = PLAIN, detail: bool = False
) -> str:
    """Return the list in a format; `json` and `yaml` hold the PolicyList."""
    if name in ("json", "yaml"):
        return machine.rendered(to_document(found, pricing), name)
    return _markdown(found, pricing) if name == "md" else _table(found, pricing, screen, detail)


def _table(found: PolicyList, pricing: Pricing | None, screen: Screen, detail: bool) -> str:
    prices = pricing.by_name if pricing is not None else {}
    name, *rest = _title(found)
    blocks = [headline((f"dovetail policies: {name}", *rest), screen)]
    if pricing is not None:
        blocks[0] += layout([("with all of them:", status(pricing.plan))], screen)
    for listed in found.policies:
        head = (listed.policy.name, strictness(listed.policy), rule(listed))
        rows = list(_lines(found, listed, prices.get(listed.policy.name), detail))
        blocks.append([*headline(head, screen, indent=2), *layout(rows, screen, indent=6)])
    blocks.append(layout(list(_not_applied(found)), screen))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _title(found: PolicyList) -> list[str]:
    whose = [found.workload] if found.workload is not None else []
    number = plural(len(found.policies), "policy", "policies")
    return [found.spec.name, *whose, number, f"as of {found.spec.as_of}"]


def _lines(found: PolicyList, listed: Listed, priced: Priced | None, detail: bool) -> Iterator[tuple[str, str]]:
    """Yield what is told of one policy: label and text."""
    yield "from", source(listed)
    if found.workload is None:
        yield "binds", _bound(found, listed, detail)
    if listed.nodes is not None:
        yield "nodes", f"{listed.nodes:,} of {len(found.spec.cluster.nodes):,}"
    yield from (("waiver", words) for words in map(waiver, listed.waivers))
    if priced is not None:
        yield from (("costs", words) for words in costs(priced))
    if listed.origin is not None and listed.origin.description and (detail or found.workload is not None):
        yield "why", " ".join(listed.origin.description.split())


def source(listed: Listed) -> str:
    """Return where a policy is written."""
    origin = listed.origin
    if origin is None:
        return listed.policy.origin or "built in"
    return f"{f'pack {origin.pack} {origin.version}, ' if origin.pack else ''}{place(origin.position)}"


def place(position: Position) -> str:
    """Return a file and a line."""
    return f"{position.file}:{position.line}"


def strictness(policy: Policy) -> str:
    """Return how strict a policy is, and where it is weighed unless that is the tier of all policies."""
    kind, tier = policy.enforcement.kind, policy.enforcement.tier
    after = "" if tier == POLICY_TIER else f" after {tier}"
    return f"soft, weight {policy.enforcement.weight}{after}" if kind == "soft" else kind


def rule(listed: Listed) -> str:
    """Return a rule with its parameters, as they are written."""
    if listed.origin is None:
        return listed.policy.rule.kind
    ((kind, parameters),) = listed.origin.rule.items()
    return f"{kind} {flow(parameters)}" if parameters else kind


def flow(value: Any) -> str:
    """Return plain data in flow style, for people."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bound(found: PolicyList, listed: Listed, detail: bool) -> str:
    bound = [name for name in listed.matched if name not in set(listed.waived)]
    number = f"{len(bound):,} of {plural(len(found.spec.workloads), 'workload')}"
    return f"{number}: {named(bound, None if detail else _MOST_NAMED)}" if bound else number


def named(names: Sequence[str], most: int | None = _MOST_NAMED) -> str:
    """Return names, of very many the first few and how many more."""
    rest = f" and {len(names) - most:,} more" if most is not None and len(names) > most else ""
    return ", ".join(names[:most]) + rest


def waiver(lifted: LiftedBy) -> str:
    """Return a waiver in words."""
    until = {"active": "until", "expiring": "ENDS SOON, on", "expired": "EXPIRED on"}[lifted.state]
    who = named(lifted.workloads) if lifted.workloads else "no workload of this policy"
    given = lifted.waiver
    return f"{given.name} for {who}, {until} {given.expires}; {given.owner}: {given.reason}"


def costs(priced: Priced) -> Iterator[str]:
    """Yield what a policy costs, a sentence for each tier, GPUs and money."""
    outcome = priced.without.outcome.status
    if not priced.prices:
        has = (
            "there is a plan without it" if outcome in ("optimal", "feasible") else "there is none without it either"
        )
        yield {"unknown": "not known: none was found without it in time"}.get(outcome, f"no price: {has}")
        return
    told = [price for price in priced.prices if not price.range.is_nothing]
    yield from (f"{_LABELS.get(price.name, price.name)}: {words(price)}" for price in told)
    if not told:
        money = " and no money" if any(price.name == "cost" for price in priced.prices) else ""
        yield f"no admitted work{money} (proved)"  # moves, soft violations and what else is a tier have no price


def words(price: Price) -> str:
    """Return one price: exact, a range, or one end of it."""
    low, high = (_amount(price, end) for end in (price.range.low, price.range.high))
    given = f", given {', '.join(price.given)} as found" if price.given else ""
    if price.range.is_point:
        return f"exactly {high}{given}"
    if price.range.low == 0 and price.range.high is not None:
        return f"at most {high} ({_amount(price, price.found)} between the two plans){given}"
    if price.range.low is not None and price.range.high is not None:
        return f"from {low} to {high}{given}"
    if price.range.high is not None:
        return f"at most {high}{given}"
    least = f"at least {low}, and " if price.range.low else ""
    return f"{least}{_amount(price, price.found)} between the two plans, without a bound{given}"


def _amount(price: Price, value: int | None) -> str:
    return f"{human_value(value, price.unit)} {human_unit(price.unit)}"


def _not_applied(found: PolicyList) -> Iterator[tuple[str, ...]]:
    """Yield the policies of packs that do not apply, and why."""
    if found.workload is not None:
        return
    for origin in found.origins.replaced:
        own = found.origins.applied[origin.name].position
        yield "replaced", origin.name, f"pack {origin.pack} {origin.version}", f"by {place(own)}"
    for origin, position in found.origins.left_out:
        yield "left out", origin.name, f"pack {origin.pack} {origin.version}", f"by {place(position)}"


def _markdown(found: PolicyList, pricing: Pricing | None) -> str:
    head = ["policy", "enforcement", "rule", "binds", "from", "waivers", *(["costs"] if pricing else [])]
    prices = pricing.by_name if pricing is not None else {}
    rows = [_row(found, listed, prices.get(listed.policy.name), pricing) for listed in found.policies]
    marker = markdown.marker("policies", found.spec.name)
    planned = ("", f"With all of them: {markdown.text(status(pricing.plan))}.") if pricing else ()
    sections = [
        Section("opening", (marker, f"### dovetail policies: {markdown.text('   '.join(_title(found)))}", *planned)),
        Section("policies", markdown.table_body(rows), ("", *markdown.table_head(head))),
        Section("packs", tuple(f"- {markdown.text(' '.join(row))}" for row in _not_applied(found))),
    ]
    return "\n".join(filter(None, (section.text() for section in sections)))


def _row(found: PolicyList, listed: Listed, priced: Priced | None, pricing: Pricing | None) -> list[str]:
    text = markdown.text
    cells = [
        markdown.code(listed.policy.name),
        text(strictness(listed.policy)),
        markdown.code(rule(listed)),
        text(f"{listed.bound:,} of {len(found.spec.workloads):,}"),
        markdown.code(source(listed)),
        "<br>".join(text(waiver(lifted)) for lifted in listed.waivers),
    ]
    return [*cells, "<br>".join(map(text, costs(priced))) if priced else ""] if pricing else cells
