"""Every leaf of the schemas of documents that people write reaches the Spec, or is refused (`DT1900`).

A leaf is named after the innermost shared definition that holds it: `Cluster.spec.levels[].name`, `request.cpu`,
`rule quota.limit.gpus`. `[]` is any entry of a list, `.*` any key of a mapping, `.*=` the value under it. A place
that uses a shared definition is a leaf as well (`Workload.spec.request`), so that no use of one is forgotten.
"""

import dataclasses
import datetime as dt
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from tests.support.leaf_changes import CHANGES, NOTES
from tests.support.leaf_changes import REFUSED as REFUSALS

from dovetail.build import build
from dovetail.documents import DocumentSet, load_text
from dovetail.faults import Refused
from dovetail.spec import Spec

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"
BASE = "https://dovetail.dev/schemas/v1alpha1/"
UNSUPPORTED = "x-dovetail-unsupported"
READ = ["Project", "Cluster", "Accelerator", "Workload", "Policy", "PolicyPack", "Waiver", "Objective", "Placement"]
READ += ["Scenario", "Sweep", "PolicyTest"]

READING = "reading"  # says which documents there are, and of which kind
NOTE = "note"  # for people; changes nothing in a plan
SCENARIO = "scenario"  # changes documents before they are built, or is judged on the finished plan
REFUSED = "refused"  # written down in the schema for all kinds, and refused where it has no meaning

