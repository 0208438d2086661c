// The view of the latest refusals.

// === The tail of refusals ===

async function follow() {
  const filter = tail.filter;
  let answer;
  try {
    answer = await api("refusals", { after: tail.after, limit: tail.after == null ? 100 : 500, filter });
  } catch (problem) {
    if (problem.status !== 400) throw problem;
    write("filter-error", problem.message);
    return;
  }
  if (filter !== tail.filter) return;
  write("filter-error", "");
  if (answer.next < (tail.after ?? 0)) return void Object.assign(tail, { after: null });
  tail.found = tail.after == null ? answer.found : tail.found + answer.refusals.length;
  Object.assign(tail, { held: answer.held, oldest: answer.oldest });
  tail.missed += answer.missed ?? 0;
  tail.after = answer.next;
  tail.waiting.unshift(...answer.refusals.reverse());
  tail.waiting.length = Math.min(tail.waiting.length, MAX_TAIL);
  if (!halted()) flush();
  noteTail();
}

/** Starts the list again with this filter. */
function filterBy(text) {
  if ($("filter").value.trim() !== text) $("filter").value = text;
  if (tail.filter === text && tail.after != null) return;
  Object.assign(tail, { filter: text, after: null, rows: [], waiting: [], missed: 0, found: 0 });
  $("tail").replaceChildren();
  write("filter-error", "");
  poll();
}

/** Returns whether the list is paused: by the button, or because a record is open. */
const halted = () => tail.paused || $("tail").querySelector("details[open]") !== null;

function flush() {
  if (tail.waiting.length === 0) return;
  const first = tail.rows.length === 0;
  const rows = tail.waiting.map((record) => refusal(record, !first));
  $("tail").prepend(...rows);
  tail.rows.unshift(...tail.waiting);
  tail.waiting = [];
  tail.rows.length = Math.min(tail.rows.length, MAX_TAIL);
  while ($("tail").childElementCount > MAX_TAIL) $("tail").lastElementChild.remove();
}

/** Returns the setting that forwards a request although its verdict is not `allow`. */
const passedBy = ({ enforcement, exception }) =>
  enforcement === "report" ? "report" : exception != null ? "https.tunnel" : "https.unverifiable";

function refusal(record, fresh) {
  const summary = make(
    "summary",
    {},
    make("time", { datetime: record.time, title: record.time }, record.time.slice(11, 19)),
    data(record.bot ?? record.user_agent ?? "(no bot)"),
    make(
      "span",
      {},
      make("b", { class: record.verdict }, record.verdict),
      record.reason !== record.verdict && `, ${record.reason}`,
      " ",
      record.forwarded && make("span", { class: "badge" }, `${passedBy(record)}: forwarded`),
    ),
    make("span", { class: "data url" }, record.url),
    make("span", { class: "data why" }, record.why),
  );
  const details = make("details", {}, summary);
  // Add the details only when somebody opens the record, because most are never opened.
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(whole(record));
    if (!halted()) flush();
    noteTail();
  });
  return make("li", { class: fresh && "new", "data-id": record.id }, details);
}

/** Creates the details of a record. */
function whole(record) {
  const { seq, why, event, ...fields } = record;
  const agent = record.user_agent ?? record.agent ?? record.bot;
  const question = { agent, url: record.url };
  if (record.reason === "unauthenticated") question.proof = "none";
  // The API decides for a client that proves which bot it is, or that proves nothing. It cannot decide for a client
  // that shows an invalid proof, or the proof of another bot.
  const canAsk = agent && record.identity !== "failed" && record.reason !== "identity";
  const value = (name) =>
    name === "id"
      ? copyable(fields.id)
      : /^(time|robots_fetched|robots_expires)$/.test(name) && fields[name]
        ? [data(fields[name]), " (", time(fields[name]), ")"]
        : name === "usage" && fields.usage != null
          ? data(JSON.stringify(fields.usage.said))
          : data(String(fields[name] ?? "–"));
  return make(
    "div",
    { class: "whole" },
    make(
      "p",
      {},
      canAsk
        ? link("explain", question, record.rule != null ? "Why: the rule in its robots.txt" : "Why")
        : record.why,
      " · ",
      link("origin", { origin: record.origin }, "This site"),
    ),
    make("dl", { class: "facts" }, facts(Object.keys(fields).map((name) => [name, value(name)]))),
  );
}

function noteTail() {
  const shown = tail.rows.length;
  const parts = [];
  const since = tail.oldest ? `, back to ${tail.oldest.slice(0, 16).replace("T", " ")} UTC` : "";
  if (tail.held === 0)
    parts.push("Nothing has been refused since robotgate started. The audit log has what was before.");
  else if (tail.filter)
    parts.push(
      `${count(tail.found)} of the ${count(tail.held)} refusals in memory${since} fit the filter. The audit log has older ones.`,
    );
  else
    parts.push(
      `${shown < tail.found ? `The last ${count(shown)} of ` : ""}${plural(tail.found, "refusal")} in memory${since}, newest first. The list includes requests that were forwarded despite the decision.`,
    );
  if (tail.missed > 0) parts.push(`${plural(tail.missed, "refusal")} are not shown, because they are no longer in memory; the audit log has them.`);
  if (halted())
    parts.push(`${tail.paused ? "Paused" : "Not updated while a record is open"}: ${count(tail.waiting.length)} new.`);
  $("columns").hidden = shown === 0;
  write("tail-note", parts.join(" "));
}

let filtering = null;
$("filter").addEventListener("input", () => {
  clearTimeout(filtering);
  filtering = setTimeout(() => {
    // The operator may have left the list during the pause after the last keystroke.
    if (view !== "refusals") return;
    const filter = $("filter").value.trim();
    // Replace the entry in the browser's history, so that Back leaves the list and does not undo each change of the
    // filter.
    history.replaceState(null, "", filter ? `#refusals?${new URLSearchParams({ filter })}` : "#refusals");
    filterBy(filter);
  }, TYPING);
});
for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", () => save(`refusals.${button.dataset.save}`, { filter: tail.filter }));
}

/** Downloads a file from the API. A plain link would not work, because the browser would not send the token with it. */
async function save(path, query) {
  const url = new URL(`api/v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
  const token = sessionStorage.getItem(TOKEN);
  try {
    const response = await fetch(url, {
      headers: token ? { Authorization: `Bearer ${token}` } : {},
      cache: "no-store",
    });
    if (!response.ok) throw new Problem(response.status, (await response.json()).detail);
    const blob = URL.createObjectURL(await response.blob());
    const anchor = make("a", { href: blob, download: path });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(blob), 60000);
  } catch (problem) {
    write("filter-error", `The file cannot be saved. ${problem.message}`);
  }
}

$("pause").addEventListener("click", () => {
  tail.paused = !tail.paused;
  $("pause").setAttribute("aria-pressed", tail.paused);
  $("pause").textContent = tail.paused ? "Resume" : "Pause";
  if (!halted()) flush();
  noteTail();
});
