// The page for operators: asks the API and shows its answers. It changes nothing.
//
// Text from outside (URLs, names, rules, errors) enters the document only as text, through `make`.

"use strict";

const TOKEN = "robotgate-token";
const PERIOD = 1000; // ms between two polls of the status
const SLOWEST = 5000; // maximum ms between two attempts while robotgate does not answer
const WINDOW = 120; // seconds that the chart shows
const SHOWN = 50; // maximum number of rules that did not decide, and of other statements, to show
const MAX_TAIL = 500; // refusals that the page keeps
const CHANGES_PERIOD = 5000; // ms between two looks at the changes of robots.txt files
const VERDICTS = ["allow", "deny", "unverifiable", "defer"];

const HOLDS = {
  rules: "its rules",
  expired: "nothing: its robots.txt has expired, and is fetched again before the next decision",
  "no-robots": "no robots.txt: all is allowed",
  "soft-404": "no robots.txt (an error page says so): all is allowed",
  unreachable: "unreachable: all is disallowed",
  "last-copy": "unreachable for too long: its last good robots.txt",
  "unreachable-too-long": "unreachable for too long, and its robots.txt was never fetched",
  egress: "closed to bots, so it was not fetched",
};
const LOST = {
  "tie-allow-wins": "as long, but allow wins a tie",
  "tie-earlier": "as long, but another rule comes first",
  "shorter-match": "matches, but is shorter",
  "does-not-match": "does not match",
  "never-matches": "can never match",
};

// === What the page knows ===

let status = null; // the last status
let skew = 0; // the server's clock minus the browser's, in ms
let samples = []; // {at, allow, deny, unverifiable, defer}, for the chart
let timer = null;
let failures = 0;
let polling = false;
let lookedForChanges = -Infinity; // when the page last asked for changes, in ms
let view = "now";
let asked = 0; // number of the latest question, to ignore late answers to earlier ones

// Records, newest first: `rows` in the list, and `waiting` while the list is paused.
const tail = { after: null, rows: [], waiting: [], missed: 0, paused: false };
const reasons = {}; // a sentence for each reason seen so far
const list = { next: null, shown: 0, question: 0 };

// === Small tools ===

const $ = (id) => document.getElementById(id);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const now = () => Date.now() + skew;
const numbers = new Intl.NumberFormat("en");
const count = (n) => (n == null ? "–" : numbers.format(n));
const plural = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;

/** Makes marks that reorder or hide text visible. Line ends and tabs stay. */
const visible = (text) =>
  String(text).replace(
    /[\0-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (mark) => `\\u{${mark.charCodeAt(0).toString(16)}}`,
  );

/** Creates an element. Skips null and false; a child that is not an element becomes text. */
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value != null && value !== false) node.setAttribute(name, name === "href" ? value : visible(value));
  }
  for (const child of children.flat(2)) {
    if (child != null && child !== false) node.append(child instanceof Node ? child : visible(child));
  }
  return node;
}

/** Replaces the content of `node` if `data`, which the content is made from, has changed. */
function show(node, data, content) {
  const key = JSON.stringify(data);
  if (node.shownKey === key) return;
  node.shownKey = key;
  node.replaceChildren(...[content()].flat().filter((child) => child != null));
}

function write(id, text) {
  const node = $(id);
  if (node.textContent !== text) node.textContent = text;
}

function facts(pairs) {
  return pairs
    .filter(([, value]) => value != null && value !== "")
    .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
}

const data = (text) => make("span", { class: "data" }, text);
const muted = (...children) => make("p", { class: "muted" }, ...children);
const link = (view, query, ...children) => make("a", { href: `#${view}?${new URLSearchParams(query)}` }, ...children);

