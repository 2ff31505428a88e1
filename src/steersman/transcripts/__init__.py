"""The CLI's own session files: what they contain about a prompt. Pure."""

from steersman.transcripts.lookup import answer_to, has_prompt, is_unfinished, was_folded

__all__ = ["answer_to", "has_prompt", "is_unfinished", "was_folded"]
