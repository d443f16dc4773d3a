"""Conversations with one node. (Paper, chapter 4; the sections are named in tests/conformance)"""

from __future__ import annotations

from .conversation import play

MEETING = """
    > start
      < persist configuration_seq 4
    > written
      < view 4.n2 [n2], STARTED
      < * Starting → Operational: the first view of this life
    > wait 0
      < broadcast announcement 4.n2 {n2} hears {}
    > announce n1 ring=4.n1 members=n1 heard=n2,n3
    > announce n3 ring=4.n3 members=n3 heard=n1,n2
    > join n1 {n1 n2 n3} failed {} ring_seq=4 number=1
      < * Operational → Gather for MERGE: proposing {n1, n2, n3}
      < broadcast join {n1 n2 n3} failed {} ring_seq=4 number=1 forwards=0
    > join n3 {n1 n2 n3} failed {} ring_seq=4 number=1
    > commit 8.n1 #1 n1:4.n1/0/0 n2:? n3:?
      < * Gather → Commit: ring 8.n1
      < to n3: commit 8.n1 #2 n1:4.n1/0/0 n2:4.n2/0/0 n3:?
      < persist configuration_seq 8
    > written
    > commit 8.n1 #4 n1:4.n1/0/0 n2:4.n2/0/0 n3:4.n3/0/0
      < * Commit → Recovery: ring 8.n1
      < to n3: commit 8.n1 #5 n1:4.n1/0/0 n2:4.n2/0/0 n3:4.n3/0/0
    > token 8.n1 #7 seq=0 aru=0
      < to n3: token 8.n1 #8 seq=0 aru=0
    > token 8.n1 #10 seq=0 aru=0
      < to n3: token 8.n1 #11 seq=0 aru=0
      < * promise to deliver made
    > token 8.n1 #13 seq=0 aru=0
      < to n3: token 8.n1 #14 seq=0 aru=0
      < view 6.n2 (n2), MERGE
      < view 8.n1 [n1 n2 n3], MERGE
      < * Recovery → Operational: installed ring 8.n1
"""


def test_three_strangers_become_a_ring() -> None:
    """n2 starts, hears n1 and n3, and is taken along: both rotations of the Commit token, three quiet visits."""
    play(MEETING)


def test_a_message_is_lost_and_asked_for() -> None:
    """Packet 2 does not come. n2 says so on the visit after the next, gets it, and delivers in order."""
    play(
        """
        -- all is well
        > data 8.n1 1 n1 one
          < deliver 1 one in 8.n1
        > token 8.n1 #16 seq=1 aru=1
          < to n3: token 8.n1 #17 seq=1 aru=1
        -- packet 2 is lost, 3 comes
        > data 8.n1 3 n3 three
        > submit four
          < to n3: wake 8.n1
        > token 8.n1 #19 seq=3 aru=3
          < broadcast data 8.n1 4 n2
          < to n3: token 8.n1 #20 seq=4 aru=1 by=n2
        > token 8.n1 #22 seq=4 aru=1 by=n2
          < to n3: token 8.n1 #23 seq=4 aru=1 by=n2 requests=2
        -- somebody sends it again
        > data 8.n1 2 n1 two
          < deliver 2 two in 8.n1
          < deliver 3 three in 8.n1
          < deliver 4 four in 8.n1
        > token 8.n1 #25 seq=4 aru=1 by=n2
          < to n3: token 8.n1 #26 seq=4 aru=4
        -- n3 asks for what n2 holds
        > token 8.n1 #28 seq=4 aru=3 by=n3 requests=4
          < broadcast data 8.n1 4 n2 again
          < to n3: token 8.n1 #29 seq=4 aru=3 by=n3
        """,
        after=MEETING,
    )


def test_a_safe_message_waits_for_two_rotations() -> None:
    """And the agreed one behind it waits with it."""
    play(
        """
        > submit safe careful
          < to n1: wake 8.n1
        > token 8.n1 #16 seq=0 aru=0
          < broadcast data 8.n1 1 n2 safe
          < to n3: token 8.n1 #17 seq=1 aru=1
        > data 8.n1 2 n3 hasty
        > token 8.n1 #19 seq=2 aru=1 by=n3
          < to n3: token 8.n1 #20 seq=2 aru=1 by=n3
          < deliver 1 careful in 8.n1
          < deliver 2 hasty in 8.n1
        > token 8.n1 #22 seq=2 aru=2
          < to n3: token 8.n1 #23 seq=2 aru=2
        """,
        after=MEETING,
    )


def test_the_token_gets_lost() -> None:
    """It is sent again until a packet shows that it went on; a second copy that comes here is refused."""
    play(
        """
        > submit busy
          < to n1: wake 8.n1
        > token 8.n1 #16 seq=0 aru=0
          < broadcast data 8.n1 1 n2
          < to n3: token 8.n1 #17 seq=1 aru=1
          < deliver 1 busy in 8.n1
        > wait 40
          < broadcast announcement 8.n1 {n1 n2 n3} hears {n1 n3}
          < to n3: token 8.n1 #17 seq=1 aru=1
          < * token retransmitted
        -- its own packet comes back: no proof
        > data 8.n1 1 n2 busy
        > wait 40
          < to n3: token 8.n1 #17 seq=1 aru=1
          < * token retransmitted
        -- a packet numbered after the token left here
        > data 8.n1 2 n3 proof
          < deliver 2 proof in 8.n1
        > wait 80
        > token 8.n1 #16 seq=0 aru=0
          < * duplicate token refused
        > token 8.n1 #19 seq=2 aru=2
          < to n3: token 8.n1 #20 seq=2 aru=2
        """,
        after=MEETING,
    )


