"""Drive the stock Claude Code CLI from Python."""
