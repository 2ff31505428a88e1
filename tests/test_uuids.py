from __future__ import annotations

import uuid

from steersman._uuids import new_uuid


def test_a_new_id_is_a_random_uuid() -> None:
    made = {new_uuid() for _ in range(100)}

    assert len(made) == 100
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in made} == {
        (4, uuid.RFC_4122)
    }
    assert all(str(uuid.UUID(each)) == each for each in made)
