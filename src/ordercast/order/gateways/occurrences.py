"""Rare events of a network of rings, that a campaign must have seen before it may call the code tested."""

from __future__ import annotations

from enum import Enum


class NetworkOccurrence(Enum):
    BIRTH = "ring took its predecessor's place"
    MERGE = "rings merged"
    MERGE_BY_RESIDUAL = "merge completed in a transitional configuration"
    GIVEN_UP_BEFORE_MARKS = "merge given up before all had marked"
    GIVEN_UP_AFTER_MARKS = "merge given up after all had marked"
    TWO_MINDS = "some merged and others gave up, and stayed connected"
    SELF_MERGE = "component merged with itself"
    TWO_MERGES = "two merges pending at one gateway"
    ALONE_AT_MERGE = "came alone to a merge"
    BOTH_HALVES = "both halves of a split ring stayed in the network"
    CLAIMED_TWICE = "member claimed by two rings"
    RESIDUAL = "packet of an ended ring's transitional configuration delivered"
    RESIDUAL_IN_HALVES = "halves of a ring had different residual packets"
    DELETED = "ring deleted that was cut off"
    BACK = "deleted ring brought back by a merge"
    LEFT_BEFORE_RESIDUAL = "members in no half left before a residual packet"
    LEFT_BEFORE_SAFE = "members left before a safe packet that they may lack"
    KEPT_FOR_LINK = "item kept for a link to begin"
    BEFORE_LINK = "item dropped that is older than its link"
    UNLINKED = "item dropped over a link that this process never had"
    CAP_TOLD = "front told just below a pending merge"
    HELD = "users held back"
    FILTERED = "packet not carried because nobody there wants it"
    INTEREST_RAISED = "more groups wanted"
    FORGOTTEN = "past forgotten that everybody has passed"
