"""What is worked out once for a Spec, as that never changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import ref

from dovetail.spec.spec import Spec

T = TypeVar("T")


def once(of: Callable[[Spec], T]) -> Callable[[Spec], T]:
    """Return a function of a Spec that is asked once for each, as long as that Spec is in use.

    Its value must not hold the Spec, which would be in use for ever.
    """
    known: dict[int, tuple[ref[Spec], T]] = {}

    @wraps(of)
    def asked(spec: Spec) -> T:
        key = id(spec)
        found = known.get(key)
        if found is None or found[0]() is not spec:
            found = known[key] = ref(spec, lambda gone: _forget(known, key, gone)), of(spec)
        return found[1]

    return asked


def _forget(known: dict[int, tuple[ref[Spec], T]], key: int, gone: ref[Spec]) -> None:
    """Forget what a Spec came to that is gone, unless another one has its place by now."""
    if key in known and known[key][0] is gone:
        del known[key]
