"""Files about what happened before an error."""

from steersman.observe.flight_recorder import FlightRecord, record

__all__ = ["FlightRecord", "record"]
