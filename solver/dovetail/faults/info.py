"""What a table of fault codes holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """What one fault code means.

    Parameters
    ----------
    title
        A few words, for lists.
    explanation
        One to three sentences: what is wrong and what to do about it.
    """

    title: str
    explanation: str
