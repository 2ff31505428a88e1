// Requests to the bridge. All URLs are relative to the page, so that it may be mounted anywhere.

import { object, type JsonObject } from "./json";
import { keepLogin, login } from "./kept";
import { readFailure, type Failure } from "./protocol";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly failure: Failure,
  ) {
    super(failure.message);
  }
}

const LIMIT = 20_000;
const UPLOAD_LIMIT = 300_000;
const LARGE = 100_000;

/** Sends a request and returns its JSON. Throws `Refused`, also if there is no connection. */
export async function request(method: string, path: string, body?: JsonObject): Promise<JsonObject> {
  const sent = body === undefined ? null : JSON.stringify(body);
  const token = login();
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: "same-origin",
      signal: AbortSignal.timeout((sent ?? "").length > LARGE ? UPLOAD_LIMIT : LIMIT),
      body: sent,
      headers: {
        ...(token ? { Authorization: `Bearer ${token}` } : {}),
        ...(sent === null ? {} : { "Content-Type": "application/json" }),
      },
    });
  } catch {
    throw new Refused(0, { code: "offline", message: "The server cannot be reached.", by: "" });
  }
  const found: unknown = response.status === 204 ? {} : await response.json().catch(() => ({}));
  if (!response.ok) {
    const failure = readFailure(found, `The server answered ${response.status}.`);
    if (failure.code === "not_logged_in") keepLogin("");
    throw new Refused(response.status, failure);
  }
  return object(found);
}

export function sessionPath(id: string, rest = ""): string {
  return `sessions/${encodeURIComponent(id)}${rest}`;
}
