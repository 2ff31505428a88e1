"""Whether a CLI still speaks the protocol that steersman relies on.

A scene plays a short piece with a real CLI on a scripted model; its checks look at what happened.
`runner` plays them all, `verdicts` compares with what was expected and with what was recorded for
that version, `report` tells. The command is `steersman conform`.
"""
