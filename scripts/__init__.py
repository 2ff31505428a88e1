"""Programs for those who work on steersman; not part of the package."""
