"""The fragmentation gradient: how much idle GPU a placement makes useless for the expected work.

Source: "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC
2023), in the closed form that is separable over the GPUs of a node,

    F_n(M) = R - sum_j r_j T[t, C, r_j] - 1000 f U[t, C, f]

with R the idle milli-GPU of a node, r_j those of GPU j, f its untouched GPUs, C its free CPU, t its accelerator; T is
the popularity of the request classes for one GPU that fit r_j and C, U of those for several GPUs that fit f and C.
Popularity is conditioned on classes with GPUs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.problem import Problem
from dovetail.spec.workload import MILLI

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Gradient:
    """Step tables of T and U over the GPU shapes of a Problem, weighted by demand."""

    def __init__(self, problem: Problem) -> None:
        shapes = [shape for shape in problem.shapes if shape.request.gpu_count]
        models = sorted({node.accelerator or "" for node in problem.nodes})
        most = max([node.gpus for node in problem.nodes], default=0)
        self.model_of = np.array([models.index(node.accelerator or "") for node in problem.nodes], dtype=np.int64)
        self._steps = np.array(sorted({0, *(shape.request.cpu for shape in shapes)}), dtype=np.int64)
        self._one = np.zeros((len(models), len(self._steps), MILLI + 1))
        self._many = np.zeros((len(models), len(self._steps), most + 1))
        total = sum(shape.demand for shape in shapes) or 1
        for shape in shapes:
            request = shape.request
            accepted = [
                i for i, name in enumerate(models) if not shape.role.accelerators or name in shape.role.accelerators
            ]
            step = int(np.searchsorted(self._steps, request.cpu))
            weight = shape.demand / total
            if request.gpu_count == 1:
                self._one[accepted, step:, request.gpu_milli :] += weight
            elif request.gpu_count <= most:
                self._many[accepted, step:, request.gpu_count :] += weight

    def amount(self, models: Ints, cpu: Ints, gpus: Ints) -> Floats:
        """Return F for rows of nodes; `gpus` holds free milli-GPU per GPU, shape (rows, most GPUs of a node)."""
        step = np.searchsorted(self._steps, cpu, side="right") - 1
        free = np.maximum(gpus, 0)
        untouched = (gpus == MILLI).sum(axis=1)
        fitting = self._one[models[:, None], step[:, None], free]
        usable = (free * fitting).sum(axis=1) + MILLI * untouched * self._many[models, step, untouched]
        return np.asarray(free.sum(axis=1) - usable, dtype=np.float64)
