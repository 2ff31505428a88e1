"""The engine of a fleet over processes: jobs and segments as workflows of DBOS."""
