"""GPUs that are shared by equal parts: who may share one with how many others, and what follows for a node (S3.5).

By the device plugin all GPUs of a node that are not cut are one *pool*: they have one mode and one number n of
clients, and each gets 1/n of memory and compute. By `dra` every GPU is a pool of its own. What it is set to follows
from who is there and from what it is set to today, so that nothing restarts that nobody asked to:

- what it is set to today stays where that is enough for all who are there;
- else nobody shares (`whole`) where each client has a GPU to itself;
- else MPS where all clients may be in it, or time-slicing, with as few clients to a GPU as will do;
- of these, what a hard policy closes to a client is left out, and what costs soft ones least comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from dovetail.placement.instances import memory_of
from dovetail.spec import Cluster, EqualParts, Node, Request, Setting, Share
from dovetail.spec.cluster import SharedMode
from dovetail.spec.workload import MILLI, Lean

WHOLE: Final = Setting("whole", 1)
MODES: Final[tuple[SharedMode, ...]] = ("whole", "mps", "time-slice")
"""All modes of a GPU that is not cut, the one that is taken first where several will do."""

Cost = tuple[tuple[int, int], ...]
"""What soft policies ask for something: weights by the rank of the tier that they are weighed in, ascending."""

CLOSED: Final[Cost] = ((-1, -1),)
"""What a mode costs that a hard policy closes."""

FREE: Final[tuple[Cost, Cost, Cost]] = ((), (), ())

NODE_POOL: Final = -1
"""The pool of all GPUs of a node; others are named by their only GPU."""


Settings = Mapping[tuple[str, int], Setting]
"""What pools with clients are set to, by node and pool."""


class Terms(NamedTuple):
    """Per mode, in the order of `MODES`, among how many clients of a GPU a share still gets what it asks for.

    `costs` are what policies ask for a share in each mode, `CLOSED` where a hard one does not have it there.
    """

    whole: int
    mps: int
    time_slice: int
    costs: tuple[Cost, Cost, Cost] = FREE

    @property
    def most(self) -> int:
        """Among how many clients it gets what it asks for in any mode."""
        return max(self.whole, self.mps, self.time_slice)

    def among(self, position: int) -> int:
        """Return among how many clients it may be where GPUs are set anew, in the mode at a position of `MODES`."""
        return 0 if self.costs[position] == CLOSED else (self.whole, self.mps, self.time_slice)[position]

    def suffice(self, setting: Setting) -> bool:
        """Tell whether a share gets what it asks for."""
        return (self.whole, self.mps, self.time_slice)[MODES.index(setting.mode)] >= setting.clients

    def allow(self, setting: Setting) -> bool:
        """Tell whether GPUs may be set so anew: it gets what it asks for, and no hard policy is against it."""
        return self.among(MODES.index(setting.mode)) >= setting.clients

    def free(self) -> Terms:
        """Return the terms without what policies say."""
        return self._replace(costs=FREE)


def equal_parts(node: Node) -> bool:
    """Tell whether the GPUs of a node can be shared by equal parts."""
    return node.mechanism != "fraction" and node.sharing is not None


def promised(node: Node) -> int:
    """Return the thousandths of one GPU of a node that may be promised at the most, in whichever mode."""
    if node.sharing is None or not equal_parts(node):
        return MILLI
    return max(node.sharing.oversubscription, node.sharing.mps_oversubscription)


def pool_of(node: Node, gpu: int) -> int:
    """Return the pool of a GPU of a node that shares by equal parts."""
    return NODE_POOL if node.mechanism == "devicePlugin" else gpu


def pools(node: Node) -> tuple[int, ...]:
    """Return the pools of a node that shares by equal parts."""
    return (NODE_POOL,) if node.mechanism == "devicePlugin" else node.healthy_gpus()


def terms_of(request: Request, node: Node, card: int) -> Terms | None:
    """Return on what terms a share may be on a GPU that is not cut, None where it may not be there at all.

    Parameters
    ----------
    card : the memory of one GPU of the node, in MiB.
    """
    sharing = node.sharing if equal_parts(node) else None
    if request.share is None or sharing is None:
        return None
    return _terms(request.share.on(node.accelerator), node.accelerator, sharing, node.leaning, card)


@lru_cache(maxsize=100_000)
def _terms(
    share: Share, accelerator: str | None, sharing: EqualParts, leaning: tuple[str, ...], card: int
) -> Terms | None:
    """Return the terms of a share on GPUs of an accelerator; see `terms_of`."""
    if "fraction" not in share.modes or share.rate(accelerator) is None:
        return None
    memory = memory_of(share, card)
    by_memory = MILLI * card // memory if memory else MILLI
    alone = min(1, by_memory, MILLI // share.compute)
    most = {
        "whole": alone,
        "mps": min(sharing.mps, by_memory, sharing.mps_oversubscription // share.compute),
        "time-slice": min(sharing.time_slicing, by_memory, sharing.oversubscription // share.compute),
    }
    ways = (0 if share.bars(mode, accelerator) else _parted(mode, most[mode], sharing.parts) for mode in MODES)
    whole, mps, slices = ways
    found = Terms(whole, mps, slices, _costs(share, leaning))
    return found if found.most else None


def uncut(request: Request, node: Node, card: int) -> bool:
    """Tell whether a share may be on GPUs of a node that are not cut.

    Parameters
    ----------
    request : what is asked of this very node (`Request.on`).
    card : the memory of one GPU of the node, in MiB.
    """
    if equal_parts(node):
        return terms_of(request, node, card) is not None
    share = request.share
    if node.mechanism != "fraction" or share is None or not share.takes_fraction(node.accelerator):
        return False
    return memory_of(share, card) <= MILLI * card


def _costs(share: Share, leaning: Collection[str]) -> tuple[Cost, Cost, Cost]:
    """Return what policies ask for a share in each mode on a node that some of them name."""
    if not share.leans:
        return FREE
    leans = [lean for lean in share.leans if lean.everywhere or lean.policy in leaning]
    whole, mps, slices = (_cost(mode, leans) for mode in MODES)
    return whole, mps, slices


def _cost(mode: SharedMode, leans: Iterable[Lean]) -> Cost:
    against = [lean for lean in leans if mode in lean.closed]
    if any(not lean.weight for lean in against):
        return CLOSED
    ranks = sorted({lean.rank for lean in against})
    return tuple((rank, sum(lean.weight for lean in against if lean.rank == rank)) for rank in ranks)


def _parted(mode: SharedMode, most: int, parts: int | None) -> int:
    """Return the most clients, those of a fixed number of parts where one is given; 0 where that is no sharing."""
    if mode == "whole":
        return most
    if parts is not None:
        return parts if most >= parts else 0
    return most if most > 1 else 0


def possible(node: Node, setting: Setting) -> bool:
    """Tell whether a node may go on with a setting, as far as its number of parts goes."""
    return setting == WHOLE or parts_of(node) in (None, setting.clients)


def parts_of(node: Node) -> int | None:
    """Return how many clients there are wherever GPUs of a node are shared, None where that is free."""
    return None if node.sharing is None else node.sharing.parts


def setting_of(
    node: Node, terms: Mapping[Terms, int], most: int, *, whole: bool, today: Setting | None = None
) -> Setting | None:
    """Return what a pool is set to, None where nothing suits all that is there.

    Parameters
    ----------
    terms : those of all clients, with how many there are of them.
    most : the clients of the GPU that has most of them.
    whole : whether replicas have GPUs of the pool as a whole.
    today : what it is set to today, None where nobody shares it today.
    """
    parts = parts_of(node)

    def holds(setting: Setting) -> bool:
        return (setting.clients == 1 or not whole) and most <= setting.clients

    if today is not None and possible(node, today) and holds(today) and all(t.suffice(today) for t in terms):
        return today
    fresh = [WHOLE, *(Setting(mode, max(2, most) if parts is None else parts) for mode in MODES[1:])]
    open_to_all = [setting for setting in fresh if holds(setting) and all(t.allow(setting) for t in terms)]
    return min(open_to_all, key=lambda setting: cost_of(terms, setting), default=None)


def cost_of(terms: Mapping[Terms, int], setting: Setting) -> tuple[int, ...]:
    """Return what soft policies ask for clients whose GPUs are set so, the earlier tiers of the objective first."""
    position = MODES.index(setting.mode)
    ranks = {rank: 0 for each in terms for cost in each.costs for rank, _ in cost}
    for each, count in terms.items():
        for rank, weight in each.costs[position]:
            ranks[rank] += count * weight
    return tuple(ranks[rank] for rank in sorted(ranks))


def told_settings(cluster: Cluster, told: Mapping[str, Setting]) -> dict[str, dict[int, Setting]]:
    """Return what GPUs are set to as documents or a plan tell, by node and pool.

    Of several GPUs of a pool the first is believed, and GPUs that cannot be set so say nothing.
    """
    found: dict[str, dict[int, Setting]] = {}
    for gpu, setting in sorted(told.items()):
        name, _, index = gpu.rpartition("/")
        node = cluster.by_name.get(name)
        if node is not None and int(index) < node.gpus and equal_parts(node):
            found.setdefault(name, {}).setdefault(pool_of(node, int(index)), setting)
    return found


def listed(node: Node, settings: Mapping[int, Setting], cut: Container[str]) -> Iterator[tuple[str, Setting]]:
    """Yield the GPUs of a node that have a mode to tell, by `node/index`: those that clients share.

    Parameters
    ----------
    settings : what its pools with clients are set to.
    cut : the GPUs in MIG mode.
    """
    for gpu in node.healthy_gpus():
        setting = settings.get(pool_of(node, gpu), WHOLE)
        if setting != WHOLE and f"{node.name}/{gpu}" not in cut:
            yield f"{node.name}/{gpu}", setting


def _freed(terms: Mapping[Terms, int]) -> dict[Terms, int]:
    """Return the terms of clients without what policies say."""
    return {each.free(): 1 for each in terms}


class Crowd:
    """Who is on the GPUs of a node that are shared by equal parts.

    Parameters
    ----------
    told : what pools are set to whoever comes, by pool; others are set to what suits.
    lenient : whether clients are there already, whatever policies say of modes.
    """

    __slots__ = ("_fullest", "_lenient", "_limits", "_node", "_on", "_terms", "_told", "_wholes")

    def __init__(self, node: Node, told: Mapping[int, Setting] | None = None, *, lenient: bool = False) -> None:
        self._node = node
        self._lenient = lenient
        self._told = dict(told or {})
        self._on: Counter[int] = Counter()
        self._terms: Counter[tuple[int, Terms]] = Counter()
        self._wholes: Counter[int] = Counter()
        # What was told since anybody came or went, by pool: see `most_with` and `_most`.
        self._limits: dict[tuple[Terms, int], int] = {}
        self._fullest: dict[int, int] = {}

    def add(self, terms: Terms, gpu: int, count: int) -> None:
        """Enter clients of a GPU, or take them off with a negative count."""
        key = pool_of(self._node, gpu), terms
        self._on[gpu] += count
        self._terms[key] += count
        if not self._terms[key]:
            del self._terms[key]
        self._limits.clear()
        self._fullest.clear()

    def tell(self, pool: int, setting: Setting | None) -> None:
        """Set what a pool is set to whoever comes, None for what suits."""
        self._told.pop(pool, None)
        if setting is not None:
            self._told[pool] = setting
        self._limits.clear()

    def add_whole(self, gpu: int, count: int) -> None:
        """Enter that a replica has a GPU as a whole, or that it has it no longer."""
        self._limits.clear()
        self._wholes[pool_of(self._node, gpu)] += count

    def admits(self, terms: Terms, gpu: int) -> bool:
        """Tell whether a GPU could have one more client."""
        pool = pool_of(self._node, gpu)
        return max(self._most(pool), self._on[gpu] + 1) <= self.most_with(terms, pool)

    def most_with(self, terms: Terms, pool: int) -> int:
        """Return the most clients that a GPU of a pool could have with one more of them on some terms, 0 for none."""
        if (terms, pool) not in self._limits:
            self._limits[terms, pool] = self._most_with(terms, pool)
        return self._limits[terms, pool]

    def _most_with(self, terms: Terms, pool: int) -> int:
        told = self._told.get(pool)
        if told is not None and not self._lenient and not terms.allow(told):
            return 0
        return self._limit({*self._asked(pool), terms}, pool, whole=self._wholes[pool] > 0)

    def _limit(self, asked: Collection[Terms], pool: int, *, whole: bool) -> int:
        """Return the most clients that a GPU of a pool could have where some are on it, 0 where nothing suits them.

        Parameters
        ----------
        whole : whether replicas have GPUs of the pool as a whole.
        """
        told = self._told.get(pool)
        if told is not None:
            return told.clients if not (whole and told.clients > 1) and all(t.suffice(told) for t in asked) else 0
        free = [terms.free() for terms in asked] if self._lenient else asked
        limits = (min((terms.among(position) for terms in free), default=1) for position in range(len(MODES)))
        return max(n if n <= 1 or not whole else 0 for n in limits)

    def admits_whole(self, gpu: int) -> bool:
        """Tell whether a replica could have a GPU without clients as a whole."""
        pool = pool_of(self._node, gpu)
        return max(1, self._most(pool)) <= self._limit(self._asked(pool), pool, whole=True)

    def settings(self, today: Mapping[int, Setting]) -> dict[int, Setting | None]:
        """Return what the pools with clients are set to, by pool; None for one that nothing suits."""
        return {pool: self._setting(pool, today.get(pool)) for pool in self.used}

    @property
    def used(self) -> list[int]:
        """The pools with clients."""
        return sorted({pool for pool, _ in self._terms})

    def _setting(self, pool: int, today: Setting | None) -> Setting | None:
        asked, most, whole = self._asked(pool), self._most(pool), self._wholes[pool] > 0
        found = setting_of(self._node, asked, most, whole=whole, today=today)
        if found is None and self._lenient:
            return setting_of(self._node, _freed(asked), most, whole=whole)
        return found

    def key(self) -> object:
        """Return all that decides who else may come, whichever GPU of a pool is which."""
        if not self._terms and not any(self._wholes.values()):
            return ()
        wholes = tuple(sorted((pool, count > 0) for pool, count in self._wholes.items()))
        return tuple(sorted(self._terms.items())), wholes, tuple(sorted(self._told.items()))

    def room_for(self, terms: Terms, gpus: Iterable[int]) -> int:
        """Return how many more clients could be on GPUs that are not cut and that nobody has as a whole."""
        by_pool: dict[int, list[int]] = {}
        for gpu in gpus:
            by_pool.setdefault(pool_of(self._node, gpu), []).append(gpu)
        return sum(max(self._free(pool, terms, own)) for pool, own in by_pool.items())

    def _free(self, pool: int, terms: Terms, gpus: Iterable[int]) -> Iterator[int]:
        """Yield how many more clients there could be in a pool, mode by mode."""
        asked, held = {**self._asked(pool), terms: 1}, [self._on[gpu] for gpu in gpus]
        for position, mode in enumerate(MODES):
            most = min(each.among(position) for each in asked)
            told = self._told.get(pool)
            if told is not None:
                fits = told.mode == mode and all(each.suffice(told) for each in asked)
                most = told.clients if fits else 0
            open_to = most > 0 and self._most(pool) <= most and not (most > 1 and self._wholes[pool])
            yield sum(most - count for count in held) if open_to else 0

    def clients(self, gpu: int) -> int:
        """Return how many clients a GPU has."""
        return self._on[gpu]

    def _asked(self, pool: int) -> dict[Terms, int]:
        return {terms: count for (own, terms), count in self._terms.items() if own == pool}

    def _most(self, pool: int) -> int:
        """Return the clients of the GPU of a pool that has most of them."""
        if pool not in self._fullest:
            here = (count for gpu, count in self._on.items() if pool_of(self._node, gpu) == pool)
            self._fullest[pool] = max(here, default=0)
        return self._fullest[pool]
