"""Rows of GPUs that are shared by equal parts: what each pool is set to, and who may be there then (S3.5, S5.4).

A pool is set to a mode and a number of clients, of which only those are told apart that let other shares in: the most
clients that some share there still puts up with. What a plan tells in the end is the least that will do
(`placement.clients`), which is no other question. Who stays in place needs the pool set as it is today.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from dovetail.linear import Linear, Model
from dovetail.model.state import Fill, Slot
from dovetail.placement.clients import MODES, NODE_POOL, WHOLE, Terms, equal_parts, pool_of, possible, setting_of
from dovetail.problem import Present, Problem
from dovetail.spec import Node, Setting

Counts = Mapping[int, Mapping[Slot, int]]  # per GPU, the variables of the shares that may be on it uncut


@dataclass(slots=True)
class Pool:
    """What a pool may be set to.

    Parameters
    ----------
    options : a variable per setting.
    stay : what it is set to today, if anybody is there, with the variable of its staying so.
    """

    options: dict[Setting, int] = field(default_factory=dict)
    stay: tuple[Setting, int] | None = None

    def shut(self, closed: Collection[str]) -> Linear:
        """Return 1 where it is set to one of some modes."""
        return Linear({v: 1 for setting, v in self.choices() if setting.mode in closed})

    @property
    def clients(self) -> Linear:
        """Return 1 where anybody may be there."""
        return Linear({v: 1 for _, v in self.choices()})

    def choices(self) -> Iterator[tuple[Setting, int]]:
        """Yield every setting with its variable, today's first."""
        if self.stay is not None:
            yield self.stay
        yield from self.options.items()

    def shared(self) -> Linear:
        """Return 1 where several clients may share a GPU, so that nobody has one as a whole."""
        return Linear({v: 1 for setting, v in self.choices() if setting != WHOLE})


