"""The fragmentation tier: idle GPU that the expected work cannot use (S5.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.mig import budgets
from dovetail.objectives.base import Idle, IdleGpu, Sense, TierPart
from dovetail.objectives.sharing import Clients
from dovetail.placement import View
from dovetail.placement.clients import terms_of, uncut
from dovetail.placement.fragments import Judge, counts, expected_of
from dovetail.placement.instances import profiles_for, share_memory
from dovetail.rules import Context
from dovetail.spec import Accelerator, Expected, Node, Spec
from dovetail.spec.workload import MILLI


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """Thousandths of idle GPU that expected requests cannot use, times their weights.

    Per node and class the useful idle GPU is what lies on GPUs that the class fits, if the node has the class's CPU
    and, for several GPUs, enough of them untouched; what is idle beyond that is useless. Which MIG instances fit a
    GPU is counted: where nothing is pinned, starts are given out so that all that fits by count finds one
    (`mig.arrange`). Beside instances that stay the measure may be larger than its expression, never smaller.
    """

    kind: ClassVar[str] = "fragmentation"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = True

    judge: Judge = field(repr=False)
    name: str = "fragmentation"
    sense: Sense = "min"
    unit: str = "weighted milli-GPU"

    def encode(self, part: TierPart) -> Linear:
        """Return what of the part's idle GPU is useless, class by class."""
        total = Linear()
        for node in part.free_nodes():
            if counts(node) and node.accelerator:
                idle = part.idle(node.name)
                for one in self.judge.expected:
                    card = part.spec.accelerators[node.accelerator]
                    total.add(idle.amount.minus(_useful(part, node, card, idle, one.on(card.name))), one.weight)
        return total

    def measure(self, view: View, context: Context) -> int:
        """Add up what is useless on every node."""
        return self.judge.of_view(view).amount

    def limit(self, context: Context) -> int:
        """Nothing is less fragmented than not at all."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


def tiers(context: Context) -> Iterator[Fragmentation]:
    """Yield the tier where anything is expected."""
    expected = expected_of(context.spec)
    if expected:
        yield Fragmentation(Judge(expected, context.spec.accelerators))


def fragmentation_of(tiers: Iterable[object]) -> Fragmentation | None:
    """Return the tier among some, None where none asks what idle GPU is good for."""
    return next((tier for tier in tiers if isinstance(tier, Fragmentation)), None)


def _useful(part: TierPart, node: Node, card: Accelerator, idle: Idle, one: Expected) -> Linear:
    """Return an expression that is at most the idle GPU of a node that a class can use, and can equal it."""
    request = one.request
    if (one.accelerators and node.accelerator not in one.accelerators) or request.cpu > node.cpu:
        return Linear()
    most = MILLI * len(node.healthy_gpus())
    fresh = idle.untouched.scaled(MILLI) if _fits_untouched(node, card, one) else Linear()
    if idle.clients is not None and fresh.terms and not profiles_for(request, card):
        fresh = _gated(part, fresh, _open(idle.clients, card, one), most)
    found = Linear.total([fresh, *(_useful_of_gpu(part, card, gpu, one, idle.clients) for gpu in idle.parted)])
    several = request.gpus > 1
    if not several and part.model.range_of(idle.cpu)[0] >= request.cpu:
        return found
    able = part.model.boolean()
    part.model.require(idle.cpu.minus(Linear.of(able, request.cpu)), lower=0)
    if several:
        part.model.require(idle.untouched.minus(Linear.of(able, request.gpus)), lower=0)
    useful = part.model.integer(0, most)
    part.model.require(Linear.of(useful).minus(found), upper=0)
    part.model.require(Linear({useful: 1, able: -most}), upper=0)
    return Linear.of(useful)


def _open(clients: Clients, card: Accelerator, one: Expected) -> Linear:
    """Return at most 1 where a class could be on untouched GPUs, as far as clients of others let it."""
    terms = terms_of(one.request, clients.node, card.memory)
    return clients.unshared() if terms is None else clients.fits(terms, None)


def _gated(part: TierPart, amount: Linear, gate: Linear, most: int) -> Linear:
    """Return an expression that is at most an amount, and 0 where a gate of 0 or 1 is shut."""
    if gate.is_constant and gate.constant:
        return amount
    useful = part.model.integer(0, most)
    part.model.require(Linear.of(useful).minus(amount), upper=0)
    part.model.require(Linear.of(useful).minus(gate.scaled(most)), upper=0)
    return Linear.of(useful)


def _fits_untouched(node: Node, card: Accelerator, one: Expected) -> bool:
    request = one.request
    if request.gpus:
        return len(node.healthy_gpus()) >= request.gpus
    return uncut(request, node, card.memory) or bool(profiles_for(request, card))


def _useful_of_gpu(part: TierPart, card: Accelerator, gpu: IdleGpu, one: Expected, clients: Clients | None) -> Linear:
    """Return what of a GPU's idle part a class can use: all of it or nothing."""
    if gpu.held is not None:
        fits = _fits_cut(part, card, gpu.held, one)
    elif clients is not None:
        terms = terms_of(one.request, clients.node, card.memory)
        fits = None if terms is None else clients.fits(terms, gpu.number)
    else:
        fits = _fits_shared(part, card, gpu, one)
    return Linear() if fits is None else _gated(part, gpu.amount, fits, MILLI)


def _fits_shared(part: TierPart, card: Accelerator, gpu: IdleGpu, one: Expected) -> Linear | None:
    """Return at most 1 where a share fits beside others on a GPU, None where none ever does."""
    share = one.request.share
    if share is None or not share.takes_fraction(card.name):
        return None
    fits = part.model.boolean()
    part.model.require(gpu.amount.minus(Linear.of(fits, share.compute)), lower=0)
    part.model.require(gpu.vram.minus(Linear.of(fits, share_memory(one.request, card.memory))), lower=0)
    return Linear.of(fits)


def _fits_cut(part: TierPart, card: Accelerator, held: Mapping[str, Linear], one: Expected) -> Linear | None:
    """Return at most as much as there are profiles for a class of which one more instance fits a GPU, by count."""
    fitting = profiles_for(one.request, card)
    if card.mig is None or not fitting:
        return None
    found = Linear()
    for profile in fitting:
        fits = part.model.boolean()
        found.add_term(fits)
        for most, amounts in budgets(card.mig):
            if amounts[profile.name]:
                taken = Linear.of(fits, amounts[profile.name])
                for name, count in held.items():
                    taken.add(count, amounts[name])
                part.model.require(taken, upper=most)
    return found
