"""The former address of `steersman.testing.scripted.cli`."""

from steersman.testing.scripted.cli import *