REACHES: dict[str, str] = {
    "Project.apiVersion": READING,
    "Project.kind": READING,
    "Project.metadata": "Spec.name",
    "metadata.name": "Workload.name",
    "metadata.namespace": "Workload.namespace",
    "metadata.labels": "Workload.labels",
    "labels.*": "Workload.labels",
    "labels.*=": "Workload.labels",
    "metadata.annotations.*": NOTE,
    "metadata.annotations.*=": NOTE,
    "Project.spec.documents[]": READING,
    "Project.spec.packs[]": "Spec.policies",
    "Project.spec.withoutPolicies[]": "Spec.policies",
    "Project.spec.objective": "Spec.objective",
    "Project.spec.tenants[]": READING,
    "Cluster.apiVersion": READING,
    "Cluster.kind": READING,
    "Cluster.metadata": "Cluster.name",
    "Cluster.spec.levels[].name": "Cluster.levels",
    "Cluster.spec.reconfiguration": "Cluster.reconfiguration",
    "Cluster.spec.positions": "Cluster.positions",
    "Cluster.spec.nodeGroups[]": "Cluster.groups",
    "nodeGroup.name": "NodeGroup.name",
    "nodeGroup.count": "NodeGroup.names",
    "nodeGroup.names[]": "NodeGroup.names",
    "nodeGroup.accelerator": "Node.accelerator",
    "nodeGroup.gpus": "Node.gpus",
    "nodeGroup.cpu": "Node.cpu",
    "nodeGroup.memory": "Node.memory",
    "nodeGroup.resources": "Node.resources",
    "resources.*": "Node.resources",
    "resources.*=": "Node.resources",
    "nodeGroup.reserved.cpu": "Node.cpu",
    "nodeGroup.reserved.memory": "Node.memory",
    "nodeGroup.domains.*": "Node.domains",
    "nodeGroup.domains.*=.size": "Node.domains",
    "nodeGroup.domains.*=.sizes[]": "Node.domains",
    "nodeGroup.domains.*=.ranges.*": "Node.domains",
    "nodeGroup.domains.*=.ranges.*=": "Node.domains",
    "nodeGroup.domains.*=.ranges.*=[]": "Node.domains",
    "nodeGroup.domains.*=.fromLabel": "Node.domains",
    "nodeGroup.domains.*=.name": "Node.domains",
    "nodeGroup.labels": "Node.labels",
    "nodeGroup.taints[]": "Node.taints",
    "taint.key": "Taint.key",
    "taint.value": "Taint.value",
    "taint.effect": "Taint.effect",
    "nodeGroup.migStrategy": "Node.mig_strategy",
    "nodeGroup.sharing.mechanism": "Node.mechanism",
    "nodeGroup.sharing.replicas": "EqualParts.parts",
    "nodeGroup.sharing.mps.maxClients": "EqualParts.mps",
    "nodeGroup.sharing.mps.driver": "EqualParts.mps",
    "nodeGroup.sharing.timeSlicing.maxClients": "EqualParts.time_slicing",
    "nodeGroup.sharing.timeSlicing.oversubscription": "EqualParts.oversubscription",
    "nodeGroup.pricePerHour": "Node.price",
    "nodeGroup.pricePerGpuHour": "Node.gpu_price",
    "Cluster.spec.nodes.*": "Node.name",
    "Cluster.spec.nodes.*=": "Cluster.nodes",
    "nodeOverride.cordoned": "Node.cordoned",
    "nodeOverride.failed": "Node.down",
    "nodeGroup.islands[][]": "Node.islands",
    "nodeGroup.sockets[][]": "Node.sockets",
    "nodeOverride.failedGpus[]": "Node.failed_gpus",
    "nodeOverride.labels": "Node.labels",
    "nodeOverride.speed": "Node.speed",
    "Cluster.spec.levels[].bandwidthGBs": "Cluster.bandwidth",
    "Accelerator.spec.nvlink.bandwidthGBs": "Accelerator.nvlink",
    "nodeOverride.migLayout.*": "Node.mig_layout",
    "nodeOverride.migLayout.*=[]": "Node.mig_layout",
    "Accelerator.apiVersion": READING,
    "Accelerator.kind": READING,
    "Accelerator.metadata": "Spec.accelerators",
    "acceleratorMetadata.name": "Accelerator.name",
    "acceleratorMetadata.namespace": REFUSED,
    "acceleratorMetadata.labels": NOTE,
    "acceleratorMetadata.annotations.*": NOTE,
    "acceleratorMetadata.annotations.*=": NOTE,
    "Accelerator.spec.memory": "Accelerator.memory",
    "Accelerator.spec.aliases[]": "Accelerator.aliases",
    "Accelerator.spec.vendor": NOTE,
    "Accelerator.spec.source": "Accelerator.source",
    "Accelerator.spec.verified": "Accelerator.verified",
    "Accelerator.spec.mig.allowUnverified": "Accelerator.mig",
    "Accelerator.spec.mig.memorySlices": "Geometry.axis",
    "Accelerator.spec.mig.computeSlices": "Geometry.compute",
    "Accelerator.spec.mig.sms": "Profile.milli",
    "Accelerator.spec.mig.engines": "Geometry.engines",
    "Accelerator.spec.mig.modeToggleNeedsReset": "Geometry.mode_toggle_needs_reset",
    "Accelerator.spec.mig.profiles.*": "Geometry.profiles",
    "Accelerator.spec.mig.profiles.*=.id": "Profile.gi_profile_id",
    "Accelerator.spec.mig.profiles.*=.computeSlices": "Profile.compute",
    "Accelerator.spec.mig.profiles.*=.memorySlices": "Profile.size",
    "Accelerator.spec.mig.profiles.*=.memory": "Profile.memory",
    "Accelerator.spec.mig.profiles.*=.sms": "Profile.sms",
    "Accelerator.spec.mig.profiles.*=.engines": "Profile.engines",
    "Accelerator.spec.mig.profiles.*=.starts[]": "Profile.starts",
    "Accelerator.spec.mig.profiles.*=.maxInstances": "Profile.maximum",
    "migEngines.*": "Geometry.engines",
    "migEngines.*=": "Geometry.engines",
    "Workload.apiVersion": READING,
    "Workload.kind": READING,
    "Workload.metadata": "Workload.id",
    "Workload.spec.type": "Workload.type",
    "Workload.spec.priority": "Workload.priority",
    "Workload.spec.tenant": "Workload.tenant",
    "Workload.spec.replicas": "Role.replicas",
    "Project.spec.sloClasses.*": "Slo.service_class",
    "Project.spec.sloClasses.*=.weight": "ServiceClass.weight",
    "Project.spec.sloClasses.*=.admitted": "ServiceClass.admitted",
    "Project.spec.sloClasses.*=.replicas": "ServiceClass.replicas",
    "Project.spec.sloClasses.*=.rate": "ServiceClass.rate",
    "Project.spec.sloClasses.*=.deadline": "ServiceClass.deadline",
    "Accelerator.spec.throughput": "Accelerator.throughput",
    "acceleratorChoices[].throughput": "Slo.rates",
    "Workload.spec.slo.class": "Slo.service_class",
    "Workload.spec.slo.work": "Slo.rate",
    "Workload.spec.slo.deadline": "Slo.rate",
    "workloadSelector.sloClasses[]": "WorkloadSelector.slo_classes",
    "Workload.spec.slo.rate": "Slo.rate",
    "Workload.spec.slo.p99": "Slo.p99",
    "Workload.spec.slo.performance[].on": "Slo.rates",
    "Workload.spec.slo.performance[].rate": "Slo.rates",
    "Workload.spec.request": "Role.request",
    "request.gpus": "Request.gpus",
    "request.share.compute": "Share.compute",
    "request.share.memory": "Share.memory",
    "request.share.reference": "Share.compute",
    "request.mig": "Request.mig",
    "request.cpu": "Request.cpu",
    "request.memory": "Request.memory",
    "request.resources": "Request.resources",
    "Workload.spec.roles[].name": "Role.name",
    "Workload.spec.roles[].replicas": "Role.replicas",
    "Workload.spec.roles[].request": "Role.request",
    "Workload.spec.roles[].accelerators": "Role.accelerators",
    "acceleratorChoices[]": "Role.accelerators",
    "acceleratorChoices[].name": "Role.accelerators",
    "Workload.spec.roles[].value": "Role.value",
    "Workload.spec.roles[].observed": "Role.observed",
    "observed.compute": "Observed.compute",
    "observed.memory": "Observed.memory",
    "Workload.spec.accelerators": "Role.accelerators",
    "Workload.spec.mix": "Workload.mix",
    "Workload.spec.atomic": "Workload.atomic",
    "Workload.spec.minReplicas": "Workload.min_replicas",
    "Workload.spec.movable": "Workload.movable",
    "Workload.spec.preemptible": "Workload.preemptible",
    "Workload.spec.tolerations[]": "Workload.tolerations",
    "toleration.key": "Toleration.key",
    "toleration.operator": "Toleration.operator",
    "toleration.value": "Toleration.value",
    "toleration.effect": "Toleration.effect",
    "Workload.spec.checkpointEvery": "Workload.checkpoint_every",
    "Workload.spec.restart": "Workload.restart",
    "Workload.spec.value": "Role.value",
    "Workload.spec.observed": "Role.observed",
    "Workload.spec.isolation": "Workload.isolation",
    "Workload.spec.burstiness": "Share.peak",
    "Workload.spec.phases[]": "Spec.phases",
    "Workload.spec.replicas.min": "Role.least",
    "Workload.spec.replicas.max": "Role.replicas",
    "Workload.spec.replicas.step": "Role.step",
    "Workload.spec.roles[].replicas.min": "Role.least",
    "Workload.spec.roles[].replicas.max": "Role.replicas",
    "Workload.spec.roles[].replicas.step": "Role.step",
    "Workload.spec.replicas.values[]": "Role.worths",
    "Workload.spec.replicas.throughput[]": "Role.worths",
    "Workload.spec.roles[].replicas.values[]": "Role.worths",
    "Workload.spec.roles[].replicas.throughput[]": "Role.worths",
    "Workload.spec.communicates": "Workload.communicates",
    "Workload.spec.topology.within": "Topology.within",
    "Workload.spec.topology.prefer": "Topology.prefer",
    "Workload.spec.topology.acrossIslands": "Topology.across",
    "Workload.spec.topology.groups[].of": "Group.of",
    "Workload.spec.topology.groups[].roles.*": "Group.roles",
    "Workload.spec.topology.groups[].roles.*=": "Group.roles",
    "Workload.spec.topology.groups[].within": "Group.within",
    "Workload.spec.topology.groups[].minimum": "Group.minimum",
    "Policy.apiVersion": READING,
    "Policy.kind": READING,
    "Policy.metadata": "Policy.name",
    "Policy.spec.description": NOTE,
    "Policy.spec.match": "Policy.workloads",
    "match.workloads": "Policy.workloads",
    "workloadSelector.matchLabels": "WorkloadSelector.match_labels",
    "workloadSelector.matchExpressions": "WorkloadSelector.match_expressions",
    "matchExpressions[].key": "Requirement.key",
    "matchExpressions[].operator": "Requirement.operator",
    "matchExpressions[].values[]": "Requirement.values",
    "workloadSelector.tenants[]": "WorkloadSelector.tenants",
    "workloadSelector.namespaces[]": "WorkloadSelector.namespaces",
    "workloadSelector.names[]": "WorkloadSelector.names",
    "workloadSelector.types[]": "WorkloadSelector.types",
    "workloadSelector.accelerators[]": "WorkloadSelector.accelerators",
    "workloadSelector.priority.min": "WorkloadSelector.priority_min",
    "workloadSelector.priority.max": "WorkloadSelector.priority_max",
    "match.nodes": "Policy.nodes",
    "nodeSelector.matchLabels": "NodeSelector.match_labels",
    "nodeSelector.matchExpressions": "NodeSelector.match_expressions",
    "nodeMatchExpressions[].key": "Requirement.key",
    "nodeMatchExpressions[].operator": "Requirement.operator",
    "nodeMatchExpressions[].values[]": "Requirement.values",
    "nodeSelector.groups[]": "NodeSelector.groups",
    "nodeSelector.accelerators[]": "NodeSelector.accelerators",
    "nodeSelector.names[]": "NodeSelector.names",
    "nodeSelector.domains[]": "NodeSelector.domains",
    "Policy.spec.rule": "Policy.rule",
    "rule.separate": "Policy.rule",
    "rule separate.by": "Separate.by",
    "rule separate.label": "Separate.label",
    "rule separate.at": "Separate.at",
    "rule separate.unless": "Separate.unless",
    "rule.colocate": "Policy.rule",
    "rule colocate.by": "Colocate.by",
    "rule colocate.label": "Colocate.label",
    "rule colocate.at": "Colocate.at",
    "rule.spread": "Policy.rule",
    "rule spread.over": "Spread.over",
    "rule spread.maxPerDomain": "Spread.max_per_domain",
    "rule spread.maxSkew": "Spread.max_skew",
    "rule.exclusive": "Policy.rule",
    "rule exclusive.at": "Exclusive.at",
    "rule.require": "Policy.rule",
    "rule require": "Require",
    "rule.forbid": "Policy.rule",
    "rule forbid": "Forbid",
    "rule.sharing": "Policy.rule",
    "rule sharing.maxClients": "Sharing.max_clients",
    "rule sharing.modes[]": "Modes.modes",
    "rule sharing.oversubscribe.cpu": "Promises.ratios",
    "rule sharing.oversubscribe.memory": "Promises.ratios",
    "rule sharing.oversubscribe.compute": "Promises.ratios",
    "rule.quota": "Policy.rule",
    "rule quota.per": "Quota.per",
    "rule quota.label": "Quota.label",
    "rule quota.limit": "Quota.limits",
    "rule quota.guaranteed": "Quota.guaranteed",
    "rule quota.borrowing": "Quota.borrowing",
    "rule quota.lending": "Quota.lending",
    "rule quota.lends": "Quota.lends",
    "rule quota.cohort": "Quota.cohort",
    "rule quota.forCohort": "Quota.for_cohort",
    "amounts.gpus": "Quota.limits",
    "amounts.cpu": "Quota.limits",
    "amounts.memory": "Quota.limits",
    "amounts.resources": "Quota.limits",
    "amounts.dominantShare": "Quota.limits",
    "amounts.shape.replicas": "Quota.limits",
    "amounts.shape.request": "Quota.limits",
    "rule.reserve": "Policy.rule",
    "rule reserve.replicas": "Reserve.replicas",
    "rule reserve.request": "Reserve.request",
    "rule reserve.accelerators": "Reserve.accelerators",
    "rule reserve.within": "Reserve.within",
    "rule reserve.domains": "Reserve.domains",
    "rule reserve.of": "Reserve.of",
    "rule.survive": "Policy.rule",
    "rule survive.domains": "Survive.domains",
    "rule survive.of": "Survive.of",
    "rule survive.mayEvict": "Survive.may_evict",
    "rule.move": "Policy.rule",
    "rule move.maxMoves": "Move.max_moves",
    "rule move.never": "Move.never",
    "rule move.onlyIn[].days[]": "Move.only_in",
    "rule move.onlyIn[].from": "Move.only_in",
    "rule move.onlyIn[].until": "Move.only_in",
    "rule.admission": "Policy.rule",
    "rule admission.atLeast": "Admission.at_least",
    "rule admission.count": "Admission.count",
    "rule admission.per": "Admission.per",
    "rule admission.label": "Admission.label",
    "rule admission.orNone": "Admission.or_none",
    "Policy.spec.enforcement": "Policy.enforcement",
    "enforcement": "Enforcement.kind",
    "enforcement.soft.tier": "Enforcement.tier",
    "enforcement.soft.weight": "Enforcement.weight",
    "PolicyPack.apiVersion": READING,
    "PolicyPack.kind": READING,
    "PolicyPack.metadata": "Policy.origin",
    "PolicyPack.spec.version": NOTE,
    "PolicyPack.spec.description": NOTE,
    "PolicyPack.spec.policies[].name": "Policy.name",
    "PolicyPack.spec.policies[].description": NOTE,
    "PolicyPack.spec.policies[].match": "Policy.workloads",
    "PolicyPack.spec.policies[].rule": "Policy.rule",
    "PolicyPack.spec.policies[].enforcement": "Policy.enforcement",
    "Waiver.apiVersion": READING,
    "Waiver.kind": READING,
    "Waiver.metadata": "Waiver.name",
    "Waiver.spec.policy": "Waiver.policy",
    "Waiver.spec.match.workloads": "Waiver.workloads",
    "Waiver.spec.reason": "Waiver.reason",
    "Waiver.spec.owner": "Waiver.owner",
    "Waiver.spec.expires": "Waiver.expires",
    "Objective.apiVersion": READING,
    "Objective.kind": READING,
    "Objective.metadata": "Objective.name",
    "Objective.spec.bands[]": "Objective.bands",
    "Objective.spec.tiers[]": "Objective.tiers",
    "Objective.spec.tiers[].disruption[]": "Objective.disruption",
    "Objective.spec.futureMix[].request": "Expected.request",
    "Objective.spec.futureMix[].accelerators": "Expected.accelerators",
    "Objective.spec.futureMix[].weight": "Expected.weight",
    "Placement.apiVersion": READING,
    "Placement.kind": READING,
    "Placement.metadata": READING,
    "Placement.spec.placements.*": "PresentReplica.replica",
    "Placement.spec.placements.*=.node": "PresentReplica.node",
    "Placement.spec.placements.*=.gpus[]": "PresentReplica.gpus",
    "Placement.spec.placements.*=.instance": "PresentReplica.instance",
    "Placement.spec.gpus.*": "Current.gpus",
    "Placement.spec.gpus.*=.mode": "Current.gpus",
    "Placement.spec.gpus.*=.clients": "Current.settings",
    "Placement.spec.gpus.*=.instances[]": "Current.gpus",
    "Placement.spec.running.*": "Current.elapsed",
    "Placement.spec.running.*=.elapsed": "Current.elapsed",
    "Scenario.apiVersion": READING,
    "Scenario.kind": READING,
    "Scenario.metadata": SCENARIO,
    "Scenario.spec.description": NOTE,
    "Scenario.spec.patches[]": SCENARIO,
    "patch.add.group": SCENARIO,
    "patch.add.nodes": SCENARIO,
    "patch.fail.*": SCENARIO,
    "patch.fail.*=": SCENARIO,
    "patch.cordon.*": SCENARIO,
    "patch.cordon.*=": SCENARIO,
    "patch.scale.workload": SCENARIO,
    "patch.scale.role": SCENARIO,
    "patch.scale.replicas": SCENARIO,
    "patch.drop.workload": SCENARIO,
    "patch.drop.policy": SCENARIO,
    "patch.set": SCENARIO,
    "patch.repartition.nodes": SCENARIO,
    "patch.repartition.instances[]": SCENARIO,
    "patch.price.group": SCENARIO,
    "patch.price.perHour": SCENARIO,
    "patch.price.perGpuHour": SCENARIO,
    "inlineDocument.apiVersion": SCENARIO,
    "inlineDocument.kind": SCENARIO,
    "inlineDocument.metadata": SCENARIO,
    "inlineDocument.spec": SCENARIO,
    "Scenario.spec.expect[]": SCENARIO,
    "expectation.workload": SCENARIO,
    "expectation.admitted": SCENARIO,
    "expectation.replicas": SCENARIO,
    "expectation.summary": SCENARIO,
    "expectation.tier": SCENARIO,
    "expectation.status": SCENARIO,
    "expectation.conflict[]": SCENARIO,
    "expectation.policy": SCENARIO,
    "expectation.result": SCENARIO,
    "expectation.violation": SCENARIO,
    "expectation.subjects.*=": SCENARIO,
    "expectation.atMost": SCENARIO,
    "expectation.atLeast": SCENARIO,
    "expectation.equals": SCENARIO,
    "PolicyTest.apiVersion": READING,
    "PolicyTest.kind": READING,
    "PolicyTest.metadata": SCENARIO,
    "PolicyTest.spec.description": NOTE,
    "PolicyTest.spec.policies[]": SCENARIO,
    "PolicyTest.spec.given[]": SCENARIO,
    "PolicyTest.spec.documents[]": SCENARIO,
    "PolicyTest.spec.cases[].name": SCENARIO,
    "PolicyTest.spec.cases[].asOf": SCENARIO,
    "PolicyTest.spec.cases[].patches[]": SCENARIO,
    "PolicyTest.spec.cases[].placements": SCENARIO,
    "PolicyTest.spec.cases[].expect[]": SCENARIO,
    "placements.*": SCENARIO,
    "placements.*=.node": SCENARIO,
    "placements.*=.gpus[]": SCENARIO,
    "placements.*=.instance": SCENARIO,
}


