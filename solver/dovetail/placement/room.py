"""What one node still has to give, kept exactly (S3.1, S3.5, S3.6)."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.spec import Accelerator, Node, Request
from dovetail.spec.workload import MILLI


def share_memory(request: Request, card: int) -> int:
    """Return the GPU memory a share takes, in thousandths of a MiB, on a card of `card` MiB.

    A share without a memory figure takes the same fraction of the card (S2.2), which need not be whole MiB;
    thousandths keep it exact.
    """
    if request.share is None:
        return 0
    if request.share.memory is None:
        return request.share.compute * card
    return MILLI * request.share.memory


class Room:
    """Free capacity of a node; `compute` in milli-GPU and `vram` in thousandths of a MiB, per GPU index.

    Failed GPUs have no room. A GPU is `untouched` while nothing is on it, which a whole-GPU replica needs (S3.1).
    """

    __slots__ = ("card", "compute", "cpu", "memory", "node", "resources", "tenants", "vram")

    def __init__(self, node: Node, accelerators: Mapping[str, Accelerator]) -> None:
        self.node = node
        self.card = accelerators[node.accelerator].memory if node.accelerator else 0
        self.cpu = node.cpu
        self.memory = node.memory
        self.resources = dict(node.resources)
        self.compute = [0] * node.gpus
        self.vram = [0] * node.gpus
        for index in node.healthy_gpus():
            self.compute[index], self.vram[index] = MILLI, MILLI * self.card
        self.tenants = [0] * node.gpus

    def lacks(self, request: Request, gpus: tuple[int, ...]) -> str | None:
        """Return what is missing for a request on given GPU indices, None where it fits."""
        if request.cpu > self.cpu:
            return "cpu"
        if request.memory > self.memory:
            return "memory"
        for name, amount in request.resources.items():
            if amount > self.resources.get(name, 0):
                return name
        if len(gpus) != request.gpu_count or len(set(gpus)) != len(gpus):
            return "gpu count"
        return next((f"gpu {index}" for index in gpus if not self._gpu_fits(request, index)), None)

    def _gpu_fits(self, request: Request, index: int) -> bool:
        if not 0 <= index < len(self.compute):
            return False
        if request.share is None:
            return self.compute[index] == MILLI and not self.tenants[index]
        return request.share.compute <= self.compute[index] and (share_memory(request, self.card) <= self.vram[index])

    def take(self, request: Request, gpus: tuple[int, ...]) -> None:
        """Take a request's amounts; the caller has asked `lacks` first."""
        self._change(request, gpus, 1)

    def give(self, request: Request, gpus: tuple[int, ...]) -> None:
        """Give a request's amounts back."""
        self._change(request, gpus, -1)

    def _change(self, request: Request, gpus: tuple[int, ...], sign: int) -> None:
        self.cpu -= sign * request.cpu
        self.memory -= sign * request.memory
        for name, amount in request.resources.items():
            self.resources[name] = self.resources.get(name, 0) - sign * amount
        compute = sign * (request.share.compute if request.share else MILLI)
        vram = sign * (share_memory(request, self.card) if request.share else MILLI * self.card)
        for index in gpus:
            self.compute[index] -= compute
            self.vram[index] -= vram
            self.tenants[index] += sign
