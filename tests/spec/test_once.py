"""What is worked out once for a Spec is asked anew for another one, and gone with it."""

from __future__ import annotations

import gc
from dataclasses import replace
from weakref import ref

from tests.support.specs import make_spec, node, place, workload

from dovetail.placement.today import judge
from dovetail.spec import Spec
from dovetail.spec.once import once


def running() -> Spec:
    return make_spec([node("a", 2)], [workload("w", 1, gpus=1)], running={"w#0": place("a", 0)})


def test_a_spec_is_asked_once_and_an_equal_one_for_itself() -> None:
    asked: list[str] = []

    @once
    def name_of(spec: Spec) -> list[str]:
        """Return the name."""
        asked.append(spec.name)
        return [spec.name]

    first, equal = running(), running()
    assert name_of(first) is name_of(first)
    assert name_of(equal) is not name_of(first)
    assert asked == ["test", "test"]
    assert name_of.__doc__ == "Return the name."


def test_what_it_came_to_goes_with_the_spec() -> None:
    class Value:
        pass

    value_of = once(lambda spec: Value())
    for _ in range(50):  # an identity may be given to the next one
        spec = running()
        value = ref(value_of(spec))
        assert value() is not None
        del spec
        gc.collect()
        assert value() is None


def test_today_is_judged_anew_where_a_node_has_failed() -> None:
    spec = running()
    nodes = tuple(replace(each, down=True) for each in spec.cluster.nodes)
    assert judge(spec) is judge(spec)
    assert not judge(spec).lost
    assert judge(replace(spec, cluster=replace(spec.cluster, nodes=nodes))).lost
