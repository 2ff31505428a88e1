"""Programs for developers of steersman. Not part of the package."""
