"""The judges' structures in one thread, and the real ones, give the same: results, and what readers see."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.checker.replicated.sequential import Caller
from ordercast.checker.replicated.sequential_owned import model_of
from ordercast.replicated.machine import Origin
from ordercast.replicated.structures.base import BACK_COMMAND, Owned, Owner, gone_command
from ordercast.sim.users import STRUCTURES, kind_of, user_of

OWNERS = [Owner("a@n0", 1), Owner("b@n1", 2), Owner("b@n1", 3), Owner("c@n2", 4)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", STRUCTURES)
def test_a_model_does_what_the_structure_does(kind: str, seed: int) -> None:
    rng = Random(seed)
    made, numbers = kind_of(kind)
    structure, model = made(*numbers), model_of(kind)
    users = [user_of(structure, owner) for owner in OWNERS]
    for position in range(1, 300):
        number = rng.randrange(len(OWNERS))
        command = users[number].operation(rng)
        if isinstance(structure, Owned) and rng.random() < 0.1:
            command = gone_command(rng.sample(OWNERS, 2)) if rng.random() < 0.5 else BACK_COMMAND
        owner = OWNERS[number]
        result = structure.apply(command, Origin(owner.name, owner.life, 1, position))
        assert model.result(command, Caller(*owner), position) == result
        question = users[number].question(rng)
        assert model.answer(question) == users[number].answer(question)


def test_commands_that_make_no_sense_are_said_to() -> None:
    for kind in STRUCTURES:
        with pytest.raises(ValueError):
            model_of(kind).result(b"\x63" + bytes(3), Caller("a", 1), 1)
