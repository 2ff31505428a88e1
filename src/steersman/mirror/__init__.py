"""A conversation in a session store: copied there, and resumed from there."""
