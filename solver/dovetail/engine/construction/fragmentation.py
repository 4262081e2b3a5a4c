"""The fragmentation gradient: how much idle GPU a placement makes useless for the expected work.

Source: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC
2023), in the closed form that is separable over the GPUs of a node,

    F_n(M) = R - sum_j r_j T[t, C, r_j] - 1000 f U[t, C, f]

with R the idle milli-GPU of a node, r_j those of GPU j, f its untouched GPUs, C its free CPU, t its accelerator; T is
the popularity of the request classes for one GPU that fit r_j and C, U of those for several GPUs that fit f and C.
Popularity is conditioned on classes with GPUs. It is counted in replicas rather than divided by their total, so that
all is integers, and no order of adding up changes a comparison.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.objectives.fragmentation import fragmentation_of
from dovetail.problem import Problem
from dovetail.spec import Expected
from dovetail.spec.workload import MILLI

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Gradient:
    """Step tables over the classes that a plan is judged by (S5.5), else over the GPU shapes of a Problem.

    `wasted[t, C, r]` is what a GPU with r idle thousandths adds to F, `useful[t, C, f]` what f untouched GPUs take
    off it, both times `total`, the replicas counted; C is a step of free CPU (`steps_of`), t a model (`model_of`).
    """

    def __init__(self, problem: Problem) -> None:
        expected = _expected(problem)
        models = sorted({node.accelerator or "" for node in problem.nodes})
        number = {name: index for index, name in enumerate(models)}
        most = max([node.gpus for node in problem.nodes], default=0)
        self.model_of = np.array([number[node.accelerator or ""] for node in problem.nodes], dtype=np.int64)
        self.total = sum(each.weight for each in expected) or 1
        self._steps = np.array(sorted({0, *(each.request.cpu for each in expected)}), dtype=np.int64)
        one = np.zeros((len(models), len(self._steps), MILLI + 1), dtype=np.int64)
        many = np.zeros((len(models), len(self._steps), most + 1), dtype=np.int64)
        for each in expected:
            request = each.request
            accepted = [i for i, name in enumerate(models) if not each.accelerators or name in each.accelerators]
            step = int(np.searchsorted(self._steps, request.cpu))
            if request.gpu_count == 1:
                for model in accepted:
                    one[model, step, min(MILLI, request.on(models[model]).gpu_milli)] += each.weight
            elif request.gpu_count <= most:
                many[accepted, step, request.gpu_count] += each.weight
        popular = one.cumsum(axis=1).cumsum(axis=2)
        self.wasted = np.arange(MILLI + 1) * (self.total - popular)
        self.useful = MILLI * np.arange(most + 1) * many.cumsum(axis=1).cumsum(axis=2)

    def steps_of(self, cpu: Ints) -> Ints:
        """Return the step of each amount of free CPU, none of it negative."""
        return np.asarray(np.searchsorted(self._steps, cpu, side="right") - 1)

    def lowest(self) -> list[int]:
        """Return the least free CPU of each step, ascending."""
        return [int(step) for step in self._steps]

    def amounts(self, models: Ints, cpu: Ints, gpus: Ints) -> Ints:
        """Return F for rows of nodes; `gpus` holds free milli-GPU per GPU, shape (rows, most GPUs of a node)."""
        step = self.steps_of(cpu)
        untouched = (gpus == MILLI).sum(axis=1)
        wasted = self.wasted[models[:, None], step[:, None], np.maximum(gpus, 0)].sum(axis=1)
        return np.asarray(wasted - self.useful[models, step, untouched])


def _expected(problem: Problem) -> tuple[Expected, ...]:
    """Return what idle GPU is to be good for: what a tier says, else what the project asks for."""
    tier = fragmentation_of(problem.tiers)
    if tier is not None:
        return tier.judge.expected
    asking = (shape for shape in problem.shapes if shape.request.gpu_count)
    return tuple(Expected(shape.request, tuple(shape.role.accelerators), shape.demand) for shape in asking)