function bytes(n) {
  if (n == null) return null;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${unit && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

function spoken(ms) {
  const seconds = Math.round(Math.abs(ms) / 1000);
  if (seconds < 2) return "just now";
  const [n, unit] =
    seconds < 60
      ? [seconds, "s"]
      : seconds < 3600
        ? [Math.floor(seconds / 60), "min"]
        : seconds < 48 * 3600
          ? [Math.floor(seconds / 3600), "h"]
          : seconds < 730 * 86400
            ? [Math.floor(seconds / 86400), "days"]
            : [Math.floor(seconds / 86400 / 365), "years"];
  return ms < 0 ? `${n} ${unit} ago` : `in ${n} ${unit}`;
}

/** Creates a time relative to now, with the exact time as its tooltip. */
function time(value) {
  if (value == null) return null;
  const node = make("time", { class: "ago", datetime: value, title: value.replace("T", " ").replace("Z", " UTC") });
  node.textContent = spoken(Date.parse(value) - now());
  return node;
}

function age() {
  for (const node of document.querySelectorAll("time.ago")) {
    const text = spoken(Date.parse(node.dateTime) - now());
    if (node.textContent !== text) node.textContent = text;
  }
}

/** Creates a copy button. If the browser forbids copying (no HTTPS), it selects the text instead. */
function copier(node, text) {
  const button = make("button", { type: "button", class: "small" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(node);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return button;
}

const copyable = (text) => {
  const node = make("code", {}, text);
  return [node, " ", copier(node, text)];
};

// === The API ===

class Problem extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/**
 * Asks the API. With a body, sends it in a POST.
 * @throws {Problem} with status 0 if there is no answer
 */
async function api(path, query = {}, patience = 10000, body = null) {
  const url = new URL(`api/v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query))
    if (value != null && value !== "") url.searchParams.set(name, value);
  const token = sessionStorage.getItem(TOKEN);
  let response, text;
  try {
    response = await fetch(url, {
      method: body ? "POST" : "GET",
      headers: {
        ...(token && { Authorization: `Bearer ${token}` }),
        ...(body && { "Content-Type": "application/json" }),
      },
      body: body && JSON.stringify(body),
      cache: "no-store",
      signal: AbortSignal.timeout(patience),
    });
    text = await response.text();
  } catch (error) {
    throw new Problem(0, error.name === "TimeoutError" ? "The request took too long." : "There was no answer.");
  }
  let json = null;
  try {
    json = JSON.parse(text);
  } catch {
    // A response that is not JSON is reported by its status.
  }
  if (response.status === 401) logIn(token);
  if (!response.ok || json === null) {
    const told = json && [json.title, json.detail].filter(Boolean).join(": ");
    throw new Problem(response.status, told || json?.error || `The response was ${response.status} ${response.statusText}.`);
  }
  return json;
}

// === Logging in ===

function logIn(refused) {
  sessionStorage.removeItem(TOKEN);
  clearTimeout(timer);
  write("login-error", refused ? "robotgate rejected this token." : "");
  if (view === "login") return;
  view = "login";
  for (const section of document.querySelectorAll(".view, header nav, #log-out, [data-open]")) section.hidden = true;
  $("banners").replaceChildren();
  $("view-login").hidden = false;
  $("token").focus();
}

$("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, $("token").value.trim());
  $("token").value = "";
  view = "";
  try {
    await api("status");
    route();
    poll();
  } catch (problem) {
    view = "login";
    if (problem.status !== 401) write("login-error", problem.message);
  }
});

$("log-out").addEventListener("click", () => {
  sessionStorage.removeItem(TOKEN);
  // Reloading discards what was shown.
  location.reload();
});

// === Looking again and again ===

async function poll() {
  clearTimeout(timer);
  if (polling || document.hidden || view === "login") return;
  polling = true;
  try {
    const fresh = await api("status");
    failures = 0;
    seen(fresh);
    if (view === "now") {
      await follow();
      await showChanges();
    }
  } catch (problem) {
    failures += 1;
    if (problem.status !== 401) gone(problem);
  }
  polling = false;
  age();
  if (view !== "login" && !document.hidden)
    timer = setTimeout(poll, Math.min(PERIOD * 2 ** Math.min(failures, 4), SLOWEST));
}

document.addEventListener("visibilitychange", poll);
window.addEventListener("online", poll);

/** Processes a new status. */
function seen(fresh) {
  skew = Date.parse(fresh.now) - Date.now();
  if (status && status.started !== fresh.started) {
    // A new process restarts the counters.
    samples = [];
    Object.assign(tail, { after: null, missed: 0 });
  }
  const changed = status?.generation !== fresh.generation;
  status = fresh;
  samples.push({ at: Date.parse(fresh.now) / 1000, ...fresh.decisions });
  const oldest = samples.at(-1).at - WINDOW - 5;
  samples = samples.filter((sample) => sample.at >= oldest);

  showState(fresh);
  showBanners(fresh);
  showNumbers(fresh);
  showTrust(fresh.trust_problems ?? []);
  showReload(fresh);
  if (changed && view === "configuration") showConfiguration();
}

function gone(problem) {
  const word = problem.status ? "in trouble" : "no answer";
  show($("state"), word, () => make("b", { class: "gone" }, word));
  for (const verdict of VERDICTS) write(`rate-${verdict}`, "–");
  const since = status ? ["This page shows the state of ", time(status.now), ". "] : [];
  banner(
    "gone",
    "bad",
    problem.status ? "robotgate responds, but with an error." : "robotgate does not answer.",
    [problem.message, failures],
    () => make("p", {}, problem.message, " ", ...since, "This page keeps trying."),
  );
}

// === Banners ===

/** Shows the banner `key`. Without a title, removes it. */
function banner(key, kind, title, facts, content) {
  let node = $(`banner-${key}`);
  if (!title) return node?.remove();
  if (!node) {
    node = make("section", { id: `banner-${key}`, class: `banner ${kind}` });
    if (key === "gone") $("banners").prepend(node);
    else $("banners").append(node);
  }
  show(node, [title, facts], () => [make("h2", {}, title), content()]);
}

function showBanners(s) {
  banner("gone");
  const reload = s.last_reload;
  const rejected = reload && !reload.ok;
  banner("reload", "bad", rejected && "The last change of the configuration was rejected.", reload, () =>
    [
      make(
        "p",
        {},
        "Generation ",
        count(s.generation),
        " runs on unchanged. Rejected ",
        time(reload.time),
        ` (${reload.cause}).`,
      ),
      make("pre", { tabindex: 0, role: "region", "aria-label": "Error" }, reload.error ?? "robotgate gave no reason."),
    ].reduce((box, part) => (box.append(part), box), make("div")),
  );
  const restart = reload?.ok && reload.restart_needed?.length ? reload.restart_needed : null;
  banner("restart", "warn", restart && "A change waits for a restart.", restart, () =>
    make("p", {}, "These changes take effect only after a restart: ", restart.join(", "), "."),
  );
  banner("audit", "bad", s.audit?.stalled && "The audit log is stalled.", null, () =>
    make("p", {}, "Requests wait until their lines can be written. Check the disk and robotgate's operational log."),
  );
  banner("evidence", "warn", s.evidence?.error && "Evidence cannot be stored.", s.evidence?.error, () =>
    make("p", {}, "Decisions that are based on new robots.txt files cannot be replayed later. ", s.evidence.error ?? ""),
  );
  banner("seal", "warn", s.seal?.fails && "The audit log cannot be sealed.", null, () =>
    make("p", {}, "Later changes to its new lines cannot be detected. robotgate's operational log says why."),
  );
  banner("fleet", "warn", s.fleet && !s.fleet.connected && "The fleet's server is not used.", s.fleet?.error, () =>
    make("p", {}, "Until the server is back, robotgate fetches every robots.txt itself and keeps its own pace (fleet.on-loss). ", s.fleet.error ?? ""),
  );
  banner("draining", "warn", s.state === "draining" && "robotgate is draining.", null, () =>
    make("p", {}, "It takes no new connections, lets running exchanges finish, and ends."),
  );
}

// === Now ===

function showState(s) {
  show($("state"), [s.state, s.generation], () => [
    make("b", { class: s.state === "ready" ? "ready" : "draining" }, s.state),
    ` · configuration ${count(s.generation)}`,
  ]);
  write("version", `robotgate ${visible(s.version)}`);
  const token = sessionStorage.getItem(TOKEN);
  $("log-out").hidden = !token;
  // A link cannot carry the token.
  for (const link of document.querySelectorAll("[data-open]")) link.hidden = Boolean(token);
}

/** Returns decisions per second between two samples; null if they are too far apart or a counter decreased. */
function rate(from, to, verdict) {
  const seconds = to.at - from.at;
  if (!(seconds > 0 && seconds <= 6)) return null;
  const decisions = to[verdict] - from[verdict];
  return decisions < 0 ? null : decisions / seconds;
}

function showNumbers(s) {
  const last = samples.at(-1);
  const before = samples.filter((sample) => sample.at >= last.at - 3.5)[0];
  for (const verdict of VERDICTS) {
    const mean = before === last ? null : rate(before, last, verdict);
    write(`rate-${verdict}`, mean == null ? "–" : mean > 0 && mean < 10 ? mean.toFixed(1) : count(Math.round(mean)));
    write(`sum-${verdict}`, `${count(s.decisions[verdict])} in all`);
  }
  drawChart();
  const { origins, audit } = s;
  const of = (part, whole) => (part == null ? null : whole == null ? bytes(part) : `${bytes(part)} of ${bytes(whole)}`);
  show($("facts"), { ...s, now: null, trust_problems: null }, () =>
    facts([
      ["Requests", count(s.requests)],
      ["Connections", count(s.connections)],
      ["Tunnels", count(s.tunnels)],
      ["Sites known", origins && count(origins.known)],
      ["robots.txt fetches running", count(s.fetches_running)],
      ["Memory for robots.txt files", origins && of(origins.memory_bytes, origins.memory_max_bytes)],
      ["Disk for robots.txt files", origins && of(origins.disk_bytes, origins.disk_max_bytes)],
      ["Fleet", s.fleet && (s.fleet.connected ? `connected, ${count(s.fleet.copies_used)} copies used` : "not used")],
      ["Audit lines", audit && `${count(audit.lines)}${audit.stalled ? " (stalled)" : ""}`],
      ["Running since", time(s.started)],
      [
        "Configuration",
        [make("a", { href: "#configuration" }, `configuration ${count(s.generation)}`), ", loaded ", time(s.loaded)],
      ],
      [
        "Last reload",
        s.last_reload ? [s.last_reload.ok ? "took effect " : "rejected ", time(s.last_reload.time)] : "none yet",
      ],
    ]),
  );
}

/** Draws stacked areas: allow at the bottom, then deny, unverifiable and defer. */
function drawChart() {
  const end = samples.at(-1).at;
  const steps = [];
  for (let i = 1; i < samples.length; i++) {
    const rates = VERDICTS.map((verdict) => rate(samples[i - 1], samples[i], verdict));
    if (!rates.includes(null))
      steps.push({ from: samples[i - 1].at - end + WINDOW, to: samples[i].at - end + WINDOW, rates });
  }
  const peak = Math.max(0, ...steps.map(({ rates }) => rates.reduce((sum, each) => sum + each)));
  const scale = 38 / Math.max(peak, 1);
  VERDICTS.forEach((verdict, index) => {
    const path = steps.map(({ from, to, rates }) => {
      const base = rates.slice(0, index).reduce((sum, each) => sum + each, 0);
      const [low, high] = [base, base + rates[index]].map((value) => (40 - value * scale).toFixed(2));
      return low === high ? "" : `M${Math.max(from, 0).toFixed(2)} ${low}V${high}H${to.toFixed(2)}V${low}Z`;
    });
    $("chart").querySelector(`path.${verdict}`).setAttribute("d", path.join(""));
  });
  write("peak", peak > 0 ? `at most ${peak < 10 ? peak.toFixed(1) : count(Math.round(peak))}` : "none");
}

function showTrust(problems) {
  $("trust").hidden = problems.length === 0;
  show($("trust-problems"), problems, () =>
    problems.map((problem) => {
      const what =
        problem.kind === "distrust"
          ? "rejected our certificate"
          : "ends its connections as soon as it sees our certificate";
      return make(
        "li",
        {},
        make(
          "p",
          {},
          make("b", {}, data(problem.client)),
          problem.user_agent && [" (", data(problem.user_agent), ")"],
          ` ${what}, ${plural(problem.count, "time")}, last `,
          time(problem.last),
          ", for ",
          data(problem.origin),
          ".",
        ),
        make("p", {}, "Fix: run ", copyable(problem.fix), " and set for this client what it prints."),
      );
    }),
  );
}

// === The tail of refusals ===

async function follow() {
  const answer = await api("refusals", { after: tail.after, limit: tail.after == null ? 100 : 500 });
  if (answer.next < (tail.after ?? 0)) return void Object.assign(tail, { after: null });
  tail.missed += answer.missed ?? 0;
  tail.after = answer.next;
  Object.assign(reasons, answer.reasons);
  tail.waiting.unshift(...answer.refusals.reverse());
  tail.waiting.length = Math.min(tail.waiting.length, MAX_TAIL);
  if (!halted()) flush();
  noteTail();
}

/** Whether the list is paused: by the button, or while a record is open. */
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
  filterTail();
}

/** Returns the setting that forwards a request although its verdict is not `allow`. */
const passedBy = ({ enforcement, exception }) =>
  enforcement === "report" ? "report" : exception != null ? "https.tunnel" : "https.unverifiable";

/** Says what a site says about a purpose, and where. */
function use({ purpose, vocabulary, key, value, line, entry, field }) {
  if (vocabulary == null) return `${purpose}: the site does not say that it is allowed`;
  const place = line != null ? `line ${line}` : entry != null ? `tdmrep.json, entry ${entry}` : field;
  return `${purpose}: ${place}: ${vocabulary} ${key}=${value}`;
}

function refusal(record, fresh) {
  const why =
    record.rule != null
      ? `line ${record.line}: ${record.rule}`
      : record.usage?.refused != null
        ? use(record.usage.refused)
        : (record.robots_error ?? reasons[record.reason]);
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
    make("span", { class: "data why" }, why),
  );
  const details = make("details", {}, summary);
  // Built when opened, because most never are.
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(whole(record));
    if (!halted()) flush();
    noteTail();
  });
  const item = make("li", { class: fresh && "new" }, details);
  // The row's text, and the id, which a user can search for.
  item.text = [...[...summary.children].map((cell) => cell.textContent), record.id].join("\n").toLowerCase();
  return item;
}

/** Creates the details of a record. */
function whole(record) {
  const { seq, event, ...fields } = record;
  const agent = record.user_agent ?? record.agent ?? record.bot;
  const question = { agent, url: record.url };
  if (record.reason === "unauthenticated") question.proof = "none";
  // The API takes no question about a client whose proof is invalid, or belongs to another bot.
  const canAsk = agent && record.identity !== "failed" && record.reason !== "identity";
  const value = (name) =>
    name === "id"
      ? copyable(fields.id)
      : /^(time|robots_fetched|robots_expires)$/.test(name) && fields[name]
        ? [data(fields[name]), " (", time(fields[name]), ")"]
        : name === "usage" && fields.usage != null
          ? data(fields.usage.said.map(use).join("; ") || "nothing is said")
          : data(String(fields[name] ?? "–"));
  return make(
    "div",
    { class: "whole" },
    make(
      "p",
      {},
      canAsk
        ? link("explain", question, record.rule != null ? "Why: the rule in its robots.txt" : "Why")
        : reasons[record.reason],
      " · ",
      link("origin", { origin: record.origin }, "This origin"),
    ),
    make("dl", { class: "facts" }, facts(Object.keys(fields).map((name) => [name, value(name)]))),
  );
}

// === Changes of robots.txt files ===

async function showChanges() {
  if (performance.now() - lookedForChanges < CHANGES_PERIOD) return;
  const { changes } = await api("changes");
  lookedForChanges = performance.now();
  show($("changes"), changes, () =>
    changes.length === 0
      ? muted("There is no change of a robots.txt in memory.")
      : make("ul", { class: "plain" }, changes.reverse().map((record) => make("li", {}, change(record)))),
  );
}

/** What a change did, in a sentence. */
function changed(record) {
  const what =
    record.robots_sha256_before == null
      ? "The site has a robots.txt now. "
      : record.robots_sha256 == null
        ? "The site no longer has a robots.txt. "
        : "";
  const rules =
    record.rules == null
      ? "Not compared"
      : record.rules === "unchanged"
        ? "The rules are the same"
        : `${plural(record.rules_added, "rule")} added, ${count(record.rules_removed)} removed`;
  const effect =
    record.requests === 0
      ? ""
      : `; of ${plural(record.requests, "recent request")}, ${count(record.newly_denied)} newly denied and ` +
        `${count(record.newly_allowed)} newly allowed`;
  return `${what}${rules}${effect}.`;
}

function change(record) {
  const rules = ({ agents, added, removed }) => [
    make("dt", {}, data(agents.join(", "))),
    ...removed.map(({ line, rule }) => make("dd", { class: "data" }, `− line ${line}: ${rule}`)),
    ...added.map(({ line, rule }) => make("dd", { class: "data" }, `+ line ${line}: ${rule}`)),
  ];
  const statements = (sign, all) =>
    all.map(({ line, kind, value }) => make("li", { class: "data" }, `${sign} line ${line}: ${kind}: ${value}`));
  return make(
    "details",
    {},
    make(
      "summary",
      {},
      time(record.time),
      " ",
      data(record.origin),
      ": ",
      changed(record),
    ),
    make("dl", { class: "facts" }, record.groups.flatMap(rules)),
    make("ul", { class: "plain" }, statements("−", record.removed), statements("+", record.added)),
    record.cut && muted("Some changes are left out. See robotgate cache history --diff."),
    make(
      "ul",
      { class: "plain" },
      record.examples.map(({ bot, url, verdict, rule, line }) =>
        make(
          "li",
          {},
          make("b", { class: verdict }, verdict),
          ` ${bot ?? "(no bot)"} `,
          data(url),
          rule != null && ` (line ${line}: ${rule})`,
        ),
      ),
    ),
    make("p", {}, link("origin", { origin: record.origin }, "This origin")),
  );
}

function filterTail() {
  const wanted = $("filter").value.trim().toLowerCase();
  for (const item of $("tail").children) item.hidden = !item.text.includes(wanted);
  noteTail();
}

function noteTail() {
  const shown = [...$("tail").children].filter((item) => !item.hidden).length;
  const parts = [];
  if (tail.rows.length === 0) parts.push("Nothing has been refused since robotgate started.");
  else if ($("filter").value.trim()) parts.push(`${shown} of the last ${tail.rows.length} fit the filter.`);
  else parts.push(`The last ${tail.rows.length}, newest first. The list includes requests that were forwarded despite the decision.`);
  if (tail.missed > 0) parts.push(`${plural(tail.missed, "refusal")} went by unseen; the audit log has them.`);
  if (halted())
    parts.push(`${tail.paused ? "Paused" : "Not updated while a record is open"}: ${count(tail.waiting.length)} new.`);
  $("columns").hidden = tail.rows.length === 0;
  write("tail-note", parts.join(" "));
}

$("filter").addEventListener("input", filterTail);
$("pause").addEventListener("click", () => {
  tail.paused = !tail.paused;
  $("pause").setAttribute("aria-pressed", tail.paused);
  $("pause").textContent = tail.paused ? "Resume" : "Pause";
  if (!halted()) flush();
  noteTail();
});

// === Origins ===

async function showOrigins(more) {
  const question = ++list.question;
  const search = $("search").value.trim();
  let after = more ? list.next : null;
  try {
    // A search can go through many origins without a match; each answer says where to continue.
    for (let round = 0; ; round++) {
      const page = await api("origins", { search, after, limit: 100 });
      if (question !== list.question) return;
      if (round === 0 && !more) {
        $("origins").replaceChildren();
        list.shown = 0;
      }
      $("origins").append(...page.origins.map(originRow));
      list.shown += page.origins.length;
      list.next = after = page.next;
      if (page.origins.length > 0 || !page.next || round === 30) break;
      write("origins-note", "Searching…");
      await sleep(400);
      if (question !== list.question) return;
    }
    $("more").hidden = !list.next;
    $("origins-table").hidden = list.shown === 0;
    const none = search
      ? "No origin has this in its name."
      : "robotgate knows no origin yet: no bot has requested a page.";
    write("origins-note", list.shown ? `${plural(list.shown, "origin")}${list.next ? ", and more" : ""}.` : none);
  } catch (problem) {
    if (question === list.question) write("origins-note", `The origins cannot be shown. ${problem.message}`);
  }
}

function originRow(row) {
  const cell = (label, value, kind) => make("td", { "data-label": label, class: kind }, value ?? "–");
  const number = (verdict) => cell(verdict, count(row.verdicts?.[verdict] ?? 0), "number");
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, link("origin", { origin: row.origin }, data(row.origin))),
    cell(
      "What applies",
      make(
        "span",
        {},
        HOLDS[row.holds] ?? row.holds,
        row.status != null && ` (${row.status})`,
        row.failing_since && make("span", { class: "deny" }, ", failing since ", time(row.failing_since)),
      ),
    ),
    cell("Last fetch", time(row.fetched)),
    cell("Next fetch", time(row.expires)),
    cell("Size", bytes(row.bytes), "number"),
    number("allow"),
    number("deny"),
    number("unverifiable"),
    number("defer"),
  );
}

$("refresh").addEventListener("click", () => showOrigins(false));
$("more").addEventListener("click", () => showOrigins(true));
let typing = null;
$("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => showOrigins(false), 400);
});

async function showOrigin(origin) {
  const question = ++asked;
  $("h-origin").textContent = visible(origin);
  $("origin").replaceChildren(muted("Looking…"));
  try {
    const row = await api("origins/detail", { origin });
    if (question !== asked) return;
    const verdicts = VERDICTS.map((verdict) => `${count(row.verdicts?.[verdict] ?? 0)} ${verdict}`).join(", ");
    const left = make(
      "div",
      {},
      make(
        "dl",
        { class: "facts" },
        facts([
          ["What applies", HOLDS[row.holds] ?? row.holds],
          ["robots.txt", data(row.robots_url)],
          ["Status", row.status],
          ["Last fetch", time(row.fetched)],
          ["Next fetch", time(row.expires)],
          ["Failing since", time(row.failing_since)],
          ["Error", row.error && make("span", { class: "error" }, row.error)],
          ["Decisions", `${verdicts} (since robotgate has the origin in memory)`],
          ["Size", bytes(row.bytes)],
          ["SHA-256", row.sha256 && data(row.sha256)],
        ]),
      ),
    );
    left.append(
      make(
        "p",
        {},
        link("explain", { url: `${row.origin}/` }, "May a bot fetch a page here?"),
        " · ",
        link("what-if", { origin: row.origin }, "What if its robots.txt changed?"),
      ),
    );
    if (row.usage?.length > 0)
      left.append(
        make("h3", {}, "What it says about use"),
        make(
          "ul",
          { class: "plain rules" },
          row.usage.map(({ line, agents, field, path, key, value }) =>
            make(
              "li",
              {},
              field === "tdmrep.json" ? `tdmrep.json, entry ${line}: ` : `line ${line}: ${field}: `,
              data(key == null ? value : `${path == null ? "" : `${path} `}${key}=${value}`),
              agents.length > 0 && [" for ", data(agents.join(", "))],
            ),
          ),
        ),
      );
    const right =
      row.robots == null ? muted("robotgate has no text of this robots.txt.") : file(row.robots, null, row.robots_truncated);
    $("origin").replaceChildren(left, right);
  } catch (problem) {
    if (question !== asked) return;
    const text = problem.status === 404 ? "robotgate knows nothing about this origin." : problem.message;
    $("origin").replaceChildren(make("p", { class: "error" }, text));
  }
}

/** Creates a view of a robots.txt, with robotgate's line numbers and one marked line. */
function file(text, line, truncated) {
  const lines = text.split(/\r\n|\r|\n/);
  if (lines.at(-1) === "") lines.pop();
  if (lines.length === 0) return muted("The robots.txt is empty: it allows everything.");
  // Text nodes, not one element per line: a file can have a quarter of a million lines.
  const part = (tag, from, to) =>
    from < to
      ? make(
          tag,
          {},
          lines
            .slice(from, to)
            .map((each) => each + "\n")
            .join(""),
        )
      : null;
  const at = line >= 1 && line <= lines.length ? line - 1 : lines.length;
  const box = make(
    "div",
    { class: "file", tabindex: 0, role: "region", "aria-label": "robots.txt" },
    make("pre", { class: "lines", "aria-hidden": "true" }, lines.map((_, index) => index + 1).join("\n")),
    make("pre", { class: "text" }, part("span", 0, at), part("mark", at, at + 1), part("span", at + 1, lines.length)),
  );
  return make(
    "div",
    {},
    make(
      "p",
      { class: "muted" },
      `robots.txt, ${plural(lines.length, "line")}`,
      truncated && ", cut: it is longer than can be shown",
      ".",
    ),
    box,
  );
}

function scrollToMark(inside) {
  const mark = inside.querySelector("mark");
  const box = mark?.closest(".file");
  if (box) box.scrollTop = mark.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
}

// === May this bot fetch this URL? ===

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = { agent: $("agent").value.trim(), url: $("url").value.trim() };
  if ($("unproven").checked) question.proof = "none";
  const hash = `#explain?${new URLSearchParams(question)}`;
  if (location.hash === hash) route();
  else location.hash = hash;
});

async function showAnswer(agent, url, proof) {
  const question = ++asked;
  const box = $("answer");
  if (!agent || !url) return box.replaceChildren();
  box.replaceChildren(muted("Asking… A robots.txt that has to be fetched takes a moment."));
  try {
    const { decision, report, file: text } = await api("explain", { agent, url, proof }, 40000);
    if (question !== asked) return;
    if (decision.error) throw new Problem(400, decision.error);
    const left = make("div", {}, answer(decision, report ?? {}));
    box.replaceChildren(left, text?.text != null ? file(text.text, text.line, text.truncated) : muted(noFile(decision)));
    scrollToMark(box);
    write("told", left.querySelector(".said").textContent);
  } catch (problem) {
    if (question === asked) box.replaceChildren(make("p", { class: "error" }, problem.message));
  }
}

/** Says why there is no robots.txt to show. */
function noFile({ reason, robots_error }) {
  if (["no-robots", "soft-404"].includes(reason)) return "The site has no robots.txt.";
  if (reason === "egress" || !robots_error) return "No robots.txt was needed for the answer.";
  return `There is no robots.txt to show: ${robots_error}.`;
}

/** Creates a heading for the first SHOWN of `given`, which can itself be a part of `total`. */
function heading(text, given, total) {
  const shown = Math.min(given.length, SHOWN);
  return make("h3", {}, `${text} (${shown < total ? `the first ${count(shown)} of ` : ""}${count(total)})`);
}

/** Shows the decision in words, and its explanation. */
function answer(decision, report) {
  const who = decision.bot ?? report.bot ?? "This bot";
  const [word, rest] =
    decision.verdict === "allow"
      ? ["Yes", "may fetch this URL."]
      : decision.verdict === "unverifiable"
        ? ["robotgate cannot tell", `whether ${who} may fetch this URL: its path is inside a tunnel.`]
        : ["No", "may not fetch this URL."];
  const subject = decision.verdict === "unverifiable" ? ` ${rest}` : `: ${who} ${rest}`;
  const passes = decision.forwarded && decision.verdict !== "allow";
  const rule = (each) => [data(each.text), ` (line ${each.line})`];
  const group = report.group;
  const { competitors = [], statements = [] } = report;
  return [
    make("p", { class: "said" }, make("b", { class: decision.verdict }, word), subject),
    make("p", {}, decision.sentence),
    passes &&
      make(
        "p",
        { class: "unverifiable" },
        "robotgate forwards the request despite this: ",
        decision.enforcement === "report"
          ? "enforcement is report."
          : "https.unverifiable or [[https.tunnel]] lets the tunnel through.",
      ),
    report.needs_proof &&
      make("p", { class: "unverifiable" }, "This bot must prove who it is before its requests are decided."),
    make(
      "dl",
      { class: "facts" },
      facts([
        ["Verdict", [make("b", { class: decision.verdict }, decision.verdict), `, ${decision.reason}`]],
        ["Rule", decision.rule != null ? [data(decision.rule), ` (line ${decision.line})`] : "none"],
        [
          "Group",
          group
            ? [data(group.agents.map((each) => each.agent).join(", ")), ` (line ${group.line})`]
            : decision.group && data(decision.group),
        ],
        ["Enforcement", decision.enforcement],
        ["Use", decision.usage && data(decision.usage.said.map((each) => `${use(each)} (${each.policy})`).join("; ") || "nothing is said")],
        ["Known as", report.agent ? data(report.agent) : report.unidentified],
        ["Path read as", report.read_as && data(report.read_as)],
        ["robots.txt", [data(decision.robots_url), decision.robots_status != null && ` (${decision.robots_status})`]],
        ["Fetched", time(decision.robots_fetched)],
        ["Expires", time(decision.robots_expires)],
        ["Not before", decision.not_before && [time(decision.not_before), ` ([pace]: ${decision.pace_cause})`]],
        ["Error", decision.robots_error && make("span", { class: "error" }, decision.robots_error)],
      ]),
    ),
    competitors.length > 0 && heading("Rules that did not decide", competitors, report.competitors_total),
    competitors.length > 0 &&
      make(
        "ul",
        { class: "plain rules" },
        competitors.slice(0, SHOWN).map((each) => make("li", {}, rule(each), `: ${LOST[each.lost] ?? each.lost}`)),
      ),
    statements.length > 0 && heading("Other lines of the file", statements, report.statements_total),
    statements.length > 0 &&
      make(
        "ul",
        { class: "plain rules" },
        statements
          .slice(0, SHOWN)
          .map((each) => make("li", {}, `${each.kind}: `, data(each.value), ` (line ${each.line})`)),
      ),
    make("p", {}, link("origin", { origin: originOf(decision.url) }, "This origin")),
  ].filter(Boolean);
}

function originOf(url) {
  try {
    return new URL(url).origin;
  } catch {
    return url;
  }
}

// === Which requests would be decided differently? ===

const EFFECTS = [
  ["refused", "deny", "were forwarded and would be refused"],
  ["forwarded", "allow", "were refused and would be forwarded"],
  ["verdict", "unverifiable", "would get a different verdict, but be forwarded or refused as before"],
  ["basis", "", "would have a different rule or reason, but the same result"],
  ["same", "", "stay the same"],
  ["as_logged", "", "are taken as logged, because an address, a credential or the pace decided"],
  ["skipped", "", "are older, and were not compared for lack of time"],
];

/** Fills in the robots.txt of a site, to be edited. */
async function fillIn(origin) {
  const question = ++asked;
  if ($("if-origin").value === origin && $("if-robots").value) return;
  $("if-origin").value = origin;
  $("if-robots").value = "";
  try {
    const { robots } = await api("origins/detail", { origin });
    if (question === asked && !$("if-robots").value) $("if-robots").value = robots ?? "";
  } catch {
    // The text can be pasted.
  }
}

$("assume").addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = ++asked;
  const box = $("changes");
  const [origin, agent] = [$("if-origin").value.trim(), $("if-agent").value.trim()];
  const change = {};
  if (origin) change.robots = [{ origin, text: $("if-robots").value }];
  if ($("if-config").value.trim()) change.config = $("if-config").value;
  if (agent) change.agent = agent;
  if (!origin && $("if-robots").value.trim()) {
    box.replaceChildren(make("p", { class: "error" }, "Fill in the site of this robots.txt."));
    return $("if-origin").focus();
  }
  if (Object.keys(change).length === 0) {
    return box.replaceChildren(make("p", { class: "error" }, "Fill in at least one part of the form."));
  }
  box.replaceChildren(muted("Comparing…"));
  try {
    const found = await api("what-if", {}, 70000, change);
    if (question === asked) box.replaceChildren(...changes(found));
  } catch (problem) {
    if (question === asked) box.replaceChildren(make("pre", { class: "error" }, problem.message));
  }
});

function changes(found) {
  const changed = found.refused + found.forwarded + found.verdict + found.basis;
  const held = found.decisions + found.skipped;
  const said =
    held === 0
      ? "No request is in memory yet."
      : changed === 0
        ? `None of the latest ${plural(held, "request")} would be decided differently.`
        : `${count(changed)} of the latest ${plural(held, "request")} would be decided differently.`;
  const line = (number, text, kind) => make("li", {}, make("b", { class: kind }, count(number)), make("span", {}, text));
  const shown = found.groups.length;
  const total = found.groups_total;
  return [
    make("p", { class: "said" }, said),
    make(
      "ul",
      { class: "plain counts" },
      EFFECTS.filter(([key]) => found[key] > 0).map(([key, kind, text]) => line(found[key], text, kind)),
      Object.entries(found.unknown).map(([why, number]) => line(number, `cannot be decided: ${why}`, "")),
    ),
    shown > 0 &&
      make(
        "table",
        { class: "cards groups" },
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            ["Requests", "Bot", "Site", "Was", "Would be", "Example"].map((title, index) =>
              make("th", { scope: "col", class: index === 0 && "number" }, title),
            ),
          ),
        ),
        make("tbody", {}, found.groups.map(changeRow)),
      ),
    found.pace_changes && muted("[pace] changes, but turns at sites are not simulated: some requests may also wait or be refused."),
    shown < total && muted(`These are the ${count(shown)} largest of ${count(total)} groups.`),
  ].filter(Boolean);
}

