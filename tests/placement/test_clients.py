"""What GPUs that are shared by equal parts are set to, on examples small enough to work out by hand (S3.5)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.specs import node

from dovetail.placement.clients import CLOSED, FREE, NODE_POOL, WHOLE, Crowd, Terms, setting_of, terms_of
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


TERMS = [
    Terms(whole, mps, turns, costs)
    for whole in (0, 1)
    for mps in (0, 2, 3)
    for turns in (0, 2, 4)
    for costs in (FREE, (CLOSED, (), ()), ((), CLOSED, ()))
    if whole or mps or turns
]


@given(
    there=st.lists(st.tuples(st.sampled_from(TERMS), st.integers(0, 1)), max_size=4),
    comer=st.sampled_from(TERMS),
    wholes=st.integers(0, 1),
    told=st.none() | st.sampled_from([WHOLE, Setting("mps", 2), Setting("mps", 3), Setting("time-slice", 4)]),
    lenient=st.booleans(),
)
def test_a_client_is_let_in_where_something_suits_all(
    there: list[tuple[Terms, int]], comer: Terms, wholes: int, told: Setting | None, lenient: bool
) -> None:
    """With one more the pool could be set so, or all get by as it is set, and no hard policy minds the newcomer."""
    crowd = Crowd(NODE, {} if told is None else {NODE_POOL: told}, lenient=lenient)
    on = Counter[int]()
    for terms, gpu in there:
        crowd.add(terms, gpu, 1)
        on[gpu] += 1
    crowd.add_whole(1, wholes)
    asked = Counter([*(terms for terms, _ in there), comer])
    for gpu in (0, 1):
        most = max(on[0], on[1], on[gpu] + 1)
        if told is None:
            freed = Counter([terms.free() for terms in asked.elements()]) if lenient else asked
            expected = setting_of(NODE, freed, most, whole=bool(wholes)) is not None
        else:
            expected = most <= told.clients and not (wholes and told.clients > 1)
            expected = expected and all(terms.suffice(told) for terms in asked) and (lenient or comer.allow(told))
        assert crowd.admits(comer, gpu) == expected
    there_only = Counter([terms.free() if lenient else terms for terms, _ in there])
    if told is None:
        lets_whole = setting_of(NODE, there_only, max(on[0], on[1]), whole=True) is not None
    else:
        lets_whole = told.clients == 1 >= max(on[0], on[1]) and all(terms.suffice(told) for terms, _ in there)
    assert crowd.admits_whole(1) == lets_whole
