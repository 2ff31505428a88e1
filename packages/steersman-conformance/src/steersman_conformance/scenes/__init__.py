"""The scenes and their checks, one module for each topic of the protocol."""
