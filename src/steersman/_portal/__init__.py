"""An event loop in a daemon thread, for code that cannot await. Knows no session."""
