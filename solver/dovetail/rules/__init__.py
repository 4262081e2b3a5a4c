"""The rules of policies (S4.1), each one file; `TABLE` is the one place that lists them."""

from collections.abc import Mapping
from types import MappingProxyType

from dovetail.rules.admission import Admission
from dovetail.rules.base import Domain, Guard, NodeTerms, Part, Rule, Told, Violations
from dovetail.rules.claims import Apart, Cap, Claims, Crowd, Together
from dovetail.rules.colocate import Colocate
from dovetail.rules.context import Context, context_of
from dovetail.rules.dropping import without_policy
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.modes import Modes
from dovetail.rules.move import Move
from dovetail.rules.promises import Promises
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.reserve import Reserve
from dovetail.rules.scope import Scope, scope_of, scopes_of
from dovetail.rules.separate import Separate
from dovetail.rules.sharing import Sharing
from dovetail.rules.spread import Spread
from dovetail.rules.strategy import strategy_of
from dovetail.rules.survive import Survive
from dovetail.rules.tolerance import tolerated
from dovetail.rules.topology import policy_of

TABLE: Mapping[str, type[Rule]] = MappingProxyType(
    {
        "separate": Separate,
        "colocate": Colocate,
        "spread": Spread,
        "exclusive": Exclusive,
        "require": Require,
        "forbid": Forbid,
        "sharing": Sharing,
        "quota": Quota,
        "reserve": Reserve,
        "survive": Survive,
        "move": Move,
        "admission": Admission,
    }
)

__all__ = [
    "TABLE",
    "Apart",
    "Cap",
    "Claims",
    "Context",
    "Crowd",
    "Domain",
    "Guard",
    "Modes",
    "NodeTerms",
    "Part",
    "Promises",
    "Rule",
    "Scope",
    "Together",
    "Told",
    "Violations",
    "context_of",
    "policy_of",
    "scope_of",
    "scopes_of",
    "strategy_of",
    "tolerated",
    "without_policy",
]