@dataclass(slots=True)
class Pools:
    """The pools of the nodes of a part, by node index and GPU (`clients.NODE_POOL` for all of them)."""

    problem: Problem
    model: Model
    of: dict[int, dict[int, Pool]] = field(default_factory=dict)

    def add_node(self, index: int, node: Node, counts: Counts, keeps: Mapping[Present, int], whole: Linear) -> None:
        """Add the rows of a node.

        Parameters
        ----------
        whole : how many GPUs of the node are taken as a whole.
        """
        by_pool: dict[int, dict[int, Mapping[Slot, int]]] = {}
        for gpu, here in counts.items():
            by_pool.setdefault(pool_of(node, gpu), {})[gpu] = here
        for number, gpus in by_pool.items():
            staying = {p: v for p, v in keeps.items() if p.gpus and p.gpus[0] in gpus and self._is_client(p)}
            pool = self._add_pool(index, node, number, gpus, staying)
            self._keep_today(pool, node, gpus, whole if number == NODE_POOL else Linear())
            shared = pool.shared()
            if shared.terms and number == NODE_POOL and self.model.range_of(whole)[1] > 0:
                most = len(node.healthy_gpus())
                self.model.require(whole.plus(0).add(shared, most), upper=most)

    def _is_client(self, place: Present) -> bool:
        return self.problem.shapes[place.shape].request.share is not None and not place.instance

    def _add_pool(self, index: int, node: Node, number: int, gpus: Counts, staying: Mapping[Present, int]) -> Pool:
        terms = {slot: self._terms(slot, node) for here in gpus.values() for slot in here}
        pool = self.of.setdefault(index, {})[number] = Pool()
        for setting in _settings(set(terms.values())):
            pool.options[setting] = self.model.boolean(f"set:{node.name}:{number}:{setting.mode}:{setting.clients}")
        today = self.problem.settings[index].get(number)
        if today is not None and staying and possible(node, today):
            pool.stay = today, self.model.boolean(f"set:{node.name}:{number}:today")
        choices = list(pool.choices())
        if len(choices) > 1:
            self.model.require(Linear({v: 1 for _, v in choices}), upper=1)
        for here in gpus.values():
            self._add_gpu(here, terms, choices, today=pool.stay is not None)
        for keep in staying.values():
            most = self.model.upper[keep]
            row = Linear({keep: 1} if pool.stay is None else {keep: 1, pool.stay[1]: -most})
            self.model.require(row, upper=0)
        return pool

    def _keep_today(self, pool: Pool, node: Node, gpus: Counts, whole: Linear) -> None:
        """Let those whom policies would like in another mode be there in today's where that is enough for all.

        GPUs are set anew only where it is not: a GPU has more clients, somebody gets too little, or has one whole.
        """
        if pool.stay is None:
            return
        today, stays = pool.stay
        by_terms: dict[Terms, Linear] = {}
        for slot, variable in (pair for here in gpus.values() for pair in here.items()):
            by_terms.setdefault(self._terms(slot, node), Linear()).add_term(variable)
        position = MODES.index(today.mode)
        unwilling = [count for terms, count in by_terms.items() if terms.costs[position]]
        if not unwilling:
            return
        fullest = [Linear(dict.fromkeys(here.values(), 1)) for here in gpus.values()]
        reasons = [self._at_least(count, today.clients + 1) for count in fullest]
        reasons += [self._at_least(count, 1) for terms, count in by_terms.items() if not terms.suffice(today)]
        reasons += [self._at_least(whole, 1)] if today.clients > 1 else []
        for count in unwilling:
            most = self.model.range_of(count)[1]
            self.model.require(count.minus(Linear.total([Linear.of(stays), *reasons]).scaled(most)), upper=0)

    def _at_least(self, count: Linear, least: int) -> Linear:
        """Return 1 only where a count is at least so much."""
        if self.model.range_of(count)[1] < least:
            return Linear()
        flag = Linear.of(self.model.boolean())
        self.model.require(count.minus(flag.scaled(least)), lower=0)
        return flag

    def in_modes(self, index: int, shape: int, slots: Mapping[Slot, int], closed: Collection[str]) -> Linear:
        """Return a number that the replicas of a shape in some modes, on GPUs of a node, do not exceed."""
        by_pool: dict[int, Linear] = {}
        for slot, variable in slots.items():
            if slot.shape == shape and slot.gpu >= 0 and not slot.profile:
                pool = pool_of(self.problem.nodes[index], slot.gpu)
                by_pool.setdefault(pool, Linear()).add_term(variable)
        return Linear.total(
            self._shut_in(count, self.of[index][pool].shut(closed)) for pool, count in by_pool.items()
        )

    def _shut_in(self, count: Linear, shut: Linear) -> Linear:
        """Return a count where a flag is 1, else 0, at the least."""
        most = self.model.range_of(count)[1]
        if not shut.terms or not most:
            return Linear()
        return self.model.positive_part(count.plus(-most).add(shut, most))

    def _add_gpu(
        self,
        here: Mapping[Slot, int],
        terms: Mapping[Slot, Terms],
        choices: list[tuple[Setting, int]],
        *,
        today: bool,
    ) -> None:
        """Let no GPU have more clients than its pool is set to, and none that gets too little then."""
        self._at_most(Linear(dict.fromkeys(here.values(), 1)), choices)
        for each in sorted({terms[slot] for slot in here}):
            suited = [(s, v) for i, (s, v) in enumerate(choices) if self._suits(each, s, stays=not i and today)]
            if len(suited) < len(choices):
                self._at_most(Linear({v: 1 for slot, v in here.items() if terms[slot] == each}), suited)

    @staticmethod
    def _suits(terms: Terms, setting: Setting, *, stays: bool) -> bool:
        """Tell whether a share may be where GPUs stay set so, or are set so anew."""
        return terms.suffice(setting) if stays else terms.allow(setting)

    def _at_most(self, clients: Linear, choices: list[tuple[Setting, int]]) -> None:
        most = self.model.range_of(clients)[1]
        room = Linear({v: min(most, setting.clients) for setting, v in choices})
        self.model.require(clients.minus(room), upper=0)

    def _terms(self, slot: Slot, node: Node) -> Terms:
        return self.problem.terms(slot.shape, node) or Terms(0, 0, 0)

    def shared(self, index: int) -> list[Linear]:
        """Return per pool of a node 1 where clients share GPUs of it, or did so far and could go on."""
        today = self.problem.settings[index]
        pools = self.of.get(index, {}).items()
        return [p.clients if today.get(number, WHOLE) != WHOLE else p.shared() for number, p in pools]

    def hint(self, index: int, fill: Fill) -> dict[int, int]:
        """Return what the pools of a node are set to where it holds a fill."""
        values: dict[int, int] = {}
        found = settings_of(self.problem, index, fill)
        for number, pool in self.of.get(index, {}).items():
            values.update(dict.fromkeys((v for _, v in pool.choices()), 0))
            if number in found:
                values[_variable(pool, *found[number])] = 1
        return values


