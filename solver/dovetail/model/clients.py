"""Rows of GPUs that are shared by equal parts: what each pool is set to, and who may be there then (S3.5, S5.4).

A pool is set to a mode and a number of clients, of which only those are told apart that let other shares in: the most
clients that some share there still puts up with. What a plan tells in the end is the least that will do
(`placement.clients`), which is no other question. Who stays in place needs the pool set as it is today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dovetail.linear import Linear, Model
from dovetail.model.state import Fill, Slot
from dovetail.placement.clients import MODES, WHOLE, Terms, equal_parts, pool_of, possible, setting_of
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
            shared = pool.shared()
            if shared.terms and len(gpus) > 1 and self.model.range_of(whole)[1] > 0:
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
            self._add_gpu(here, terms, choices)
        for keep in staying.values():
            most = self.model.upper[keep]
            row = Linear({keep: 1} if pool.stay is None else {keep: 1, pool.stay[1]: -most})
            self.model.require(row, upper=0)
        return pool

    def _add_gpu(
        self, here: Mapping[Slot, int], terms: Mapping[Slot, Terms], choices: list[tuple[Setting, int]]
    ) -> None:
        """Let no GPU have more clients than its pool is set to, and none that gets too little then."""
        self._at_most(Linear(dict.fromkeys(here.values(), 1)), choices)
        for each in sorted({terms[slot] for slot in here}):
            suited = [(setting, v) for setting, v in choices if each.suffice(setting)]
            if len(suited) < len(choices):
                self._at_most(Linear({v: 1 for slot, v in here.items() if terms[slot] == each}), suited)

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
        for clients in sorted({each[position] for each in terms if each[position]})
    ]


def _variable(pool: Pool, setting: Setting, terms: tuple[Terms, ...]) -> int:
    """Return the variable of a setting: today's, or the widest of its mode that all who are there put up with."""
    if pool.stay is not None and pool.stay[0] == setting:
        return pool.stay[1]
    return pool.options[setting._replace(clients=min(each[MODES.index(setting.mode)] for each in terms))]


def settings_of(problem: Problem, index: int, fill: Fill) -> dict[int, tuple[Setting, tuple[Terms, ...]]]:
    """Return what the pools of a node with clients are set to, and on what terms those are there."""
    node, shapes = problem.nodes[index], problem.shapes
    if not node.gpus or not equal_parts(node):
        return {}
    on: dict[int, dict[int, int]] = {}
    terms: dict[int, set[Terms]] = {}
    for slot, count in fill.slots.items():
        if count and slot.gpu >= 0 and not slot.profile and (own := problem.terms(slot.shape, node)) is not None:
            pool = pool_of(node, slot.gpu)
            terms.setdefault(pool, set()).add(own)
            gpus = on.setdefault(pool, {})
            gpus[slot.gpu] = gpus.get(slot.gpu, 0) + count
    whole = any(count and shapes[slot.shape].request.gpus for slot, count in fill.slots.items())
    found = {}
    for pool, those in terms.items():
        asked, today = tuple(sorted(those)), problem.settings[index].get(pool)
        taken = whole and node.mechanism == "devicePlugin"
        setting = setting_of(node, asked, max(on[pool].values()), whole=taken, today=today)
        if setting is not None:
            found[pool] = setting, asked
    return found
