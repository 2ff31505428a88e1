"""Reads the skills and plugins on this machine before a CLI does.

for skill in discover(project="."):
    print(skill.name, skill.description)
"""

from steersman.skills.discovery import (
    PluginManifest,
    Skill,
    check_plugins,
    discover,
    read_plugin,
    read_skill,
    user_directory,
)
from steersman.skills.front_matter import split_front_matter

__all__ = [
    "PluginManifest",
    "Skill",
    "check_plugins",
    "discover",
    "read_plugin",
    "read_skill",
    "split_front_matter",
    "user_directory",
]
