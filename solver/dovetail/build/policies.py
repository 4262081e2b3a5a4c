"""The policies that apply: those of packs, those of documents over them, and those left out (S4.1, S4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.build.cursor import Cursor, Log, cursor, listed
from dovetail.build.hints import warn_if_no_node, warn_if_no_workload
from dovetail.build.rules import READERS, Reader
from dovetail.build.selectors import Known, read_node_selector, read_workload_selector
from dovetail.documents import Document, DocumentSet
from dovetail.rules import Rule
from dovetail.spec import Enforcement, NodeSelector, Policy, Spec
from dovetail.spec.policy import POLICY_TIER


@dataclass(frozen=True, slots=True)
class Source:
    """Where a policy is written; `pack` is empty for a document of its own."""

    name: str
    body: Cursor
    pack: str = ""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which policies apply, and which do not.

    Parameters
    ----------
    applied : the sources that apply, by name and sorted by it.
    replaced : policies of packs that a document of the same name stands for.
    left_out : policies of packs that `withoutPolicies` drops, each with where that is said.
    """

    applied: Mapping[str, Source]
    replaced: tuple[Source, ...] = ()
    left_out: tuple[tuple[Source, Cursor], ...] = ()


def chosen_policies(documents: DocumentSet, project: Cursor | None, log: Log) -> Chosen:
    """Return the policies that apply; documents replace policies of packs by name."""
    own = {d.name: Source(d.name, cursor(d, log)) for d in documents.of_kind("Policy")}
    packs = {document.name: document for document in documents.of_kind("PolicyPack")}
    places = {each.value: each for each in project.items("withoutPolicies")} if project else {}
    read = [source for pack in _named(project, packs) for source in _of_pack(pack, log)]
    found: dict[str, Source] = {}
    for source in read:
        other = found.setdefault(source.name, source)
        if other is not source and source.name not in own and source.name not in places:
            message = f"the policy '{source.name}' is in pack '{other.pack}' already"
            hint = "leave it out with withoutPolicies, or replace it by a Policy document of that name"
            source.body["name"].fault("DT1601", message, hint)
    _check_left_out(places, own, found)
    applied = {name: source for name, source in {**found, **own}.items() if name in own or name not in places}
    return Chosen(
        applied=dict(sorted(applied.items())),
        replaced=tuple(source for source in read if source.name in own),
        left_out=tuple((s, places[s.name]) for s in read if s.name in places and s.name not in own),
    )


def _check_left_out(places: Mapping[str, Cursor], own: Mapping[str, Source], found: Mapping[str, Source]) -> None:
    for name, place in places.items():
        if name in own:
            hint = "delete the document, or do not leave the policy out"
            place.fault("DT1602", f"the policy '{name}' is left out, and a document declares it", hint)
        else:
            place.refer("DT1314", "policy of a pack", found)


def _named(project: Cursor | None, packs: Mapping[str, Document]) -> Iterator[Document]:
    for each in project.items("packs") if project else ():
        if each.value in packs:
            yield packs[each.value]
        else:
            each.fault("DT1018", f"there is no policy pack '{each.value}'", each.log.suggest(each.value, packs))


def _of_pack(pack: Document, log: Log) -> Iterator[Source]:
    names = set()
    for body in cursor(pack, log).items("policies"):
        name = body.raw("name")
        if name in names:
            body["name"].fault("DT1603", f"the pack has a policy '{name}' already")
        else:
            yield Source(name, body, pack.name)
        names.add(name)


def read_policies(sources: Iterable[Source], spec: Spec, known: Known) -> tuple[Policy, ...]:
    """Return policies in the order of their sources.

    Parameters
    ----------
    spec : the project without policies, which rules judge their parameters by.
    """
    return tuple(_policy(source, spec, known) for source in sources)


def check_beside(sources: Mapping[str, Source], spec: Spec) -> None:
    """Refuse policies that make no sense beside the others and the waivers of a Spec."""
    for policy in spec.policies:
        if problem := policy.rule.unsound_beside(policy, spec):
            hint = f"docs/reference/rules/{policy.rule.kind}.md shows how it is written"
            sources[policy.name].body["rule"][policy.rule.kind].fault("DT1606", problem, hint, of_key=True)


