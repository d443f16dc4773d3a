"""The attacks that an outside look has found, each with the tests that try it on real sockets.

Clusters on loopback are sealed with the key of their user, so that all of this runs against sealed nodes. What needs
the packets of a ring is in `test_attacks_on_rings.py`; floods that last are in `python -m rig.sealed`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
ON_RINGS = "live/test_attacks_on_rings.py"
ANY = "test_no_attack_without_the_key_does_anything"
CLIENTS = "live/test_hostile_clients.py"
ARCHIVE = "live/test_archive.py"
SILENCE = "live/test_replicated_silence.py"

ATTACKS: dict[int, tuple[str, tuple[tuple[str, str], ...]]] = {
    1: (
        "a host that is added ends the others",
        (("live/test_node_lists.py", "test_who_starts_too_early_ends_nobody_and_is_named"),),
    ),
    2: (
        "a full disk and a crash",
        (
            ("runtime/test_disks.py", "test_all_disks_are_full_and_one_host_is_killed"),
            ("runtime/test_disks.py", "test_the_state_folders_are_removed_and_one_host_is_killed"),
        ),
    ),
    3: (
        "a listener freezes replicated state",
        (
            (SILENCE, "test_who_listens_to_the_public_name_sees_nothing_and_stops_nothing"),
            (SILENCE, "test_a_member_that_says_nothing_is_excluded_by_the_others"),
        ),
    ),
    4: ("a Join with numbers that are stored", ((ON_RINGS, ANY),)),
    5: (
        "forged data",
        ((ON_RINGS, ANY), (ON_RINGS, "test_the_same_attack_on_a_cluster_in_the_clear_does_something")),
    ),
    6: ("a token that says that somebody is behind", ((ON_RINGS, ANY),)),
    7: ("a token with a huge timestamp", ((ON_RINGS, ANY),)),
    8: (
        "a ghost",
        ((ON_RINGS, ANY), ("live/test_node_lists.py", "test_nodes_that_cannot_be_reached_from_here_end_nobody")),
    ),
    9: (
        "another user of the machine",
        (
            (ON_RINGS, "test_another_user_of_the_machine_joins_nothing"),
            ("live/test_user_key.py", "test_another_user_is_a_stranger"),
        ),
    ),
    10: (
        "force from who may not",
        (
            (SILENCE, "test_force_counts_from_replicas_alone"),
            ("live/test_rights.py", "test_replicas_and_force_need_rights_of_their_own"),
        ),
    ),
    11: (
        "one client holds everybody up",
        (
            (
                "live/test_slow_clients.py",
                "test_one_who_holds_and_reads_a_frame_now_and_then_is_disconnected_and_named",
            ),
        ),
    ),
    12: (
        "an archiver writes outside its folder",
        (
            (ARCHIVE, "test_a_hostile_archiver_makes_nobody_write_outside_the_folder"),
            (ARCHIVE, "test_who_is_no_archiver_cannot_speak_to_archivers"),
        ),
    ),
    13: ("archives that everybody reads", ((ARCHIVE, "test_an_archive_is_for_its_owner_alone"),)),
    14: (
        "descriptors used up",
        (("runtime/test_descriptors.py", "test_silent_connections_do_not_take_what_the_ring_needs"),),
    ),
    15: (
        "replay",
        (
            (ON_RINGS, "test_a_recorded_start_that_is_sent_again_to_later_lives_does_nothing"),
            ("live/test_sealed.py", "test_nobody_reads_what_is_sealed_and_nothing_repeated_or_forged_counts"),
        ),
    ),
    16: ("Leaves and Joins in the name of others", ((ON_RINGS, ANY),)),
    17: (
        "memory",
        (
            (CLIENTS, "test_frames_without_an_end_are_refused_at_their_headers"),
            (CLIENTS, "test_readers_that_read_nothing_are_kept_within_the_budget"),
        ),
    ),
    18: (
        "many groups, and lists of them",
        ((CLIENTS, "test_lists_of_many_groups_are_told_in_pages_and_the_ring_turns_meanwhile"),),
    ),
    19: ("silent connections", ((CLIENTS, "test_silent_connections_push_out_each_other_and_keep_nobody_out"),)),
    20: (
        "noise",
        ((ON_RINGS, ANY), ("runtime/test_filters.py", "test_strangers_are_dropped_and_a_few_are_shown")),
    ),
    21: (
        "escapes in names",
        (
            ("runtime/test_up.py", "test_three_daemons_serve_clients_and_end_in_order"),
            ("unit/model/test_printable.py", "test_what_a_terminal_would_obey_is_escaped"),
        ),
    ),
    22: (
        "the status read by a web page, and shut by half requests",
        (
            ("unit/daemon/test_http.py", "test_a_web_page_that_calls_this_host_by_its_own_name_reads_nothing"),
            ("unit/daemon/test_http.py", "test_half_requests_keep_nobody_out"),
            ("unit/daemon/test_guard.py", "test_who_shows_the_token_reads_and_who_does_not_learns_nothing"),
        ),
    ),
    23: (
        "files that are odd",
        (("live/test_client_endurance.py", "test_a_folder_that_others_can_write_is_not_trusted"),),
    ),
}


@pytest.mark.parametrize("number", range(1, 24))
def test_every_attack_is_tried(number: int) -> None:
    _, tries = ATTACKS[number]
    for file, name in tries:
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in defined, f"{file} has no {name}"
