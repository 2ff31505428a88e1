"""What a test needs: a scripted model, a safe home for the stock CLI.

`script` says what the model does, `model` serves it on loopback, `sandbox` holds the CLI.
"""
