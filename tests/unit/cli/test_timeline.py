"""A history told: alike things once, the order of each process kept, deliveries counted."""

from __future__ import annotations

from ordercast.cli.timeline import Entry, EntryKind, Timeline
from ordercast.model.configuration import ChangeReason
from ordercast.model.effects import Alarm, AlarmKind
from ordercast.model.ids import SECOND, ConfigurationId, Incarnation, Instant, NodeId, process_id_from
from ordercast.model.notes import Moved, Visited
from ordercast.sim.faults import Fault, FaultKind
from ordercast.trace.records import Crashed, DeliveredBatch, DeliveredMessage, Ended, MessageId, Noted

N0, N1 = (process_id_from(NodeId(node), Incarnation(1)) for node in (0, 1))
RING = ConfigurationId(4, N0)
MESSAGE = DeliveredMessage(None, 1, 4, 20, 1, 0)


def moved(at: int, process: int, target: str) -> Noted:
    return Noted(Instant(at), N0 if process == 0 else N1, Moved("Operational", target, ChangeReason.MERGE, "now"))


def texts(timeline: Timeline) -> list[tuple[str, int]]:
    return [(entry.text.split(":")[0], len(entry.processes)) for entry in timeline.entries]


def test_processes_that_do_the_same_share_an_entry() -> None:
    timeline = Timeline()
    for event in (moved(0, 0, "Gather"), moved(5, 1, "Gather")):
        timeline.observe(event)
    assert texts(timeline) == [("Operational → Gather", 2)]
    timeline.observe(moved(SECOND, 1, "Gather"))
    assert len(timeline.entries) == 2


def test_sharing_never_turns_the_order_of_a_process_around() -> None:
    timeline = Timeline()
    for event in (moved(0, 0, "Gather"), moved(1, 1, "Commit"), moved(2, 1, "Gather"), moved(3, 1, "Commit")):
        timeline.observe(event)
    assert texts(timeline) == [
        ("Operational → Gather", 1),
        ("Operational → Commit", 1),
        ("Operational → Gather", 1),
        ("Operational → Commit", 1),
    ]


def test_deliveries_are_counted_by_view_and_told_at_its_end() -> None:
    timeline = Timeline()
    for at in range(3):
        timeline.observe(DeliveredBatch(Instant(at), N0, RING, RING, (MESSAGE, MESSAGE)))
    timeline.observe(Noted(Instant(3), N0, Visited(RING, 1, 1, 1, 1, 1, retransmitted=5, requested=2)))
    timeline.observe(Ended(Instant(4)))
    assert [entry.text for entry in timeline.entries] == ["delivered 6 in view 4.n0: 6 agreed", "the run ends"]
    tally = timeline.tallies[N0]
    assert (tally.delivered, tally.retransmitted, tally.requested) == (6, 5, 2)


def test_deliveries_name_messages_where_that_is_wanted() -> None:
    timeline = Timeline(with_messages=True)
    counters = [(N0, 0, 1), (N0, 0, 2), (N1, 3, 7), (N0, 0, 3), (N0, 0, 5)]
    messages = tuple(MESSAGE._replace(message=MessageId(*one)) for one in counters)
    timeline.observe(DeliveredBatch(Instant(0), N0, RING, RING, messages))
    timeline.observe(Ended(Instant(4)))
    assert timeline.entries[0].text == "delivered 5 in view 4.n0: 5 agreed; n0/0#1..3,5 n1/3#7"


def test_a_scripted_crash_is_told_once_and_another_by_itself() -> None:
    timeline = Timeline()
    timeline.strike(5, Fault(5, FaultKind.CRASH, node=0))
    timeline.observe(Crashed(Instant(5), N0))
    timeline.observe(Crashed(Instant(6), N1))
    timeline.strike(7, Fault(7, FaultKind.HEAL))
    assert [(entry.kind, entry.text) for entry in timeline.entries] == [
        (EntryKind.FAULT, "crash n0"),
        (EntryKind.LIFE, "crashed"),
        (EntryKind.REPAIR, "heal"),
    ]


def test_alarms_go_to_their_place_in_time() -> None:
    timeline = Timeline([Entry(1, EntryKind.LIFE, "started"), Entry(9, EntryKind.LIFE, "crashed")])
    timeline.alarm(5, N0, Alarm(AlarmKind.PAUSED, "for 80 ms"))
    assert [entry.at for entry in timeline.entries] == [1, 5, 9]
    assert timeline.entries[1].text == "paused: for 80 ms"
