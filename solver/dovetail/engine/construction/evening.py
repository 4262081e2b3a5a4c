"""Replicas that must be spread without any difference: what domains are ahead by is taken off again.

Replicas come one by one, and one alone is ahead of every domain that has none. So construction lets them come uneven
(`Gates.leeway`), and before it hands out what it has placed, the last ones go that found no match elsewhere.
"""

from __future__ import annotations

from collections import Counter

from dovetail.engine.construction.placing import Outlooks, Put
from dovetail.rules.guards import SkewGuard, domain_of
from dovetail.spec import Workload


def even_out(outlooks: Outlooks, workload: Workload, puts: list[Put]) -> bool:
    """Take off of a workload what domains are ahead by, the last first; tell whether anything was taken off.

    What was uneven before, and cannot be made even, stays as it came: it is no more uneven by that.

    Parameters
    ----------
    puts : what was placed of it last, from which is removed what goes.
    """
    gates = outlooks.field.gates
    if not (puts and gates.exact):
        return False
    shape, placed = puts[0][1], len(puts)
    exact = [guard for guard in gates.even(shape) if not guard.skew]
    while any(_levelled(outlooks, workload, guard, puts) for guard in exact):
        pass
    # What one policy has gone for may be missing to another.
    if len(puts) < placed and gates.ahead(shape):
        _take_off(outlooks, puts, list(reversed(puts)))
    return len(puts) < placed


def _levelled(outlooks: Outlooks, workload: Workload, guard: SkewGuard, puts: list[Put]) -> bool:
    """Take off what domains are ahead by, where all of that was placed last; tell whether anything was taken off."""
    nodes = outlooks.field.problem.nodes
    ahead = Counter(guard.ahead(workload))
    going = list[Put]()
    for put in reversed(puts) if ahead else ():
        path = domain_of(guard.level, guard.scope, nodes[put[0]], None)
        if path is not None and ahead[path] > 0:
            ahead[path] -= 1
            going.append(put)
    if +ahead:
        return False
    _take_off(outlooks, puts, going)
    return bool(going)


def _take_off(outlooks: Outlooks, puts: list[Put], going: list[Put]) -> None:
    for put in going:
        outlooks.undo([put[1]], [put])
        puts.remove(put)
