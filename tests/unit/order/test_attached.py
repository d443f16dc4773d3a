"""The place of a ring in a network of rings: ids that name the domain."""

from __future__ import annotations

import pytest

from ordercast.model.errors import UsageError
from ordercast.model.ids import ConfigurationId, ProcessId
from ordercast.order.attached import DOMAIN_MAX, SEQ_STEP, Attached, next_ring_seq
from ordercast.order.clock import Clock
from ordercast.order.gateways.items import domain_of, merged_id


def test_rings_of_two_domains_never_have_one_seq() -> None:
    seqs = [next_ring_seq(highest, domain) for domain in range(DOMAIN_MAX + 1) for highest in (5000, 6000)]
    named = [seq + more for seq in seqs for more in (0, 1, -2)]  # the ring, its merge, its transitional configuration
    assert len(set(named)) == len(named)


@pytest.mark.parametrize("domain", [0, 1, DOMAIN_MAX])
def test_a_ring_is_above_all_and_names_its_domain(domain: int) -> None:
    for highest in (0, 1, SEQ_STEP - 1, SEQ_STEP, SEQ_STEP + 4 * domain + 1, 10**9):
        ring = ConfigurationId(next_ring_seq(highest, domain), ProcessId(9))
        assert highest < ring.seq - 2 and ring.seq <= highest + 2 * SEQ_STEP
        assert domain_of(ring) == domain_of(merged_id(ring)) == domain


def test_a_ring_that_stands_alone_counts_by_four() -> None:
    assert next_ring_seq(8, None) == 12


def test_a_place_that_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match=r"outside 0\.\.255"):
        Attached(256, "office", Clock())
    with pytest.raises(UsageError, match="share"):
        Attached(1, "office", Clock(), share=0.5)