def test_a_resting_ring_is_woken() -> None:
    """Nothing happened for some rotations: the token may rest at n1. When n2 has sent, it rests at n2."""
    play(
        """
        > token 8.n1 #16 seq=0 aru=0
          < to n3: token 8.n1 #17 seq=0 aru=0
        > token 8.n1 #19 seq=0 aru=0
          < to n3: token 8.n1 #20 seq=0 aru=0
        > submit hello
          < to n1: wake 8.n1
        > wait 2
          < broadcast announcement 8.n1 {n1 n2 n3} hears {n1 n3}
          < broadcast wake 8.n1
        > wait 40
          < broadcast wake 8.n1
        > token 8.n1 #22 seq=0 aru=0
          < broadcast data 8.n1 1 n2
          < to n3: token 8.n1 #23 seq=1 aru=1
          < deliver 1 hello in 8.n1
        > token 8.n1 #25 seq=1 aru=1
          < * token rested
        > submit again
          < broadcast data 8.n1 2 n2
          < deliver 2 again in 8.n1
        > wait 2
          < to n3: token 8.n1 #26 seq=2 aru=2
        """,
        after=MEETING,
    )


def test_n3_crashes_and_the_rest_is_exchanged() -> None:
    """n1 misses packet 2; n3, which sent it, is gone. n2 sends it again on the new ring."""
    play(
        """
        > data 8.n1 1 n1 one
          < deliver 1 one in 8.n1
        > data 8.n1 2 n3 two safe
        > token 8.n1 #16 seq=2 aru=1 by=n1
          < to n3: token 8.n1 #17 seq=2 aru=1 by=n1
        -- nothing more comes
        > wait 799
          < broadcast announcement 8.n1 {n1 n2 n3} hears {n1 n3} ×4
          < to n3: token 8.n1 #17 seq=2 aru=1 by=n1 ×19
          < * token retransmitted ×19
        > wait 1
          < to n3: token 8.n1 #17 seq=2 aru=1 by=n1
          < * token retransmitted
          < * Operational → Gather for TOKEN_LOST: proposing {n1, n2, n3}
          < broadcast join {n1 n2 n3} failed {} ring_seq=8 number=2 forwards=0
        > join n1 {n1 n2 n3} failed {} ring_seq=8 number=2
        > wait 250
          < broadcast join {n1 n2 n3} failed {} ring_seq=8 number=2 forwards=0 ×6
          < * Gather → Gather for NO_CONSENSUS: proposing {n1, n2}
          < broadcast join {n1 n2 n3} failed {n3} ring_seq=8 number=3 forwards=0
        > join n1 {n1 n2 n3} failed {n3} ring_seq=8 number=3
        > commit 12.n1 #1 n1:8.n1/1/1 n2:? reason=TOKEN_LOST
          < * Gather → Commit: ring 12.n1
          < to n1: commit 12.n1 #2 n1:8.n1/1/1 n2:8.n1/2/1
          < persist configuration_seq 12
        > commit 12.n1 #3 n1:8.n1/1/1 n2:8.n1/2/1 reason=TOKEN_LOST
        > written
          < * Commit → Recovery: ring 12.n1
          < to n1: commit 12.n1 #4 n1:8.n1/1/1 n2:8.n1/2/1
        > token 12.n1 #5 seq=0 aru=0
          < broadcast wrapped 12.n1 1 (8.n1 2 n3) safe
          < to n1: token 12.n1 #6 seq=1 aru=1
        > token 12.n1 #7 seq=1 aru=1
          < to n1: token 12.n1 #8 seq=1 aru=1
          < * promise to deliver made
        > token 12.n1 #9 seq=1 aru=1
          < to n1: token 12.n1 #10 seq=1 aru=1
          < view 10.n1 (n1 n2), TOKEN_LOST
          < deliver 2 two in 10.n1
          < * safe delivery in a transitional configuration
          < view 12.n1 [n1 n2], TOKEN_LOST
          < * Recovery → Operational: installed ring 12.n1
        """,
        after=MEETING,
    )


