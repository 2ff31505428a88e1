// Meters, a chart over turns, and the timeline of states. Drawn as SVG: no styles in the page.

import type { Change, Picture, State, Turn } from "../picture";
import { clock, count, duration, money, stateWords, toneOf } from "../words";

export function Meters({ picture }: { picture: Picture }) {
  const share = picture.window ? picture.context / picture.window : 0;
  return (
    <dl class="meters">
      <div>
        <dt>Context</dt>
        <dd>
          {picture.context ? count(picture.context) : "—"}
          {picture.window > 0 && <span class="quiet"> of {count(picture.window)}</span>}
          {picture.window > 0 && (
            <meter min={0} max={1} high={0.8} value={Math.min(1, share)} aria-label="Context in use">
              {Math.round(share * 100)} %
            </meter>
          )}
        </dd>
      </div>
      <div>
        <dt>Cost</dt>
        <dd>{money(picture.cost)}</dd>
      </div>
      <div>
        <dt>Turns</dt>
        <dd>{picture.sent}</dd>
      </div>
    </dl>
  );
}

const WIDTH = 320;
const HEIGHT = 72;

/** What each turn cost, as bars, and how full the context was after it, as a line. */
export function TurnChart({ picture }: { picture: Picture }) {
  const turns = [...picture.turns.values()].filter((turn) => turn.settled !== null && turn.outcome !== "cancelled").slice(-60);
  if (!turns.length) return <p class="quiet">No turn has ended yet.</p>;
  const dearest = Math.max(...turns.map((turn) => turn.cost), 1e-9);
  const fullest = Math.max(...turns.map((turn) => turn.context), 1);
  const step = WIDTH / turns.length;
  const line = turns
    .map((turn, at) => `${at * step + step / 2},${HEIGHT - (turn.context / fullest) * (HEIGHT - 6) - 3}`)
    .join(" ");
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label="Cost and context over turns">
        {turns.map((turn, at) => (
          <rect
            key={turn.uuid}
            class={turn.outcome === "completed" ? "bar" : "bar bad"}
            x={(at + 0.5) * step - Math.min(step * 0.35, 14)}
            width={Math.min(step * 0.7, 28)}
            y={HEIGHT - Math.max(1, (turn.cost / dearest) * (HEIGHT - 6))}
            height={Math.max(1, (turn.cost / dearest) * (HEIGHT - 6))}
          >
            <title>{describe(turn, at)}</title>
          </rect>
        ))}
        {turns.length > 1 && <polyline class="line" points={line} />}
      </svg>
      <figcaption>
        <span class="key bar">cost, up to {money(dearest)}</span>
        <span class="key line">context, up to {count(fullest)}</span>
      </figcaption>
    </figure>
  );
}

function describe(turn: Turn, at: number): string {
  return `Turn ${at + 1}: ${turn.outcome ?? ""}, ${money(turn.cost)}, ${count(turn.context)} tokens in context`;
}

interface Span {
  readonly state: State;
  readonly from: number;
  readonly to: number;
}

function spansOf(history: readonly Change[], until: number): Span[] {
  return history.map((change, at) => ({
    state: change.after,
    from: change.at,
    to: history[at + 1]?.at ?? Math.max(until, change.at),
  }));
}

/** Which state the session was in, and for how long. */
export function Timeline({ picture, until }: { picture: Picture; until: number }) {
  const spans = spansOf(picture.history, until);
  const first = spans[0];
  const last = spans.at(-1);
  if (!first || !last) return <p class="quiet">Nothing has happened yet.</p>;
  const whole = Math.max(0.001, last.to - first.from);
  return (
    <figure class="timeline">
      <svg viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label="States over time">
        {spans.map((span, at) => (
          <rect
            key={at}
            class={toneOf(span.state)}
            x={((span.from - first.from) / whole) * 1000}
            width={Math.max(1, ((span.to - span.from) / whole) * 1000)}
            y="0"
            height="24"
          >
            <title>{`${stateWords(span.state)}, ${duration(span.to - span.from)}`}</title>
          </rect>
        ))}
      </svg>
      <ol class="spans">
        {spans
          .slice(-100)
          .reverse()
          .map((span, at) => (
            <li key={at}>
              <time>{clock(span.from)}</time>
              <span class={`chip ${toneOf(span.state)}`}>{stateWords(span.state)}</span>
              <span class="quiet">{seconds(span.to - span.from)}</span>
            </li>
          ))}
      </ol>
    </figure>
  );
}

function seconds(length: number): string {
  return length < 10 ? `${length.toFixed(length < 1 ? 2 : 1)} s` : duration(length);
}
