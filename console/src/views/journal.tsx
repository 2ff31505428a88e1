// The journal as it is, for debugging: every record, and what stands in it.

import { useState } from "preact/hooks";
import { request, Refused, sessionPath } from "../http";
import { text, type JsonObject } from "../json";
import type { Rec } from "../record";
import type { SessionView } from "../session";
import { clock } from "../words";
import { Folded } from "./parts";

const PAGE = 200;

export function JournalView({ view }: { view: SessionView }) {
  const [query, setQuery] = useState("");
  const [shown, setShown] = useState(PAGE);
  // Read, so that the list is drawn again when records arrive.
  const last = view.picture.value.lastSeq;
  const words = query.toLowerCase();
  const found = view.records.filter((each) => !words || searched(each).includes(words));
  const rows = found.slice(-shown).reverse();
  return (
    <div class="journal" tabIndex={0} role="region" aria-label="Journal">
      <div class="column wide">
        <p class="bar">
          <input
            type="search"
            aria-label="Search the journal"
            placeholder="Kind, type or text"
            value={query}
            onInput={(event) => setQuery(event.currentTarget.value)}
          />
          <span class="quiet">
            {found.length} of {view.records.length} entries, up to {last}
          </span>
        </p>
        <ol>
          {rows.map((each) => (
            <Row key={each.seq} record={each} session={view.id} />
          ))}
        </ol>
        {(shown < found.length || view.hasOlder.value) && (
          <button
            type="button"
            onClick={() => {
              if (shown >= found.length) void view.loadOlder();
              setShown(shown + PAGE);
            }}
          >
            Older entries
          </button>
        )}
      </div>
    </div>
  );
}

function searched(record: Rec): string {
  return `${record.seq} ${record.kind} ${JSON.stringify(record.frame)} ${JSON.stringify(record.details)}`.toLowerCase();
}

function Row({ record, session }: { record: Rec; session: string }) {
  const [whole, setWhole] = useState<JsonObject | null>(null);
  const [failure, setFailure] = useState("");
  const open = async (event: Event) => {
    if (!(event.currentTarget as HTMLDetailsElement).open || whole) return;
    try {
      setWhole(await request("GET", sessionPath(session, `/entries/${record.seq}`)));
    } catch (error) {
      setFailure(error instanceof Refused ? error.message : String(error));
    }
  };
  return (
    <li>
      <details onToggle={(event) => void open(event)}>
        <summary>
          <span class="number">{record.seq}</span>
          <time>{clock(record.at)}</time>
          <span class="kind">{record.kind}</span>
          <span class="gist">{gistOf(record)}</span>
        </summary>
        {failure && <p class="note error">{failure}</p>}
        {whole && (
          <pre tabIndex={0}>
            <Folded text={JSON.stringify(whole, null, 2)} most={20_000} />
          </pre>
        )}
      </details>
    </li>
  );
}

function gistOf(record: Rec): string {
  const { frame, details } = record;
  const parts = [text(frame["type"]), text(frame["subtype"])];
  const request = frame["request"];
  if (typeof request === "object" && request !== null && "subtype" in request) parts.push(text(request["subtype"]));
  if (Object.keys(details).length) parts.push(JSON.stringify(details).slice(0, 120));
  return parts.filter(Boolean).join(" ") || record.noise.slice(0, 120);
}