def test_a_promise_is_kept_alone() -> None:
    """n2 promised in a recovery with n1 and lost the token before it installed: it delivers in (n2). (Figure 4.16)"""
    play(
        """
        -- 1 is lost for ever; 2 is of n1
        > data 8.n1 2 n1 two
        > wait 800
          < broadcast announcement 8.n1 {n1 n2 n3} hears {n1 n3} ×4
          < * Operational → Gather for TOKEN_LOST: proposing {n1, n2, n3}
          < broadcast join {n1 n2 n3} failed {} ring_seq=8 number=2 forwards=0
        > join n1 {n1 n2 n3} failed {n3} ring_seq=8 number=2
          < * Gather → Gather for TOKEN_LOST: proposing {n1, n2}
          < broadcast join {n1 n2 n3} failed {n3} ring_seq=8 number=3 forwards=0
        > commit 12.n1 #1 n1:8.n1/0/0 n2:? reason=TOKEN_LOST
          < * Gather → Commit: ring 12.n1
          < to n1: commit 12.n1 #2 n1:8.n1/0/0 n2:8.n1/0/0
          < persist configuration_seq 12
        > written
        > commit 12.n1 #3 n1:8.n1/0/0 n2:8.n1/0/0 reason=TOKEN_LOST
          < * Commit → Recovery: ring 12.n1
          < to n1: commit 12.n1 #4 n1:8.n1/0/0 n2:8.n1/0/0
        > token 12.n1 #5 seq=0 aru=0
          < broadcast wrapped 12.n1 1 (8.n1 2 n1)
          < to n1: token 12.n1 #6 seq=1 aru=1
        > token 12.n1 #7 seq=1 aru=1
          < to n1: token 12.n1 #8 seq=1 aru=1
          < * promise to deliver made
        -- the token is lost, and n1 is silent
        > wait 800
          < to n1: token 12.n1 #8 seq=1 aru=1 ×20
          < * token retransmitted ×20
          < * recovery interrupted
          < * Recovery → Gather for RECOVERY_LOST: proposing {n1, n2}
          < broadcast join {n1 n2 n3} failed {n3} ring_seq=12 number=4 forwards=4
        > wait 250
          < broadcast join {n1 n2 n3} failed {n3} ring_seq=12 number=4 forwards=4 ×6
          < * Gather → Gather for NO_CONSENSUS: proposing {n2}
          < broadcast join {n1 n2 n3} failed {n1 n3} ring_seq=12 number=5 forwards=4
          < * Gather → Commit: ring 16.n2
          < persist configuration_seq 16
        > written
          < * Commit → Recovery: ring 16.n2
          < * obligation kept after a failed recovery
          < * kept promise owes other than the new plan
        > wait 0
          < view 14.n2 (n2), TOKEN_LOST
          < deliver 2 two in 14.n2
          < * member's message beyond a gap delivered
          < view 16.n2 [n2], TOKEN_LOST
          < * Recovery → Operational: installed ring 16.n2
          < * token rested
          < broadcast announcement 16.n2 {n2} hears {}
        """,
        after=MEETING,
    )


def test_who_hears_nonsense_stays_where_it_is() -> None:
    """Stale Joins, strangers, Commit tokens and tokens of other rings do not move a member of a healthy ring."""
    play(
        """
        > join n1 {n1 n2 n3} failed {} ring_seq=4 number=9
          < * ignored Join: stale: sent before this ring was formed
        > join n3 {n1 n2 n3} failed {n2} ring_seq=8 number=9
          < * ignored Join: it counts me as failed
        > join n4 {n1 n2 n3 n4} failed {} ring_seq=40 number=1
          < * ignored Join: not everybody here and there hear each other
        > commit 12.n1 #1 n1:8.n1/0/0 n2:? n3:?
          < * ignored CommitToken: a ring is installed
        > token 12.n1 #16 seq=0 aru=0
          < * ignored Token: another ring's token
        > wake-up 12.n1 n1
          < * ignored Wake: another ring's
        > farewell 8.n1 n4
          < * ignored Leave: not a member of this ring
        > data 12.n4 1 n4 foreign
        > token 8.n1 #17 seq=0 aru=0
          < * duplicate token refused
        """,
        after=MEETING,
    )


def test_n2_leaves() -> None:
    """Its last message is received by all before it goes."""
    play(
        """
        > submit last
          < to n1: wake 8.n1
        > leave
        > token 8.n1 #16 seq=0 aru=0
          < broadcast data 8.n1 1 n2
          < to n3: token 8.n1 #17 seq=1 aru=1
          < deliver 1 last in 8.n1
        > token 8.n1 #19 seq=1 aru=1
          < to n3: token 8.n1 #20 seq=1 aru=1
          < * Operational → Gone for LEFT: everything of mine is received by all
          < broadcast leave 8.n1 ×3
          < left
        > token 8.n1 #22 seq=1 aru=1
        """,
        after=MEETING,
    )


def test_alone() -> None:
    """A ring of one: the token goes from n2 to n2."""
    play(
        """
        > start stored=6
          < persist configuration_seq 8
        > submit early
        > written
          < view 8.n2 [n2], STARTED
          < * Starting → Operational: the first view of this life
          < broadcast data 8.n2 1 n2
          < deliver 1 early in 8.n2
        > wait 0
          < * token rested
          < broadcast announcement 8.n2 {n2} hears {}
        > submit safe two three
          < broadcast data 8.n2 2 n2 with 2 safe
        > wait 0
          < deliver 2 two in 8.n2
          < deliver 2 three in 8.n2
          < * token rested
        """
    )