def warn_of_unweighed(sources: Mapping[str, Source], spec: Spec) -> None:
    """Warn once where soft policies name no tier and the objective has none for these, documents' own first."""
    if POLICY_TIER in spec.objective.tiers:
        return
    soft = [p for p in spec.policies if p.enforcement.kind == "soft" and p.enforcement.tier == POLICY_TIER]
    first = min(soft, key=lambda policy: bool(policy.origin), default=None)
    if first is not None:
        more = f", nor {len(soft) - 1} more" if len(soft) > 1 else ""
        message = f"the objective has no tier '{POLICY_TIER}', so the policy '{first.name}' is not weighed{more}"
        other = "leave it out with withoutPolicies" if first.origin else "name a tier of the objective here"
        hint = f"add {POLICY_TIER} to the objective's 'tiers', or {other}"
        sources[first.name].body["enforcement"]["soft"].warn("DT1928", message, hint, of_key=True)


def _policy(source: Source, spec: Spec, known: Known) -> Policy:
    ((kind, here),) = source.body["rule"].fields()
    reader = READERS[kind]
    match = source.body.get("match")
    place = match.get("workloads") if match else None
    if place and not reader.workloads:
        place.fault("DT1620", f"'match.workloads' has no effect on '{kind}'", "leave it out", of_key=True)
    workloads = read_workload_selector(place, known)
    rule = _rule(reader, here, spec, known)
    # A pack is written for many projects: that one of them has nothing to match is as it should be.
    if not source.pack:
        if place:
            warn_if_no_workload(place, workloads, known)
        if others := here.get(reader.selects):
            warn_if_no_workload(others, read_workload_selector(others, known), known)
        if rule.unsound(spec) is None:
            _check_label(here, known)
    return Policy(
        name=source.name,
        rule=rule,
        workloads=workloads,
        nodes=_nodes(source, kind, reader, match, known),
        enforcement=_enforcement(source.body, spec),
        origin=source.pack,
    )


def _rule(reader: Reader, here: Cursor, spec: Spec, known: Known) -> Rule:
    rule = reader.read(here, known)
    level = here.raw(reader.level) if reader.level else None
    levels = (*spec.cluster.levels, *reader.inside)
    if level is not None and reader.level and level not in levels:
        here[reader.level].refer("DT1306", "level", levels)
    elif problem := rule.unsound(spec):
        here.fault("DT1606", problem, f"docs/reference/rules/{rule.kind}.md shows how it is written", of_key=True)
    return rule


def _check_label(here: Cursor, known: Known) -> None:
    """Refuse a rule that tells workloads apart by a label that none carries."""
    place = here.get("label")
    workloads = known.workloads.values()
    if place is None or not workloads or not here.log.may_select(len(workloads)):
        return
    keys = {key for workload in workloads for key in workload.labels}
    if place.value not in keys:
        hint = here.log.suggest(place.value, keys) or listed("label keys here", keys)
        place.fault("DT1611", f"no workload carries the label '{place.value}'", hint)


def _nodes(source: Source, kind: str, reader: Reader, match: Cursor | None, known: Known) -> NodeSelector | None:
    here = match.get("nodes") if match else None
    if here is None:
        if reader.nodes == "required":
            first = next(iter(known.groups), "NAME")
            hint = f"say which nodes, such as match: {{nodes: {{groups: [{first}]}}}}"
            source.body["rule"][kind].fault("DT1604", f"'{kind}' needs 'match.nodes'", hint, of_key=True)
        return None
    if reader.nodes == "refused":
        here.fault("DT1605", f"'match.nodes' has no effect on '{kind}'", "leave it out", of_key=True)
    selector = read_node_selector(here, known)
    if not source.pack:
        warn_if_no_node(here, selector, known)
    return selector


def _enforcement(body: Cursor, spec: Spec) -> Enforcement:
    given = body.raw("enforcement")
    if isinstance(given, str):
        return Enforcement("audit" if given == "audit" else "hard")
    soft = body["enforcement"]["soft"]
    tier = soft.raw("tier", POLICY_TIER)
    if tier not in (POLICY_TIER, *spec.objective.tiers):
        hint = f"tiers here are {', '.join(spec.objective.tiers)}"
        soft["tier"].fault("DT1606", f"the objective has no tier '{tier}', so the policy would not be weighed", hint)
    return Enforcement("soft", soft.raw("weight", 1), tier)