class Walker:
    """Collects honoured leaves; what is marked as unsupported is left out with all below it."""

    def __init__(self) -> None:
        self._files: dict[str, Any] = {}
        self._seen: set[str] = set()

    def leaves(self, kind: str) -> Iterator[str]:
        """Yield the leaves of a kind that no earlier call has met."""
        yield from self._walk({"$ref": f"{kind.lower()}.schema.json"}, BASE, kind)

    def _walk(self, schema: dict[str, Any], base: str, path: str) -> Iterator[str]:
        if UNSUPPORTED in schema:
            return
        if "$ref" in schema:
            yield from self._follow(urljoin(base, schema["$ref"]), path)
            return
        if is_leaf(schema):
            yield path
        if isinstance(schema.get("propertyNames"), dict):
            yield f"{path}.*"
        for name, sub in schema.get("properties", {}).items():
            yield from self._walk(sub, base, f"{path}.{name}")
        if isinstance(schema.get("additionalProperties"), dict):
            yield from self._walk(schema["additionalProperties"], base, f"{path}.*=")
        if "items" in schema:
            yield from self._walk(schema["items"], base, f"{path}[]")

    def _follow(self, target: str, path: str) -> Iterator[str]:
        schema = self._lookup(target)
        name = shared_name(target, schema)
        if name is None:
            yield from self._walk(schema, target, path)
            return
        yield path
        if name not in self._seen:
            self._seen.add(name)
            yield from self._walk(schema, target, name)

    def _lookup(self, target: str) -> dict[str, Any]:
        file, _, pointer = target.removeprefix(BASE).partition("#")
        if file not in self._files:
            self._files[file] = json.loads((SCHEMAS / file).read_text(encoding="utf-8"))
        schema = self._files[file]
        for part in pointer.split("/")[1:]:
            schema = schema[part]
        assert isinstance(schema, dict)
        return schema


