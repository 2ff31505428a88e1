"""The pieces that are played, by the sections of the protocol that they prove."""
