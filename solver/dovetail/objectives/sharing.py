"""Whether one more client would fit GPUs that are shared by equal parts, in a model of one node (S3.5, S5.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dovetail.linear import Linear, Model
from dovetail.placement.clients import MODES, Terms, pool_of
from dovetail.spec import Node, Setting


@dataclass(frozen=True, slots=True)
class Clients:
    """Who is on the GPUs of a node that are shared by equal parts.

    Parameters
    ----------
    on : how many clients there are, by GPU and by what they suffer.
    whole : how many GPUs replicas have as a whole.
    """

    node: Node
    model: Model
    on: Mapping[int, Mapping[Terms, Linear]] = field(default_factory=dict)
    whole: Linear = field(default_factory=Linear)

    def unshared(self) -> Linear:
        """Return at most 1 where replicas could have GPUs as a whole, as far as clients let them."""
        if self.node.mechanism != "devicePlugin" or not self.on:
            return Linear(constant=1)
        flag = self.model.boolean()
        self._bind(flag, Setting("whole", 1), list(self.on))
        return Linear.of(flag)

    def fits(self, terms: Terms, gpu: int | None) -> Linear:
        """Return at most 1 where one more client could be on a GPU, or on any untouched one."""
        if gpu is None and self.node.mechanism != "devicePlugin":
            return Linear(constant=int(any(map(terms.among, range(len(MODES))))))
        pool = [other for other in self.on if gpu is None or pool_of(self.node, other) == pool_of(self.node, gpu)]
        found = Linear()
        for setting in self._settings(terms, pool):
            flag = self.model.boolean()
            self._bind(flag, setting, pool)
            if gpu is not None:
                self._at_most(Linear.total(self.on[gpu].values()), setting.clients - 1, flag)
            found.add_term(flag)
        if len(found.terms) > 1:
            self.model.require(found, upper=1)
        return found

    def _settings(self, terms: Terms, pool: list[int]) -> Iterator[Setting]:
        """Yield what a pool could be set to with one more client, as far as that makes a difference."""
        for position, mode in enumerate(MODES):
            most = {each.among(position) for gpu in pool for each in self.on[gpu]} | {terms.among(position)}
            for clients in sorted(most):
                if 0 < clients <= terms.among(position):
                    yield Setting(mode, clients)

    def _bind(self, flag: int, setting: Setting, pool: list[int]) -> None:
        """Let a flag be 1 only where a pool could be set so for all who are there."""
        for gpu in pool:
            self._at_most(Linear.total(self.on[gpu].values()), setting.clients, flag)
            for terms, count in self.on[gpu].items():
                if not terms.allow(setting):
                    self._at_most(count, 0, flag)
        if setting.clients > 1 and self.node.mechanism == "devicePlugin":
            self._at_most(self.whole, 0, flag)

    def _at_most(self, count: Linear, most: int, flag: int) -> None:
        """Let a count be no more than so much where a flag is 1."""
        high = self.model.range_of(count)[1]
        if high > most:
            self.model.require(count.plus(0).add(Linear.of(flag, high - most)), upper=high)