def has_parts(schema: dict[str, Any]) -> bool:
    if schema.get("properties") or "items" in schema:
        return True
    return isinstance(schema.get("additionalProperties"), dict)


def is_leaf(schema: dict[str, Any]) -> bool:
    """Return whether a value can be plain: it has no parts, or may be written as a word or number instead."""
    types = schema.get("type", [])
    kinds = {types} if isinstance(types, str) else set(types)
    return not has_parts(schema) or bool(kinds - {"object", "array"})


def shared_name(target: str, schema: dict[str, Any]) -> str | None:
    """Return the name that leaves below a shared definition go by; None for a plain value or a whole document."""
    file, _, pointer = target.removeprefix(BASE).partition("#")
    if file.startswith("rules/") and not pointer:
        return f"rule {schema['title'].removeprefix('Rule ')}"
    return pointer.rpartition("/")[2] if pointer and has_parts(schema) else None


def honoured() -> list[str]:
    walker = Walker()
    return [leaf for kind in READ for leaf in walker.leaves(kind)]


def test_every_honoured_leaf_has_a_destination() -> None:
    assert sorted(set(honoured()) - set(REACHES)) == []


def test_every_destination_belongs_to_an_honoured_leaf() -> None:
    assert sorted(set(REACHES) - set(honoured())) == []


