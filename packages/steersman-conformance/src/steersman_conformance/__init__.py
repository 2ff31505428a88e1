"""Checks whether a CLI still speaks the protocol that steersman relies on.

A scene is a short conversation with a real CLI and a scripted model; its checks examine the
messages. `runner` plays the scenes, `verdicts` compares the observations with the expectations and
with the baseline of the version, `report` prints them. The command is `steersman conform`.
"""
