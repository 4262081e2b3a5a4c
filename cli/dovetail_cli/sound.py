"""Plans that a command goes on from: made for these documents, and as the verifier has them."""

from __future__ import annotations

from dovetail.verify import Verification
from dovetail_cli.exit_codes import Finding
from dovetail_cli.problems import CommandError


def check(found: Verification, hint: str | None = None) -> None:
    """End a command whose plan was made for other documents or another state, or does not verify.

    Parameters
    ----------
    hint : what to do instead where the plan is stale.
    """
    if found.stale:
        raise CommandError(Finding.STALE, "the plan was made for other documents, or from another state", hint)
    if found.broken:
        raise CommandError(Finding.BROKEN, f"the plan {found.name} does not verify", "dovetail verify says why")