@pytest.mark.parametrize("destination", sorted(set(REACHES.values()) - {READING, NOTE, SCENARIO, REFUSED}))
def test_every_destination_is_an_attribute_of_the_spec(destination: str) -> None:
    owner, _, attribute = destination.partition(".")
    modules = [importlib.import_module(name) for name in ("dovetail.spec", "dovetail.rules", "dovetail.mig")]
    found = next((getattr(module, owner) for module in modules if hasattr(module, owner)), None)
    assert found is not None, owner
    assert not attribute or attribute in {field.name for field in dataclasses.fields(found)}


EVERY_LEAF = (Path(__file__).parent / "support" / "every_leaf.yaml").read_text(encoding="utf-8")


def spec_with(old: str, new: str) -> Spec:
    """Return the Spec of the project that uses every leaf, with one text in it changed."""
    assert EVERY_LEAF.count(old) == 1, f"{old!r} does not stand there exactly once"
    found = load_text(EVERY_LEAF.replace(old, new), "every_leaf.yaml")
    return build(DocumentSet(tuple(found), Path()), as_of=dt.date(2026, 6, 1))


@pytest.fixture(scope="module")
def unchanged() -> Spec:
    return spec_with("name: project-one", "name: project-one")


def test_every_leaf_has_a_change_that_shows_where_it_goes() -> None:
    wanted = {leaf for leaf, destination in REACHES.items() if destination not in (READING, SCENARIO)}
    shown = [*CHANGES, *NOTES, *REFUSALS]
    assert sorted(shown) == sorted(wanted - {"Scenario.spec.description", "PolicyTest.spec.description"})


@pytest.mark.parametrize("leaf", CHANGES)
def test_a_change_of_a_leaf_reaches_the_spec(leaf: str, unchanged: Spec) -> None:
    assert spec_with(*CHANGES[leaf]) != unchanged


@pytest.mark.parametrize("leaf", NOTES)
def test_a_change_of_a_note_does_not(leaf: str, unchanged: Spec) -> None:
    assert REACHES[leaf] == NOTE
    assert spec_with(*NOTES[leaf]) == unchanged


@pytest.mark.parametrize("leaf", REFUSALS)
def test_a_leaf_with_one_meaning_refuses_others(leaf: str) -> None:
    old, new, code = REFUSALS[leaf]
    with pytest.raises(Refused) as refused:
        spec_with(old, new)
    assert [fault.code for fault in refused.value.faults] == [code]
