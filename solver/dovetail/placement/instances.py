"""Which MIG instances may hold a request (S2.7, S3.4)."""

from __future__ import annotations

from dovetail.mig import Profile, multisets
from dovetail.spec import Accelerator, Request, Share
from dovetail.spec.workload import MILLI


def share_memory(request: Request, card: int) -> int:
    """Return the GPU memory that a request for a share takes, 0 without one; see `memory_of`.

    The request is one that tells what is asked of this card (`Request.on`).
    """
    return 0 if request.share is None else memory_of(request.share, card)


def memory_of(share: Share, card: int) -> int:
    """Return the GPU memory a share takes, in thousandths of a MiB, on a card of `card` MiB.

    A share without a memory figure takes the same fraction of the card (S2.2), which need not be whole MiB;
    thousandths keep it exact.
    """
    return share.compute * card if share.memory is None else MILLI * share.memory


def holds(profile: Profile, request: Request, card: int, accelerator: str | None) -> bool:
    """Tell whether an instance of a profile, on a GPU of `card` MiB, may hold a request.

    A request for a profile lands on that very profile; a share on one that offers its peak and its memory, and on
    which its service knows its rate.
    """
    request = request.on(accelerator)
    share = request.share
    if share is None or not request.may_use_mig:
        return bool(request.mig) and request.mig == profile.name
    peak = max(share.peak, share.compute)
    fits = peak <= profile.milli and share_memory(request, card) <= MILLI * profile.memory
    return fits and share.rate(accelerator, profile.name) is not None


def profiles_for(request: Request, accelerator: Accelerator | None) -> tuple[Profile, ...]:
    """Return the profiles of a product that may hold a request, in the order of its table."""
    if accelerator is None or accelerator.mig is None or not request.may_use_mig:
        return ()
    own = request.on(accelerator.name)
    return tuple(p for p in accelerator.mig.profiles if holds(p, own, accelerator.memory, accelerator.name))


def least_profiles(request: Request, accelerator: Accelerator | None) -> tuple[Profile, ...]:
    """Return those profiles that may hold a request and that no other one could always stand in for."""
    found = profiles_for(request, accelerator)
    share, model = request.share, accelerator.name if accelerator else None
    rates = [(share.rate(model, profile.name) or 0) if share else 0 for profile in found]
    ranks = sorted(range(len(found)), key=lambda i: (-rates[i], i))
    best_first = [found[i] for i in ranks]
    beaten = {
        p.name
        for i, p in enumerate(best_first)
        for j, q in enumerate(best_first)
        if rates[ranks[j]] >= rates[ranks[i]] and _stands_in(q, p, j < i) and _never_short(accelerator, q, p)
    }
    return tuple(profile for profile in found if profile.name not in beaten)


def _never_short(accelerator: Accelerator | None, other: Profile, profile: Profile) -> bool:
    """Tell whether no layout has more instances of two profiles than there may be of the one that would stand in."""
    geometry = accelerator.mig if accelerator else None
    counts = multisets(geometry) if geometry is not None else ()
    return all(each.get(other.name, 0) + each.get(profile.name, 0) <= other.maximum for each in counts)


def _stands_in(other: Profile, profile: Profile, first: bool) -> bool:
    """Tell whether wherever an instance of one profile can be, one of the other could be instead."""
    if other.name == profile.name:
        return False
    fits = (
        other.compute <= profile.compute
        and other.size <= profile.size
        and other.maximum >= profile.maximum
        and set(profile.starts) <= set(other.starts)
        and all(amount <= profile.engines.get(name, 0) for name, amount in other.engines.items())
    )
    alike = (other.compute, other.size, other.maximum) == (profile.compute, profile.size, profile.maximum)
    return fits and (not alike or dict(other.engines) != dict(profile.engines) or first)