function changeRow(group) {
  const cell = (label, ...value) => make("td", { "data-label": label }, make("span", {}, ...value));
  const bot = (name) => name ?? "no bot";
  const outline = ({ verdict, reason, rule, forwarded }) => [
    make("b", { class: verdict }, verdict),
    verdict !== "allow" && forwarded && " (forwarded)",
    ", ",
    rule == null ? reason : [reason === "rule" ? "" : `${reason}, `, data(rule)],
  ];
  return make(
    "tr",
    {},
    make("td", { "data-label": "Requests", class: "number" }, count(group.decisions)),
    cell("Bot", group.bot === group.new_bot ? bot(group.bot) : `${bot(group.bot)} → ${bot(group.new_bot)}`),
    cell("Site", link("origin", { origin: group.origin }, data(group.origin))),
    cell("Was", outline(group.was)),
    cell("Would be", outline(group.now)),
    cell("Example", data(group.example.url)),
  );
}

// === Configuration ===

async function showConfiguration() {
  try {
    const { generation, file: path, settings } = await api("config");
    const s = status;
    const authority = s?.authority;
    $("config-facts").replaceChildren(
      ...facts([
        ["Loads since the start", count(generation)],
        ["File", path == null ? "none: the built-in defaults" : data(path)],
        ["Loaded", time(s?.loaded)],
        ["Listeners", s?.listen?.map((each) => make("div", {}, data(each.address), ` ${each.speaks}`))],
        [
          "Authority",
          authority && [
            data(authority.subject),
            `, until ${authority.not_after.slice(0, 10)}, `,
            time(authority.not_after),
          ],
        ],
        ["Its SHA-256", authority && data(authority.fingerprint)],
      ]),
    );
    const keys = Object.entries(settings);
    write(
      "settings-note",
      keys.length
        ? `${plural(keys.length, "key")}; all others have their defaults.`
        : "None: every key has its default.",
    );
    $("settings").replaceChildren(
      ...keys.map(([key, value]) =>
        make("tr", {}, make("th", { scope: "row" }, data(key)), make("td", {}, data(value))),
      ),
    );
  } catch (problem) {
    write("settings-note", `The configuration cannot be shown. ${problem.message}`);
  }
}

