"""Why GPUs are shared in a mode is told as the places and today's state have it."""

from __future__ import annotations

from dataclasses import replace

from tests.support.specs import make_spec, node, place, request, role, workload

from dovetail.engine import solve
from dovetail.spec import EqualParts, Setting, Share, Spec
from dovetail.whynot import Shared, modes_of


def one_gpu(*, today: Setting | None = None) -> Spec:
    asked = replace(request(), share=Share(250, barred=("time-slice",)))
    spec = make_spec(
        [node("n", 1, mechanism="devicePlugin", sharing=EqualParts())],
        [workload("safe", 1, roles=[role("", 1, asked)]), workload("note", 2, share=200)],
        running={} if today is None else {"note#0": place("n", 0)},
    )
    return spec if today is None else replace(spec, current=replace(spec.current, settings={"n/0": today}))


def told(spec: Spec) -> list[Shared]:
    return list(modes_of(spec, solve(spec), spec.cluster.nodes[0]))


def test_the_fullest_gpu_and_what_rules_out_a_mode() -> None:
    why = ("gpu 0 has 3 clients", "time-slice does not do for safe")
    assert told(one_gpu()) == [Shared((0,), Setting("mps", 3), why)]


def test_what_stays_as_it_is() -> None:
    why = ("as today, which is enough", "time-slice does not do for safe")
    assert told(one_gpu(today=Setting("mps", 4))) == [Shared((0,), Setting("mps", 4), why)]
