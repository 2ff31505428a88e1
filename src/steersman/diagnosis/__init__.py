"""Can this machine run a session, and if not, why: `await steersman.doctor()`.

A check is a value, in a file of its own in `checks/`; pass others with `checks=`.
"""

from steersman.diagnosis.machine import Handshake, Machine
from steersman.diagnosis.running import CHECKS, doctor, examine
from steersman.diagnosis.values import Check, Diagnosis, Finding, Status

__all__ = [
    "CHECKS",
    "Check",
    "Diagnosis",
    "Finding",
    "Handshake",
    "Machine",
    "Status",
    "doctor",
    "examine",
]
