"""What is kept may be given. mypy and pyright read this file, and must mark nothing.

`tests/house/test_keywords.py` checks that no option is missing here.
"""

from __future__ import annotations

from steersman import Options
from steersman.options import OptionKwargs


def given(o: Options) -> OptionKwargs:
    """Return every option, by keyword, in the order of the fields."""
    return {
        **_model(o),
        **_tools(o),
        **_place(o),
        **_conversation(o),
        **_reports(o),
        **_host(o),
    }


def _model(o: Options) -> OptionKwargs:
    return {
        "model": o.model,
        "fallback_model": o.fallback_model,
        "system_prompt": o.system_prompt,
        "append_system_prompt": o.append_system_prompt,
        "exclude_dynamic_sections": o.exclude_dynamic_sections,
        "thinking": o.thinking,
        "max_thinking_tokens": o.max_thinking_tokens,
        "effort": o.effort,
        "betas": o.betas,
        "max_turns": o.max_turns,
        "max_budget_usd": o.max_budget_usd,
        "task_budget": o.task_budget,
        "output_format": o.output_format,
    }


def _tools(o: Options) -> OptionKwargs:
    return {
        "tools": o.tools,
        "allowed_tools": o.allowed_tools,
        "disallowed_tools": o.disallowed_tools,
        "tool_aliases": o.tool_aliases,
        "tool_config": o.tool_config,
        "functions": o.functions,
        "mcp_servers": o.mcp_servers,
        "require": o.require,
        "strict_mcp_config": o.strict_mcp_config,
        "permission_mode": o.permission_mode,
        "allow_dangerously_skip_permissions": o.allow_dangerously_skip_permissions,
        "permission_prompt_tool_name": o.permission_prompt_tool_name,
        "permission_prompts": o.permission_prompts,
        "deps": o.deps,
        "policy": o.policy,
        "can_use_tool": o.can_use_tool,
        "ask_every_call": o.ask_every_call,
        "on_question": o.on_question,
        "inbox": o.inbox,
        "plan_mode_instructions": o.plan_mode_instructions,
        "hooks": o.hooks,
        "on_elicitation": o.on_elicitation,
        "on_user_dialog": o.on_user_dialog,
        "supported_dialog_kinds": o.supported_dialog_kinds,
        "agents": o.agents,
        "agent": o.agent,
        "skills": o.skills,
        "plugins": o.plugins,
        "plugin_delivery": o.plugin_delivery,
        "sandbox": o.sandbox,
    }


def _place(o: Options) -> OptionKwargs:
    return {
        "cwd": o.cwd,
        "add_dirs": o.add_dirs,
        "project_config_root": o.project_config_root,
        "cli_path": o.cli_path,
        "user": o.user,
        "env": o.env,
        "inherit_env": o.inherit_env,
        "client_app": o.client_app,
        "setting_sources": o.setting_sources,
        "memory": o.memory,
        "skill_commands": o.skill_commands,
        "settings": o.settings,
        "managed_settings": o.managed_settings,
        "extra_args": o.extra_args,
    }


def _conversation(o: Options) -> OptionKwargs:
    return {
        "session_id": o.session_id,
        "resume": o.resume,
        "continue_conversation": o.continue_conversation,
        "fork_session": o.fork_session,
        "resume_session_at": o.resume_session_at,
        "resume_drops_turn": o.resume_drops_turn,
        "persist_session": o.persist_session,
        "wait": o.wait,
        "title": o.title,
        "enable_file_checkpointing": o.enable_file_checkpointing,
        "session_store": o.session_store,
        "session_store_flush": o.session_store_flush,
        "load_timeout": o.load_timeout,
    }


def _reports(o: Options) -> OptionKwargs:
    return {
        "include_partial_messages": o.include_partial_messages,
        "include_hook_events": o.include_hook_events,
        "forward_subagent_text": o.forward_subagent_text,
        "agent_progress_summaries": o.agent_progress_summaries,
        "prompt_suggestions": o.prompt_suggestions,
        "per_task_stop_affordance": o.per_task_stop_affordance,
        "verbatim_prompts": o.verbatim_prompts,
        "debug": o.debug,
        "debug_file": o.debug_file,
    }


def _host(o: Options) -> OptionKwargs:
    return {
        "stderr": o.stderr,
        "allow_old_cli": o.allow_old_cli,
        "allow_unsafe_cli": o.allow_unsafe_cli,
        "startup": o.startup,
        "request_timeout": o.request_timeout,
        "close_grace": o.close_grace,
        "watchdog": o.watchdog,
        "budget": o.budget,
        "limits": o.limits,
        "revive": o.revive,
        "park": o.park,
        "journal": o.journal,
        "sinks": o.sinks,
        "journal_memory": o.journal_memory,
        "flight_recorder": o.flight_recorder,
        "max_buffer_size": o.max_buffer_size,
    }
