"""What every model that counts replicas by shape can tell of workloads, roles and tiers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence

from dovetail.linear import Linear, Literal, Model
from dovetail.objectives import Idle, TierPart
from dovetail.placement import Places
from dovetail.problem import Problem
from dovetail.rules import Context, Domain
from dovetail.rules.quota import requested_of
from dovetail.rules.recovery import Failure, Stakes
from dovetail.rules.topology import NAME as TOPOLOGY
from dovetail.spec import Policy, ReplicaId, Role, Spec, Workload
from dovetail.spec.inside import INNER_LEVELS


class Counting(TierPart, ABC):
    """Expressions on workloads and roles, made up of those on shapes.

    Parameters
    ----------
    problem : what is counted.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.spec: Spec = problem.spec
        self.context: Context = problem.context
        self.places: Places = problem.context.today.places
        self.lost: Places = problem.context.today.lost
        self.model = Model()
        self._retained: dict[int, Linear] = {}
        self._moved: dict[int, Linear] = {}
        self._gone: dict[int, Linear] = {}
        self._sets: dict[int, tuple[Collection[Workload], frozenset[int]]] = {}

    @abstractmethod
    def admitted_shape(self, shape: int) -> Linear:
        """Return how many replicas of a shape are admitted."""

    @abstractmethod
    def _kept(self, shape: int) -> Linear:
        """Return how many replicas of a shape stay on today's place."""

    def _forbid(self, policy: Policy, violations: Mapping[str, Linear]) -> None:
        """Let no subject violate a hard policy beyond what today excuses (S4.5)."""
        excused = self.context.tolerated[policy.name]
        for subject, violation in violations.items():
            self.model.require(violation, upper=excused.get(subject, 0))

    def _shapes_in(self, workloads: Collection[Workload]) -> frozenset[int]:
        """Return the shapes that workloads make up, worked out once per collection, as rules ask for each domain."""
        known = self._sets.get(id(workloads))
        if known is None:  # the collection is kept too, so that its id stays its own
            known = self._sets[id(workloads)] = workloads, self._made_up(workloads)
        return known[1]

    def _made_up(self, workloads: Iterable[Workload]) -> frozenset[int]:
        """Return the shapes of workloads; a rule that splits a shape has not told what it distinguishes."""
        ids = {workload.id for workload in workloads}
        shapes = {shape for i in ids for shape in self.problem.shapes_of_workload.get(i, ())}
        for shape in shapes:
            if any(member.workload.id not in ids for member in self.problem.shapes[shape].members):
                raise AssertionError("a rule tells workloads apart that its workload_key does not distinguish")
        return frozenset(shapes)

    def _shapes_of(self, workload: Workload, role: str | None) -> list[int]:
        """Return the shapes of a workload, or of one role of it, ascending."""
        shapes = self._made_up([workload])
        if role is None:
            return sorted(shapes)
        own = self.problem.shapes_of_role.get((workload.id, role))
        return [] if own is None else [own]

    def stays(self, workload: Workload) -> Mapping[ReplicaId, Linear]:
        """Return who stays on today's place: nothing is known of that here."""
        return {}

    def owed(self, workload: Workload) -> Collection[ReplicaId]:
        """Return the replicas of a workload that must stay admitted in order; none where today excuses others."""
        if self.context.tolerated.get(TOPOLOGY, {}).get(workload.id):
            return ()
        return [replica for replica in self.context.today.protected if replica.workload == workload.id]

    def loosened(self, workload: Workload) -> bool:
        """Tell whether other groups of a workload may come before those that run."""
        return workload.id in self.problem.loosened

    def admitted(self, workload: Workload) -> Linear:
        """Return how many replicas of a workload are admitted, in the part and outside."""
        return self.together([workload])

    def together(self, workloads: Collection[Workload]) -> Linear:
        """Return how many replicas of some workloads are admitted in all, in the part and outside."""
        return Linear.total(self.admitted_shape(shape) for shape in sorted(self._made_up(workloads)))

    @abstractmethod
    def shape_in(self, shape: int, domain: Domain) -> Linear:
        """Return how many replicas of a shape are in a domain."""

    def astray(self, workload: Workload, level: str, *, role: str | None = None) -> Linear:
        """Return how many replicas of a workload are in no domain of a level; none inside a node, as far as known."""
        nodes = self.spec.cluster.homeless(level) if level not in INNER_LEVELS else frozenset[str]()
        return self.misplaced(workload, nodes, role=role) if nodes else Linear()

    def in_modes(self, workload: Workload, modes: Collection[str], nodes: frozenset[str] | None = None) -> Linear:
        """Return how many replicas of a workload have whole GPUs where that mode is asked about, others forgotten."""
        if "whole" not in modes:
            return Linear()
        whole = {self.problem.shapes[s].role.name: s for s in self._made_up([workload]) if self._takes_gpus(s)}
        if nodes is None:
            return Linear.total(self.admitted_shape(shape) for shape in whole.values())
        return Linear.total(self.misplaced(workload, nodes, role=role) for role in whole)

    def _takes_gpus(self, shape: int) -> bool:
        return self.problem.shapes[shape].request.gpus > 0

    def reaching(self, workload: Workload, level: str) -> Mapping[str, Linear]:
        """Return how many replicas of a workload reach into each domain of a level; none inside a node."""
        return self.counts(workload, level)

    def recut(self, node: str) -> Linear:
        """Return nothing: what GPUs are cut into today is told by models of single nodes."""
        return Linear()

    def not_restarted(self, stakes: Stakes, failures: Sequence[Failure]) -> Mapping[str, Linear] | None:
        """Return nothing: what restarts is told by models of single nodes."""
        return None

    def requested(self, workloads: Collection[Workload], resource: str, domain: Domain | None = None) -> Linear:
        """Return how much of a resource the admitted replicas request, those in a domain where one is given.

        In a domain of one node that is what they ask of it, else what they ask at the least.
        """
        total, nodes = Linear(), self.spec.cluster.by_name
        alone = nodes.get(domain.nodes[0]) if domain is not None and len(domain.nodes) == 1 else None
        for shape in sorted(self._shapes_in(workloads)):
            form = self.problem.shapes[shape]
            amount = requested_of(form.request if alone is None else form.on(alone.accelerator), resource)
            if amount:
                total.add(self.admitted_shape(shape) if domain is None else self.shape_in(shape, domain), amount)
        return total

    def moved(self, workload: Workload) -> Linear:
        """Return how many replicas of a workload move."""
        return Linear.total(self.moved_role(workload, role) for role in workload.roles)

    # What tiers see beyond that.

    def worth(self, roles: Iterable[tuple[Workload, Role]]) -> Linear:
        """Return the value of the admitted replicas of some roles."""
        shapes = {self.problem.shapes_of_role[w.id, r.name] for w, r in roles if r.replicas}
        total = Linear()
        for shape in sorted(shapes):
            total.add(self.admitted_shape(shape), self.problem.shapes[shape].role.value)
        return total

    def admitted_role(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role are admitted that is a shape of its own."""
        return self.admitted_shape(self.problem.shapes_of_role[workload.id, role.name])

    def retained(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role whose place stands today stay admitted: min(running, admitted).

        Of a workload in groups that could not go on as it is, groups that lost their place or never ran may come
        first, and where that is better they do; of one that is not atomic, replicas that lost their place.
        """
        shape = self.problem.shapes_of_role.get((workload.id, role.name), -1)
        running = self.problem.running.get(shape, 0)
        if not running:
            return Linear()
        if shape not in self._retained:
            admitted = self.admitted_shape(shape)
            if shape in self.problem.broken:
                self._retained[shape] = self._after_others(shape, running, admitted)
            elif lost := self.problem.replaced[shape]:
                self._retained[shape] = self._after_lost(shape, running, admitted, lost)
            else:
                self._retained[shape] = self._least_of(running, admitted)
        return self._retained[shape]

    def _after_others(self, shape: int, running: int, admitted: Linear) -> Linear:
        """Return what stays in place, and what else of `running` is needed once all others are admitted."""
        others = self.problem.shapes[shape].demand - running
        variable = Linear.of(self.model.integer(0, running))
        self.model.require(variable.minus(self._kept(shape)), lower=0)
        self.model.require(variable.minus(admitted).plus(others), lower=0)
        self.model.require(variable.minus(admitted), upper=0)
        return variable

    def _after_lost(self, shape: int, running: int, admitted: Linear, lost: int) -> Linear:
        """Return what stays in place, and what else of `running` is needed once all that was lost is admitted."""
        variable, all_stay = Linear.of(self.model.integer(0, running)), Literal(self.model.boolean())
        self.model.require(variable.minus(self._kept(shape)), lower=0)
        self.model.require(variable, lower=running, when=all_stay)  # then others may come as well
        self.model.require(variable.minus(admitted), lower=-lost, when=~all_stay)
        self.model.require(variable.minus(admitted), upper=0)
        return variable

    def _least_of(self, running: int, admitted: Linear) -> Linear:
        if admitted.is_constant or self.model.range_of(admitted)[0] >= running:
            return Linear(constant=min(running, admitted.constant) if admitted.is_constant else running)
        variable = Linear.of(self.model.integer(0, running))
        all_stay = Literal(self.model.boolean())
        self.model.require(variable.minus(admitted), upper=0)
        self.model.require(variable, lower=running, when=all_stay)
        self.model.require(variable.minus(admitted), lower=0, when=~all_stay)
        return variable

    def evicted(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role that run, or ran until their place went, are not admitted."""
        shape = self.problem.shapes_of_role.get((workload.id, role.name), -1)
        ran = self.problem.running.get(shape, 0) + self.problem.lost.get(shape, 0)
        if not ran:
            return Linear()
        if shape not in self._gone:
            gone = Linear(constant=ran).minus(self.admitted_shape(shape))
            if shape in self.problem.broken:
                self._gone[shape] = Linear.of(self.model.integer(0, ran))
                self.model.require(self._gone[shape].minus(gone), lower=0)
            else:
                self._gone[shape] = self.model.positive_part(gone)
        return self._gone[shape]

    def moved_role(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role whose place stands today are admitted on another one."""
        shape = self.problem.shapes_of_role.get((workload.id, role.name), -1)
        if not self.problem.running.get(shape, 0):
            return Linear()
        if shape not in self._moved:
            self._moved[shape] = self.retained(workload, role).minus(self._kept(shape))
            if not self._moved[shape].is_constant:
                self.model.require(self._moved[shape], lower=0)
        return self._moved[shape]

    def idle(self, node: str) -> Idle:
        """Refuse to tell: a model that counts nodes together does not know single ones."""
        raise AssertionError(f"what {node} has left is not known where nodes are counted together")
