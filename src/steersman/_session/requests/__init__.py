"""What the CLI requests of us, and how it is answered."""
