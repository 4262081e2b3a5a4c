"""A new rule is a file, a line in the table of rules, a reader and a schema; nothing else asks which rule it has."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, get_type_hints

import pytest
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, policy, workload

from dovetail.build.rules import READERS
from dovetail.diff import diff, since_today
from dovetail.engine import solve
from dovetail.engine.second_opinion import second_opinion
from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.plan import read, write
from dovetail.rules import TABLE, Guard, Part, Rule, Scope, Violations, context_of
from dovetail.rules.base import RuleDefaults
from dovetail.rules.guards import CapGuard
from dovetail.spec import Node, Role, Spec, Workload
from dovetail.verify import verify

ROOT = Path(__file__).resolve().parents[1]
KNOW_RULES = {
    "build/rules.py": "reads their parameters",
    "plan/options.py": "makes `move` policies of the command line's limits",
    "whynot/here.py": "makes `forbid` policies to plan work off where it is",
}


@dataclass(frozen=True, slots=True)
class Few(RuleDefaults):
    """Admit at most `most` replicas on each matched node; the violation of a node is what is above."""

    kind: ClassVar[str] = "few"
    unit: ClassVar[str] = "replicas too many"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    most: int

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        return {
            domain.path: part.model.positive_part(part.count(scope.workloads, domain, scope.nodes).plus(-self.most))
            for domain in part.domains("node")
        }

    def check(self, view: View, scope: Scope) -> Violations:
        held = view.tenants_of_domains("node", scope.workloads, scope.nodes)
        return {path: who.total() - self.most for path, who in held.items() if who.total() > self.most}

    def guard(self, scope: Scope) -> Guard | None:
        ids = scope.ids

        def amounts(workload: Workload, role: Role, node: Node) -> Mapping[Hashable, int]:
            return {node.name: 1} if workload.id in ids else {}

        return CapGuard(amounts, lambda key: self.most)

    def closed_nodes(self, scope: Scope) -> frozenset[str]:
        return frozenset()

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        return None

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        return scope.nodes is None or node.name in scope.nodes

    def unsound(self, spec: Spec) -> str | None:
        return None


def few(*, hard: bool = True) -> Spec:
    return make_spec(
        [node("a", 4), node("b", 4)],
        [workload("w", 6, gpus=1)],
        [policy("few", Few(2), enforcement="hard" if hard else 3)],
        running={"w#0": place("a", 0), "w#1": place("a", 1)},
    )


def test_a_rule_that_nobody_knows_is_planned_verified_and_compared() -> None:
    spec = few()
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert verify(spec, plan).ok
    assert {name: (result.result, result.violation) for name, result in plan.policies.items()} == {"few": ("pass", 0)}
    assert (len(plan.placements), plan.admitted["w"].reasons) == (4, ("DT4106",))
    assert second_opinion(context_of(spec), plan.tiers).agrees
    assert read(write(plan), "plan.yaml") == plan
    assert not diff(plan, plan, spec)
    assert [change.kind for change in since_today(plan, spec).changes] == ["resize"]


def test_it_weighs_what_is_soft() -> None:
    spec = few(hard=False)
    plan = solve(spec)
    assert verify(spec, plan).ok
    assert {tier.name: tier.value for tier in plan.tiers}["policies"] == 6


def test_it_is_broken_by_a_plan_that_breaks_it() -> None:
    spec = few()
    bad = plan_for(spec, solve(replace(spec, policies=())).placements)
    assert "hard-policies" in {check.name for check in verify(spec, bad).checks if not check.ok}


@pytest.mark.parametrize("kind", TABLE)
def test_a_rule_has_a_file_a_reader_a_schema_and_a_page(kind: str) -> None:
    rule = TABLE[kind]
    assert rule.kind == kind
    assert rule.__module__.startswith("dovetail.rules.")
    assert kind in READERS
    assert (ROOT / f"schemas/rules/{kind}.schema.json").is_file()
    assert (ROOT / f"docs/reference/rules/{kind}.md").is_file()


@pytest.mark.parametrize("kind", TABLE)
def test_a_rule_declares_all_that_the_protocol_asks(kind: str) -> None:
    asked = [*get_type_hints(Rule), *(name for name, item in vars(Rule).items() if callable(item) and name[0] != "_")]
    assert [name for name in asked if not hasattr(TABLE[kind], name)] == []


def test_no_other_module_asks_which_rule_it_has() -> None:
    names = {rule.__name__ for rule in TABLE.values()}
    found = []
    for path in sorted((ROOT / "solver/dovetail").rglob("*.py")):
        where = path.relative_to(ROOT / "solver/dovetail").as_posix()
        if where.startswith("rules/") or where in KNOW_RULES:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {alias.name for item in ast.walk(tree) if isinstance(item, ast.ImportFrom)
                    and (item.module or "").startswith("dovetail.rules") for alias in item.names}  # fmt: skip
        compared = [item for item in ast.walk(tree) if isinstance(item, ast.Compare) and _is_kind_of_rule(item.left)]
        found += [where] if imported & names or compared else []
    assert found == []


def _is_kind_of_rule(item: ast.expr) -> bool:
    """Tell whether an expression is `....rule.kind`."""
    return (
        isinstance(item, ast.Attribute)
        and item.attr == "kind"
        and isinstance(item.value, ast.Attribute)
        and item.value.attr == "rule"
    )
