"""A scripted CLI: the whole protocol, without a model and without the stock CLI.

`cli` has the transport that a test uses, `process` one run of the CLI. Every other module has one
task of a CLI, such as hooks, permissions or results.
"""
