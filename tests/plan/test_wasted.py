"""What the layouts of a plan waste is told with a swap where a swap could be made."""

from __future__ import annotations

import pytest
from tests.build.text import cluster, spec_of, workload

from dovetail.engine import solve
from dovetail.plan.wasted import wasted_by_gpu

A_SWAP = "1 compute slice that no instance can use; 3g.20gb@0 -> 4g.20gb would use it"


@pytest.mark.parametrize(("strategy", "told"), [("mixed", A_SWAP), ("single", A_SWAP.partition(";")[0])])
def test_two_halves_leave_a_slice_which_another_profile_would_use(strategy: str, told: str) -> None:
    node = cluster(f"{{name: g, count: 1, accelerator: A100-40GB, gpus: 1, migStrategy: {strategy}}}")
    spec = spec_of(node, workload("type: job\nreplicas: 2\nrequest: {mig: 3g.20gb}"))
    ((gpu, (waste,)),) = wasted_by_gpu(spec, solve(spec))
    assert (gpu, str(waste)) == ("g-000/0", told)
