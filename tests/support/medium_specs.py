"""Medium random Specs from a seed: too large for brute force, small enough that the exact engine closes most of them.

`medium(seed)` gives the same Spec wherever it runs: 6 to 14 nodes in a few racks, 10 to 25 workloads that ask for
more than there is, every rule in turn as the theme and up to three more, and often work that runs today.
"""

from __future__ import annotations

from random import Random

from tests.support import tiny_specs as tiny
from tests.support.specs import make_spec

from dovetail.spec import Spec


def medium(seed: int) -> Spec:
    """Return the medium Spec of a seed."""
    rng = Random(f"medium {seed}")
    theme = tiny.RULE_THEMES[seed % len(tiny.RULE_THEMES)]
    levels = rng.choice((("rack", "node"), ("zone", "rack", "node")))
    roomy = rng.random() < 0.6
    nodes = [tiny._node(rng, f"n{index:02}", theme, roomy) for index in range(rng.randint(6, 14))]
    workloads = [tiny._workload(rng, f"w{index:02}", theme, roomy) for index in range(rng.randint(10, 24))]
    workloads += tiny._twins(rng, workloads)
    running = {}
    if theme == "move" or rng.random() < 0.4:
        running = tiny._running(rng, nodes, workloads, theme)
        nodes = [tiny._struck(rng, node) for node in nodes]
        workloads = [tiny._grown(rng, workload) for workload in workloads]
    kinds = [theme, *rng.sample(tiny.RULE_THEMES, rng.randint(0, 3))]
    policies = [tiny._policy(rng, f"p{i}", kind, levels, nodes, workloads) for i, kind in enumerate(kinds)]
    waivers, as_of = tiny._waivers(rng, policies)
    return make_spec(
        nodes,
        workloads,
        policies,
        waivers=waivers,
        objective=tiny._objective(rng),
        running=running,
        elapsed={w.id: rng.choice((0, tiny.HOUR, 90_500)) for w in workloads if rng.random() < 0.6},
        levels=levels,
        as_of=as_of,
    )
