"""A CLI that is a script: the whole protocol, no model and no stock CLI behind it.

`cli` is what a test holds, `process` is one run of it; each other file is one duty of a CLI.
"""
