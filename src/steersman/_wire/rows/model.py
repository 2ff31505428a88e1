"""Which model, what it is told, and what it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman._wire.draft import Draft, Row, greeting, value
from steersman.options import checks

__all__ = ["MODEL"]


def _add_fallbacks(draft: Draft, models: str | tuple[str, ...] | None) -> None:
    if models is not None:
        names = models if isinstance(models, str) else ",".join(models)
        draft.argv.append(f"--fallback-model={names}")


def _add_system_prompt(draft: Draft, prompt: Any) -> None:
    if prompt is None:
        return
    if isinstance(prompt, str | tuple):
        _set_prompt(draft, prompt)
    elif prompt.get("type") == "file":
        draft.argv.append(f"--system-prompt-file={prompt['path']}")
    else:
        _add_form(draft, prompt)


def _add_form(draft: Draft, form: Mapping[str, Any]) -> None:
    if "prompt" in form:
        _set_prompt(draft, form["prompt"])
    _append_system_prompt(draft, form.get("append"))
    for name, field in _FORM.items():
        if name in form:
            draft.initialize[field] = form[name]


_FORM = {
    "snapshot": "system_prompt_snapshot",
    "exclude_dynamic_sections": "exclude_dynamic_sections",
}


def _set_prompt(draft: Draft, prompt: Any) -> None:
    draft.initialize["system_prompt"] = [prompt] if isinstance(prompt, str) else list(prompt)


def _append_system_prompt(draft: Draft, text: str | None) -> None:
    before = draft.initialize.get("append_system_prompt")
    if text:
        draft.initialize["append_system_prompt"] = f"{before}\n\n{text}" if before else text


def _add_thinking(draft: Draft, thinking: Mapping[str, Any] | None) -> None:
    if thinking is None:
        return
    if thinking["type"] == "enabled":
        draft.argv.append(f"--max-thinking-tokens={thinking['budget_tokens']}")
    else:
        draft.argv.append(f"--thinking={thinking['type']}")
    if "display" in thinking:
        draft.argv.append(f"--thinking-display={thinking['display']}")


def _add_thinking_tokens(draft: Draft, tokens: int | None) -> None:
    if tokens is not None:
        draft.argv.append(f"--max-thinking-tokens={tokens}" if tokens else "--thinking=disabled")


def _add_betas(draft: Draft, betas: tuple[str, ...]) -> None:
    if betas:
        draft.argv.append(f"--betas={','.join(betas)}")


def _add_task_budget(draft: Draft, budget: Mapping[str, int] | None) -> None:
    if budget is not None:
        draft.argv.append(f"--task-budget={budget['total']}")


def _add_output_format(draft: Draft, wanted: Mapping[str, Any] | None) -> None:
    if wanted is not None:
        draft.initialize["json_schema"] = checks.plain("output_format", wanted["schema"])


MODEL: Mapping[str, Row] = {
    "model": value("--model"),
    "fallback_model": Row("`--fallback-model`", _add_fallbacks),
    "system_prompt": Row(
        "initialize: `system_prompt`, `append_system_prompt`; a file by `--system-prompt-file`",
        _add_system_prompt,
    ),
    "append_system_prompt": Row("initialize: `append_system_prompt`", _append_system_prompt),
    "exclude_dynamic_sections": greeting("exclude_dynamic_sections"),
    "thinking": Row("`--thinking`, `--max-thinking-tokens`, `--thinking-display`", _add_thinking),
    "max_thinking_tokens": Row(
        "`--max-thinking-tokens`; 0 is `--thinking=disabled`", _add_thinking_tokens
    ),
    "effort": value("--effort"),
    "betas": Row("`--betas`", _add_betas),
    "max_turns": value("--max-turns"),
    "max_budget_usd": value("--max-budget-usd"),
    "task_budget": Row("`--task-budget`", _add_task_budget),
    "output_format": Row("initialize: `json_schema`", _add_output_format),
}
