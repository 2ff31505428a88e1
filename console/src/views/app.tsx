// The whole page.

import { useEffect, useState } from "preact/hooks";
import { agents, barred, link, pending, report, send } from "../store";
import { route } from "../route";
import { PendingState, PromptForm } from "./composer";
import { Inbox } from "./inbox";
import { Guarded } from "./parts";
import { SessionPage } from "./session";
import { Sidebar } from "./sidebar";

export function App() {
  return barred.value ? <Barred /> : <Page />;
}

function Page() {
  const current = route.value;
  // On a phone, the list or the page is shown, not both.
  const isList = current.view === "list";
  const place = current.view === "session" ? current.id : current.view;
  useEffect(keepFocus, [place]);
  return (
    <div class={isList ? "app at-list" : "app at-page"}>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Connection />
      <Sidebar />
      <div id="main" class="main" tabIndex={-1}>
        <Guarded key={place}>
          {current.view === "session" && <SessionPage key={current.id} id={current.id} tab={current.tab} />}
          {current.view === "asks" && <Inbox />}
          {(current.view === "new" || isList) && <Begin />}
        </Guarded>
      </div>
      <Report />
    </div>
  );
}

/** Where the focus was may be gone or hidden now; the keyboard then begins at the page. */
function keepFocus(): void {
  const focused = document.activeElement;
  const isLost = focused === document.body || !(focused as HTMLElement | null)?.offsetParent;
  if (isLost) document.getElementById("main")?.focus({ preventScroll: true });
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Connection() {
  const isLost = link.value === "lost";
  return (
    <div class="connection" role="status" aria-live="polite">
      {isLost && <p>Reconnecting… What you send is kept.</p>}
    </div>
  );
}

const SHOWN_FOR = 8000;

function Report() {
  const current = report.value;
  useEffect(() => {
    if (!current) return undefined;
    const timer = setTimeout(() => (report.value = null), SHOWN_FOR);
    return () => clearTimeout(timer);
  }, [current]);
  return (
    <div class="report" role="status" aria-live="polite">
      {current && (
        <p class={current.isError ? "error" : ""}>
          {current.text}
          <button type="button" class="plain" onClick={() => (report.value = null)}>
            Close
          </button>
        </p>
      )}
    </div>
  );
}

function Begin() {
  const [agent, setAgent] = useState("");
  const begun = pending.value.filter((each) => !each.session);
  return (
    <main class="page begin" aria-label="New session">
      <header>
        <a class="back" href="#/list" aria-label="Back to the list">
          ←
        </a>
        <h1>New session</h1>
      </header>
      <div class="column">
        {agents.value.length > 1 && (
          <label class="own">
            Agent
            <select value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
              {agents.value.map((each) => (
                <option key={each} value={each}>{each}</option>
              ))}
            </select>
          </label>
        )}
        {begun.map((each) => (
          <article key={each.key} class="prompt pending">
            <p class="words">{each.text}</p>
            <PendingState one={each} />
          </article>
        ))}
        <PromptForm
          draft="new"
          label="First prompt"
          submit={(words, files) => void send("", words, "later", files, agent || (agents.value[0] ?? ""))}
        />
      </div>
    </main>
  );
}

function Barred() {
  return (
    <main class="barred">
      <h1>steersman</h1>
      <p>{barred.value}</p>
      <p class="quiet">
        Open the link that <code>steersman console</code> printed. Each link works once: start it again for a new one.
      </p>
    </main>
  );
}
