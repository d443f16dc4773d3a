"""Recoveries that fail at the worst moment, played exactly. (Paper, section 4.3, Figures 4.15 and 4.16)"""

from __future__ import annotations

from .scenes import Gap, LatePacket, Promised


def test_who_promised_and_was_cut_off_delivers_in_its_own_transitional_configuration() -> None:
    scene = Promised()
    assert scene.run().is_valid
    installed, cut_off = scene.story(scene.first), scene.story(scene.next)
    assert installed[:6] == [f"[{scene.first}]", f"({scene.first})", "[0 1 2 3]", "(0 1 2)", "n0", "[0 1 2]"]
    assert cut_off[2:6] == ["[0 1 2 3]", f"({scene.next})", "n0", f"[{scene.next}]"]


def test_a_message_beyond_a_gap_is_dropped_when_its_sender_is_gone_and_delivered_when_not() -> None:
    scene = Promised()
    scene.run()
    stories = [scene.story(node) for node in range(4)]
    assert all("n3" not in story for story in stories[:3]), "it is missing at all who go on without its sender"
    assert all("n0" in story for story in stories[:3])


def test_a_packet_of_the_old_ring_that_comes_after_the_promise_changes_nothing() -> None:
    scene = LatePacket()
    assert scene.run().is_valid
    assert scene.lost, "n3's packet existed"
    together = [node for node in range(3) if node != scene.first]
    assert scene.story(together[0])[2:] == scene.story(together[1])[2:]


def test_beyond_a_gap_nothing_of_a_departed_sender_is_delivered() -> None:
    scene = Gap()
    assert scene.run().is_valid
    assert [scene.story(node).count("n3") for node in range(4)] == [0, 0, 0, 2]
