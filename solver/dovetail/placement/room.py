"""What one node still has to give, kept exactly (S3.1, S3.5, S3.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dovetail.mig import Instance, beside, parse_instance
from dovetail.placement.clients import Crowd, Terms, equal_parts, terms_of
from dovetail.placement.instances import holds, share_memory
from dovetail.placement.layouts import layout_of
from dovetail.spec import Accelerator, Node, Request, Setting
from dovetail.spec.inside import holds as contains
from dovetail.spec.inside import mask_of
from dovetail.spec.workload import MILLI


class Room:
    """Free capacity of a node; `compute` in milli-GPU and `vram` in thousandths of a MiB, per GPU index.

    Failed GPUs have no room. A GPU is `untouched` while nothing is on it, which a whole-GPU replica needs (S3.1).
    `instances` are the MIG instances in use, per GPU index; others beside them may be made at will. `crowd` knows the
    clients of GPUs that are shared by equal parts, None where GPUs are shared by fractions.
    """

    __slots__ = (
        "_asked",
        "_beside",
        "_offers",
        "card",
        "compute",
        "cpu",
        "crowd",
        "geometry",
        "instances",
        "memory",
        "node",
        "resources",
        "tenants",
        "vram",
    )

    def __init__(
        self, node: Node, accelerators: Mapping[str, Accelerator], told: Mapping[int, Setting] | None = None
    ) -> None:
        self.node = node
        running = told is not None
        self.crowd = Crowd(node, told, lenient=running) if node.gpus and equal_parts(node) else None
        self.card = accelerators[node.accelerator].memory if node.accelerator else 0
        self.geometry = accelerators[node.accelerator].mig if node.accelerator else None
        self.instances: dict[int, list[Instance]] = {}
        self.cpu = node.cpu
        self.memory = node.memory
        self.resources = dict(node.resources)
        self.compute = [0] * node.gpus
        self.vram = [0] * node.gpus
        for index in node.healthy_gpus():
            self.compute[index], self.vram[index] = MILLI, MILLI * self.card
        self.tenants = [0] * node.gpus
        # The last request whose terms were asked for, and these.
        self._asked: tuple[Request | None, Terms | None] = (None, None)
        self._beside: dict[int, frozenset[str]] = {}  # see `profiles_beside`
        self._offers: frozenset[str] | None = None  # see `offers`

    def close(self, index: int) -> None:
        """Leave nothing of a GPU to anybody."""
        self.compute[index] = self.vram[index] = 0
        self.tenants[index] += 1
        self._beside.pop(index, None)
        self._offers = None

    def lacks(
        self, request: Request, gpus: tuple[int, ...], instance: str = "", *, running: bool = False
    ) -> str | None:
        """Return what is missing for a request on given GPU indices, None where it fits.

        What is `running` already may stay on GPUs that no island or socket has together.
        """
        if request.cpu > self.cpu:
            return "cpu"
        if request.memory > self.memory:
            return "memory"
        for name, amount in request.resources.items():
            if amount > self.resources.get(name, 0):
                return name
        if len(gpus) != request.gpu_count or len(set(gpus)) != len(gpus):
            return "gpu count"
        if instance:
            fits = request.partial and self.holds_instance(request, gpus[0], parse_instance(instance))
            return None if fits else f"instance {instance}"
        if not running and not self.together(request, gpus):
            return "gpus of one island or socket"
        return next((f"gpu {index}" for index in gpus if not self.gpu_fits(request, index)), None)

    def together(self, request: Request, gpus: tuple[int, ...]) -> bool:
        """Tell whether some GPUs lie in one domain of each level inside the node that a request demands (S2.5)."""
        mask = mask_of(gpus)
        return any(contains(block, mask) for block in self.node.blocks(request.inside))

    def choices(self, request: Request) -> list[list[int]]:
        """Return the untouched GPUs that could serve a request for whole ones, per block that has enough of them.

        Those with least to spare come first.
        """
        free = [i for i, left in enumerate(self.compute) if left == MILLI and self.gpu_fits(request, i)]
        if not (self.node.islands or self.node.sockets):
            return [free] if len(free) >= request.gpus else []
        blocks = ([i for i in free if mask >> i & 1] for mask in self.node.blocks(request.inside))
        return sorted((block for block in blocks if len(block) >= request.gpus), key=len)

    def choose(self, request: Request) -> tuple[int, ...] | None:
        """Return untouched GPUs for a request for whole ones, None where there are too few together."""
        found = self.choices(request)
        return tuple(found[0][: request.gpus]) if found else None

    def gpu_fits(self, request: Request, index: int) -> bool:
        """Tell whether a GPU could serve a request without MIG, or be one of the several that it asks for."""
        if not 0 <= index < len(self.compute) or self.instances.get(index) or request.mig:
            return False
        if request.share is None:
            free = self.compute[index] == MILLI and not self.tenants[index]
            return free and (self.crowd is None or self.crowd.admits_whole(index))
        if self.crowd is not None:
            return self._takes_client(self.crowd, request, index)
        return self._takes_share(request.on(self.node.accelerator), index)

    def _takes_share(self, request: Request, index: int) -> bool:
        share = request.share
        return (
            share is not None
            and self.node.mechanism == "fraction"
            and share.takes_fraction(self.node.accelerator)
            and share.compute <= self.compute[index]
            and share_memory(request, self.card) <= self.vram[index]
        )

    def _takes_client(self, crowd: Crowd, request: Request, index: int) -> bool:
        terms = self._terms(request)
        if terms is None or index in self.node.failed_gpus or self.node.down:
            return False
        return crowd.clients(index) == self.tenants[index] and crowd.admits(terms, index)

    def _terms(self, request: Request) -> Terms | None:
        """Return on what terms a share may be on GPUs that are not cut; most are asked for GPU by GPU."""
        if self._asked[0] is not request:
            self._asked = request, terms_of(request, self.node, self.card)
        return self._asked[1]

    def holds_instance(self, request: Request, index: int, instance: Instance) -> bool:
        """Tell whether a GPU could serve a request with an instance beside those in use."""
        return instance in self._instances_beside(index) and self._holds(request, instance.profile)

    def _instances_beside(self, index: int) -> tuple[Instance, ...]:
        """Return the instances that a GPU could have beside those in use, the smallest first."""
        if self.geometry is None or not (0 <= index < len(self.compute) and self._may_be_cut(index)):
            return ()
        return beside(self.geometry, layout_of(self.instances.get(index, ())))

    def _holds(self, request: Request, name: str) -> bool:
        profile = self.geometry.by_name.get(name) if self.geometry is not None else None
        return profile is not None and holds(profile, request, self.card, self.node.accelerator)

    def _may_be_cut(self, index: int) -> bool:
        """Tell whether a GPU is cut into instances, or has nothing on it that keeps it from being cut."""
        return bool(self.instances.get(index)) or (self.compute[index] == MILLI and not self.tenants[index])

    def may_cut_for(self, request: Request) -> bool:
        """Tell whether any GPU of the node might serve a request with an instance."""
        return self.geometry is not None and request.may_use_mig

    def profiles_beside(self, index: int) -> frozenset[str]:
        """Return the profiles of instances that a GPU could have beside those in use."""
        if index not in self._beside:
            self._beside[index] = frozenset(instance.profile for instance in self._instances_beside(index))
        return self._beside[index]

    def offers(self) -> frozenset[str]:
        """Return in what ways any GPU may have room for a part of one: `""` outside MIG, else a profile."""
        if self._offers is None:
            indices = range(len(self.compute))
            uncut = any(self.compute[i] and not self.instances.get(i) for i in indices)
            outside = frozenset(("",)) if uncut or self.crowd is not None else frozenset[str]()
            self._offers = outside.union(*map(self.profiles_beside, indices))
        return self._offers

    def profiles_for(self, request: Request, names: Iterable[str] | None = None) -> frozenset[str]:
        """Return the profiles, of some or of all, whose instances could serve a request where there is room."""
        if self.geometry is None or not self.may_cut_for(request):
            return frozenset()
        found = self.geometry.by_name if names is None else names
        return frozenset(name for name in found if self._holds(request, name))

    def instance_for(self, request: Request, index: int) -> Instance | None:
        """Return an instance of a GPU that could serve a request beside those in use, the smallest first."""
        return next(self.instances_for(request, index), None)

    def instances_for(self, request: Request, index: int) -> Iterator[Instance]:
        """Yield the instances of a GPU that could serve a request beside those in use, the smallest first."""
        able: dict[str, bool] = {}  # by profile
        for instance in self._instances_beside(index) if self.may_cut_for(request) else ():
            if instance.profile not in able:
                able[instance.profile] = self._holds(request, instance.profile)
            if able[instance.profile]:
                yield instance

    def take(self, request: Request, gpus: tuple[int, ...], instance: str = "") -> None:
        """Take a request's amounts; the caller has asked `lacks` first."""
        self._change(request, gpus, instance, 1)

    def give(self, request: Request, gpus: tuple[int, ...], instance: str = "") -> None:
        """Give a request's amounts back."""
        self._change(request, gpus, instance, -1)

    def _change(self, request: Request, gpus: tuple[int, ...], instance: str, sign: int) -> None:
        self._offers = None
        self.cpu -= sign * request.cpu
        self.memory -= sign * request.memory
        for name, amount in request.resources.items():
            self.resources[name] = self.resources.get(name, 0) - sign * amount
        compute, vram = self._taken(request, gpus, instance, sign)
        if self.crowd is not None and not instance:
            self._enter(self.crowd, request, gpus, sign)
        for index in gpus:
            self._beside.pop(index, None)
            self.compute[index] -= sign * compute
            self.vram[index] -= sign * vram
            self.tenants[index] += sign

    def _enter(self, crowd: Crowd, request: Request, gpus: tuple[int, ...], sign: int) -> None:
        """Enter the clients of a GPU, or who has GPUs as a whole, where GPUs are shared by equal parts."""
        if request.share is None:
            for index in gpus:
                crowd.add_whole(index, sign)
        elif (terms := self._terms(request)) is not None:
            crowd.add(terms, gpus[0], sign)

    def _taken(self, request: Request, gpus: tuple[int, ...], instance: str, sign: int) -> tuple[int, int]:
        """Return what a replica takes of each of its GPUs, and enter the instance that it uses."""
        if instance and self.geometry is not None:
            used, own = self.instances.setdefault(gpus[0], []), parse_instance(instance)
            used.append(own) if sign > 0 else used.remove(own)
            profile = self.geometry.by_name[own.profile]
            return profile.milli, MILLI * profile.memory
        if request.share is not None:
            asked = request.on(self.node.accelerator)
            return asked.gpu_milli, share_memory(asked, self.card)
        return MILLI, MILLI * self.card
