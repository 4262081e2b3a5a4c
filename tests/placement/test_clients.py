"""What GPUs that are shared by equal parts are set to, on examples small enough to work out by hand (S3.5)."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.specs import node

from dovetail.placement.clients import WHOLE, Terms, setting_of, terms_of
from dovetail.spec import EqualParts, Node, Request, Setting, Share

NODE = node("n", 2, mechanism="devicePlugin", sharing=EqualParts(mps=16, oversubscription=1500))
CARD = 40_000


@pytest.mark.parametrize(
    ("share", "terms"),
    [
        (Share(250), Terms(1, 4, 4)),
        (Share(500), Terms(1, 2, 2)),
        (Share(600), Terms(1, 0, 0)),  # half of the memory is not enough, whatever compute may be promised
        (Share(600, 1000), Terms(1, 0, 2)),
        (Share(300, 13_333), Terms(1, 3, 3)),
        (Share(10, 100), Terms(1, 16, 150)),
        (Share(100, 40_001), None),
        (Share(250, barred=("time-slice",)), Terms(1, 4, 0)),
        (Share(250, modes=("mig",)), None),
    ],
)
def test_how_many_clients_a_share_suffers(share: Share, terms: Terms | None) -> None:
    assert terms_of(Request(share=share), NODE, CARD) == terms


@pytest.mark.parametrize(
    ("clients", "most", "whole", "today", "setting"),
    [
        ((Terms(1, 4, 4),), 1, True, None, WHOLE),
        ((Terms(1, 4, 4),), 2, False, None, Setting("mps", 2)),
        ((Terms(1, 4, 4),), 2, True, None, None),
        ((Terms(1, 4, 4), Terms(1, 0, 3)), 3, False, None, Setting("time-slice", 3)),
        ((Terms(1, 4, 4), Terms(1, 0, 3)), 4, False, None, None),
        ((Terms(1, 4, 4),), 1, False, Setting("mps", 4), Setting("mps", 4)),
        ((Terms(1, 4, 4),), 1, True, Setting("mps", 4), WHOLE),
        ((Terms(1, 4, 4),), 2, False, Setting("mps", 5), Setting("mps", 2)),
    ],
)
def test_what_a_pool_is_set_to(
    clients: tuple[Terms, ...], most: int, whole: bool, today: Setting | None, setting: Setting | None
) -> None:
    assert setting_of(NODE, Counter(clients), most, whole=whole, today=today) == setting


def test_a_fixed_number_of_parts() -> None:
    fixed: Node = node("n", 2, mechanism="devicePlugin", sharing=EqualParts(parts=3))
    assert terms_of(Request(share=Share(250)), fixed, CARD) == Terms(1, 3, 3)
    assert terms_of(Request(share=Share(400)), fixed, CARD) == Terms(1, 0, 0)
    assert setting_of(fixed, {Terms(1, 3, 3): 1}, 2, whole=False) == Setting("mps", 3)
    assert setting_of(fixed, {Terms(1, 3, 3): 1}, 2, whole=False, today=Setting("mps", 2)) == Setting("mps", 3)
