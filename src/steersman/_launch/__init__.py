"""Options → argv, environment, private files and the initialize request. Pure: no I/O."""