def _settings(terms: set[Terms]) -> list[Setting]:
    """Return the settings that let different shares in."""
    return [
        Setting(mode, clients)
        for position, mode in enumerate(MODES)
        for clients in sorted({each.among(position) for each in terms if each.among(position)})
    ]


def _variable(pool: Pool, setting: Setting, terms: tuple[Terms, ...]) -> int:
    """Return the variable of a setting: today's, or the widest of its mode that all who are there put up with."""
    if pool.stay is not None and pool.stay[0] == setting:
        return pool.stay[1]
    position = MODES.index(setting.mode)
    return pool.options[setting._replace(clients=min(each.among(position) for each in terms))]


def settings_of(problem: Problem, index: int, fill: Fill) -> dict[int, tuple[Setting, tuple[Terms, ...]]]:
    """Return what the pools of a node with clients are set to, and on what terms those are there."""
    node, shapes = problem.nodes[index], problem.shapes
    if not node.gpus or not equal_parts(node):
        return {}
    on: dict[int, dict[int, int]] = {}
    terms: dict[int, Counter[Terms]] = {}
    for slot, count in fill.slots.items():
        if count and slot.gpu >= 0 and not slot.profile and (own := problem.terms(slot.shape, node)) is not None:
            pool = pool_of(node, slot.gpu)
            terms.setdefault(pool, Counter())[own] += count
            gpus = on.setdefault(pool, {})
            gpus[slot.gpu] = gpus.get(slot.gpu, 0) + count
    whole = any(count and shapes[slot.shape].request.gpus for slot, count in fill.slots.items())
    found = {}
    for pool, those in terms.items():
        today = problem.settings[index].get(pool)
        taken = whole and node.mechanism == "devicePlugin"
        setting = setting_of(node, those, max(on[pool].values()), whole=taken, today=today)
        if setting is not None:
            found[pool] = setting, tuple(sorted(those))
    return found


def fixed_mode(problem: Problem, node: Node, slot: Slot) -> str | None:
    """Return the mode of the GPUs of a slot where nobody else decides on it, None for clients and without GPUs."""
    request = problem.shapes[slot.shape].request
    if slot.profile:
        return "mig"
    if request.share is not None:
        return None if equal_parts(node) else "time-slice"
    return request.mode


def mode_of(problem: Problem, index: int, fill: Fill, slot: Slot) -> str | None:
    """Return the mode of the GPUs of a slot of a node that holds a fill, None without GPUs."""
    node = problem.nodes[index]
    if (fixed := fixed_mode(problem, node, slot)) is not None or slot.gpu < 0:
        return fixed
    found = settings_of(problem, index, fill).get(pool_of(node, slot.gpu))
    return WHOLE.mode if found is None else found[0].mode
