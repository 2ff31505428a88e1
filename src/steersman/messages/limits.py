"""Messages about retries, rate limits, refusals and logins."""

from __future__ import annotations

from msgspec import field

from steersman._json import Json
from steersman._struct import WireStruct
from steersman.messages.base import MessageWire
from steersman.messages.system import SystemWire

__all__ = [
    "ApiRetry",
    "AuthStatus",
    "LimitMessage",
    "ModelFallback",
    "ModelRefusalFallback",
    "ModelRefusalNoFallback",
    "RateLimitEvent",
    "RateLimitInfo",
]


class ApiRetry(SystemWire, frozen=True, kw_only=True, tag="api_retry"):
    """A request to the API failed, and the CLI will retry it."""

    attempt: int = 0
    max_retries: int = 0
    retry_delay_ms: float = 0
    error_status: int | None = None
    error: str = ""
    no_response: bool | None = None


class RateLimitInfo(WireStruct, frozen=True, kw_only=True, rename="camel"):
    """The state of a rate limit of the subscription, and when it resets."""

    status: str = ""
    resets_at: float | None = None
    """Seconds since 1970."""
    rate_limit_type: str | None = None
    utilization: float | None = None
    overage_status: str | None = None
    overage_resets_at: float | None = None
    overage_disabled_reason: str | None = None
    is_using_overage: bool | None = None
    overage_in_use: bool | None = None
    overage_enabled: bool | None = None
    surpassed_threshold: float | None = None
    limit_scope: Json = None
    error_code: str | None = None
    can_user_purchase_credits: bool | None = None
    has_chargeable_saved_payment_method: bool | None = None


class RateLimitEvent(MessageWire, frozen=True, kw_only=True, tag="rate_limit_event"):
    """A rate limit of the subscription is close, reached, or reset."""

    rate_limit_info: RateLimitInfo = field(default_factory=RateLimitInfo)
    session_id: str = ""
    uuid: str | None = None


class ModelFallback(SystemWire, frozen=True, kw_only=True, tag="model_fallback"):
    """The turn continues with the model of `fallback_model=`, because the first one failed."""

    trigger: str = ""
    """Why: `overloaded`, `server_error`, `model_not_found`, `permission_denied`, and others."""
    original_model: str = ""
    fallback_model: str = ""
    content: str = ""
    """A sentence for users."""


class ModelRefusalFallback(SystemWire, frozen=True, kw_only=True, tag="model_refusal_fallback"):
    """A model refused and another one answers; do not show the retracted messages any more."""

    trigger: str = ""
    direction: str = ""
    scope: str | None = None
    original_model: str = ""
    fallback_model: str = ""
    request_id: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    retracted_message_uuids: list[str] = []
    refused_user_message_uuid: str | None = None
    content: str = ""


class ModelRefusalNoFallback(
    SystemWire, frozen=True, kw_only=True, tag="model_refusal_no_fallback"
):
    """The model refused, and there is no other model to answer."""

    original_model: str = ""
    request_id: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    refused_user_message_uuid: str | None = None
    content: str = ""


class AuthStatus(MessageWire, frozen=True, kw_only=True, tag="auth_status"):
    """A login is in progress, or has failed."""

    is_authenticating: bool = field(default=False, name="isAuthenticating")
    output: list[str] = []
    error: str | None = None
    session_id: str = ""
    uuid: str | None = None


LimitMessage = (
    ApiRetry
    | RateLimitEvent
    | ModelFallback
    | ModelRefusalFallback
    | ModelRefusalNoFallback
    | AuthStatus
)
