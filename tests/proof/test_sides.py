"""What a node is as a whole: GPUs that are shared by one number of clients, or cut into one profile (S3.3, S3.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from tests.oracle.brute import brute
from tests.support.bounds import bound_by_kinds
from tests.support.mig_specs import card, mig_request
from tests.support.specs import make_spec, node, place, policy, role, workload

from dovetail.engine.contents.knapsack import Knapsack
from dovetail.engine.contents.patterns import counts_of
from dovetail.engine.contents.width import WIDE
from dovetail.problem import compile_problem
from dovetail.proof.kinds import kinds_of
from dovetail.rules import context_of
from dovetail.rules.modes import Modes
from dovetail.rules.strategy import strategy_of
from dovetail.spec import EqualParts, Node, Policy, Request, Share, Spec, Workload
from dovetail.spec.cluster import Mechanism
from dovetail.spec.policy import WorkloadSelector

PRODUCT = "A100-80GB"
ANY, TURNS, MPS = EqualParts(), EqualParts(mps=0), EqualParts(time_slicing=0)
BLUE = WorkloadSelector(namespaces=("blue",))


def desk(gpus: int = 2, mechanism: Mechanism = "devicePlugin", sharing: EqualParts = ANY) -> Node:
    return node("n", gpus, mechanism=mechanism, sharing=sharing)


def halves_and_quarters(gpus: int = 2) -> list[Workload]:
    """Return shares of two sizes, as many of either as there could be alone."""
    return [workload("half", 2 * gpus, share=500), workload("quarter", 4 * gpus, share=250)]


def sides(spec: Spec) -> set[tuple[frozenset[str], tuple[int, ...]]]:
    """Return of each side who may be there, and among how many clients of a GPU."""
    problem = compile_problem(context_of(spec))
    (kind,) = kinds_of(problem, {})
    return {
        (
            frozenset(problem.shapes[s].workload.name for s in side.shapes),
            tuple(sorted(one.parts for one in side.cards)),
        )
        for side in kind.sides
    }


def optimum_of(spec: Spec) -> int:
    found = brute(spec)
    assert found is not None
    return found.by_name["admitted[0]"]


def priced(spec: Spec, prices: Mapping[str, float]) -> dict[str, int]:
    """Return the best content found for a node, over all its sides."""
    problem = compile_problem(context_of(spec))
    (kind,) = kinds_of(problem, {})
    worth = {shape.index: prices[shape.workload.name] for shape in problem.shapes}
    found = [Knapsack(problem, kind, side).price(worth, width=WIDE)[:1] for side in kind.sides]
    _, best = max(each for own in found for each in own)
    return {problem.shapes[s].workload.name: count for s, count in counts_of(best).items()}


def test_all_gpus_of_a_device_plugin_have_one_number_of_clients() -> None:
    work = [*halves_and_quarters(), workload("whole", 2, gpus=1)]
    nobody = frozenset({"half", "quarter", "whole"}), (1,)
    both, few = frozenset({"half", "quarter"}), frozenset({"quarter"})
    assert sides(make_spec([desk()], work)) == {nobody, (both, (2,)), (few, (4,))}


def test_each_gpu_of_dra_has_its_own() -> None:
    work = [*halves_and_quarters(), workload("whole", 2, gpus=1)]
    everybody = frozenset({"half", "quarter", "whole"})
    assert sides(make_spec([desk(mechanism="dra")], work)) == {(everybody, (2, 4))}


def test_a_fixed_number_of_parts_is_the_only_one() -> None:
    both = frozenset({"half", "quarter"})
    assert sides(make_spec([desk(sharing=EqualParts(parts=2))], halves_and_quarters())) == {
        (both, (1,)),
        (both, (2,)),
    }


@pytest.mark.parametrize("offered", [ANY, TURNS, MPS])
def test_a_closed_mode_is_none_that_a_node_may_be_in(offered: EqualParts) -> None:
    work = [workload("blue/a", 2, share=250), workload("red/b", 2, share=250)]
    turns = policy("no-turns", Modes(modes=("whole", "mig", "mps")), workloads=BLUE)
    several = {names for names, parts in sides(make_spec([desk(sharing=offered)], work, [turns])) if parts != (1,)}
    together = frozenset({"a", "b"})
    assert several == ({frozenset({"b"})} if offered == TURNS else {together})


@pytest.mark.parametrize(("mechanism", "most"), [("devicePlugin", 1600), ("dra", 1900), ("fraction", 1900)])
def test_the_bound_is_what_a_node_can_hold(mechanism: Mechanism, most: int) -> None:
    """Two halves and three quarters have the cores for it; beside halves no GPU has more than two clients."""
    half, quarter = Request(cpu=2000, memory=1, share=Share(500)), Request(cpu=4000, memory=1, share=Share(250))
    work = [
        workload("half", roles=[role("", 2, half, value=500)]),
        workload("quarter", roles=[role("", 4, quarter, value=300)]),
    ]
    sharing = None if mechanism == "fraction" else EqualParts()
    spec = make_spec([node("n", 2, cpu=16_000, mechanism=mechanism, sharing=sharing)], work)
    assert bound_by_kinds(spec)[0] == optimum_of(spec) == most


def test_the_bound_tells_what_it_knows_of_modes() -> None:
    turns = policy("no-turns", Modes(modes=("whole", "mps")), workloads=BLUE)
    work = [workload("blue/a", 8, share=250), workload("red/b", 8, share=500)]
    spec = make_spec([desk()], work, [turns])
    value, relaxed = bound_by_kinds(spec)
    assert value == optimum_of(spec)
    assert relaxed == ("cpu, memory and resources of single nodes",)


def test_a_soft_policy_about_modes_is_forgotten_and_named() -> None:
    turns = policy("no-turns", Modes(modes=("whole", "mps")), workloads=BLUE, enforcement=3)
    _, relaxed = bound_by_kinds(make_spec([desk()], [workload("blue/a", 8, share=250)], [turns]))
    assert relaxed == ("cpu, memory and resources of single nodes", "no-turns")


def test_a_mode_that_today_excuses_stays_open() -> None:
    """One of two clients runs where only turns are offered; a policy is against that, and lets it go on."""
    turns = policy("no-turns", Modes(modes=("whole",)), workloads=BLUE)
    work = [workload("blue/a", 2, share=500)]
    where = {"blue/a#0": place("n", 0), "blue/a#1": place("n", 0)}
    spec = make_spec([desk(1, sharing=TURNS)], work, [turns], running=where)
    value, relaxed = bound_by_kinds(spec)
    assert value == 1000
    assert "no-turns" in relaxed


def of_one_profile(work: Iterable[Workload], strategy: str = "single") -> Spec:
    """Return a GPU that may be cut, on a node of a strategy."""
    there = node("n", 1, accelerator=PRODUCT, mig_strategy=strategy)
    rules: list[Policy] = [rule] if (rule := strategy_of([there])) is not None else []
    return replace(make_spec([there], work, rules), accelerators={PRODUCT: card(PRODUCT)})


def slices() -> list[Workload]:
    """Return instances of two sizes, of which a GPU holds seven or three, or one and three."""
    small, large = mig_request(PRODUCT, "1g.10gb"), mig_request(PRODUCT, "2g.20gb")
    return [
        workload("small", roles=[role("", 7, small, value=100)]),
        workload("large", roles=[role("", 3, large, value=250)]),
    ]


def test_a_node_of_one_profile_is_cut_into_that_or_not_at_all() -> None:
    work = [*slices(), workload("whole", gpus=1)]
    found = {names for names, _ in sides(of_one_profile(work))}
    assert found == {frozenset({"whole"}), frozenset({"small"}), frozenset({"large"})}
    assert {names for names, _ in sides(of_one_profile(work, "mixed"))} == {frozenset({"whole", "small", "large"})}


def test_the_bound_knows_that_a_node_has_one_profile() -> None:
    value, relaxed = bound_by_kinds(of_one_profile(slices()))
    assert value == optimum_of(of_one_profile(slices())) == 750
    assert "mig-strategy" not in relaxed
    assert (
        bound_by_kinds(of_one_profile(slices(), "mixed"))[0] == optimum_of(of_one_profile(slices(), "mixed")) == 850
    )


def test_a_node_is_filled_as_it_can_be_set() -> None:
    spec = make_spec([desk()], halves_and_quarters())
    assert priced(spec, {"half": 2.0, "quarter": 1.1}) == {"quarter": 8}
    assert priced(spec, {"half": 2.0, "quarter": 0.9}) == {"half": 4}
    assert priced(of_one_profile(slices()), {"small": 1.0, "large": 2.0}) == {"small": 7}
    assert priced(of_one_profile(slices()), {"small": 1.0, "large": 2.5}) == {"large": 3}
