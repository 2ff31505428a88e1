"""What was seen, for those who look later."""

from steersman.observe.recorder import FlightRecord, record

__all__ = ["FlightRecord", "record"]