function showReload(s) {
  const reload = s.last_reload;
  show($("reload"), [reload, s.generation], () => {
    if (!reload) return muted("None since the start.");
    const changes = (title, all) =>
      all?.length
        ? [
            make("h3", {}, title),
            make(
              "ul",
              { class: "plain rules" },
              all.map((each) => make("li", {}, data(each))),
            ),
          ]
        : null;
    return [
      make(
        "div",
        {},
        make(
          "p",
          {},
          make("b", { class: reload.ok ? "allow" : "deny" }, reload.ok ? "Took effect" : "Rejected"),
          " ",
          time(reload.time),
          ` (${reload.cause}).`,
          reload.ok ? "" : ` The previous configuration stays in use; the error is above.`,
        ),
        reload.ok && !reload.changes?.length ? muted("No key changed.") : null,
        changes("Changed", reload.changes),
        changes("Needs a restart", reload.restart_needed),
      ),
    ];
  });
}

// === Views ===

function route() {
  if (view === "login") return;
  const [name, query] = location.hash.slice(1).split(/\?(.*)/s);
  const wanted = ["now", "origins", "origin", "explain", "what-if", "configuration"].includes(name) ? name : "now";
  const fields = new URLSearchParams(query ?? "");
  const [was, moved] = [view, view !== wanted];
  write("told", "");
  view = wanted;
  $("view-login").hidden = true;
  document.querySelector("header nav").hidden = false;
  for (const section of document.querySelectorAll(".view")) section.hidden = section.id !== `view-${view}`;
  for (const each of document.querySelectorAll("header nav a")) {
    const here = each.hash === `#${view}` || (view === "origin" && each.hash === "#origins");
    if (here) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  if (view === "origins") showOrigins(false);
  if (view === "origin") showOrigin(fields.get("origin") ?? "");
  if (view === "configuration") showConfiguration();
  if (view === "what-if" && fields.get("origin")) fillIn(fields.get("origin"));
  if (view === "explain") {
    if (fields.has("agent") || !$("agent").value) $("agent").value = fields.get("agent") ?? "";
    if (fields.has("url") || !$("url").value) $("url").value = fields.get("url") ?? "";
    if (fields.has("agent")) $("unproven").checked = fields.get("proof") === "none";
    showAnswer(fields.get("agent"), fields.get("url"), fields.get("proof"));
  }
  if (!moved) return;
  scrollTo(0, 0);
  // The link that led here may be hidden now.
  if (was) $("main").focus({ preventScroll: true });
}

window.addEventListener("hashchange", route);
document.querySelector("[data-skip]").addEventListener("click", (event) => {
  event.preventDefault();
  $("main").focus();
});
setInterval(() => !document.hidden && age(), 5000);
view = "";
route();
poll();
