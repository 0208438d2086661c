// The page for operators: asks the API and shows its answers. It changes nothing.
//
// Text from outside (URLs, names, rules, errors) enters the document only as text, through `make`.

"use strict";

const TOKEN = "robotgate-token";
const PERIOD = 1000; // ms between two polls of the status
const SLOWEST = 5000; // maximum ms between two attempts while robotgate does not answer
const WINDOW = 10; // seconds over which the rates are taken, at most
const SHOWN = 50; // maximum number of rules that did not decide, and of other statements, to show
const MAX_TAIL = 500; // refusals that the page keeps
const TYPING = 400; // ms without a key before a search or a filter is asked
const PAGE = 100; // sites on a page
const MAX_CHANGES = 20; // changes of robots.txt files to show
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
let samples = []; // {at, allow, deny, unverifiable, defer}, for the rates
let timer = null;
let failures = 0;
let polling = false;
let lookedForChanges = -Infinity; // when the page last asked for changes, in ms
let view = "now";
let asked = 0; // number of the latest question, to ignore late answers to earlier ones

// Records, newest first: `rows` in the list, and `waiting` while the list is paused.
const tail = { filter: "", after: null, rows: [], waiting: [], missed: 0, found: 0, held: 0, oldest: null, paused: false };
const reasons = {}; // a sentence for each reason seen so far
const list = { question: 0 };
let drawnAt = -Infinity; // when the history was last asked for, in ms

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
      await showNowChart();
      await showChanges();
    }
    if (view === "refusals") await follow();
    if (view === "history") await showHistory(false);
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

/** Returns the class and the title of a series by `by`. */
const kindOf = (by) => (each, index) =>
  each.name == null ? "rest" : by === "verdict" ? each.name : by === "answer" ? { answered: "allow", failed: "deny" }[each.name] : `s${index}`;
const titleOf = (by) => (each) => each.name ?? (by === "site" ? "all other sites" : "all others");

async function showNowChart() {
  const report = await api("history", { from: "5m", by: "verdict" });
  drawChart($("now-chart"), report, {
    label: "decisions of the last 5 minutes",
    order: VERDICTS,
    kind: kindOf("verdict"),
    title: titleOf("verdict"),
    link: (each) => `#history?${new URLSearchParams({ range: "1h", by: "reason", ...(each.name !== "allow" && { only: "refusals" }) })}`,
    pick: (from, until) => (location.hash = historyHash({ range: "chosen", from: iso(from), until: iso(until), by: "reason" })),
  });
  const isEmpty = status && VERDICTS.every((verdict) => status.decisions[verdict] === 0);
  $("now-empty").hidden = !isEmpty;
  if (isEmpty) show($("now-empty"), status.listen, () => ["No request yet. Try: ", ...copyable(tryIt())]);
}

/** Returns a command that sends a request through this robotgate. */
function tryIt() {
  const listener = status?.listen?.find((each) => each.speaks === "http") ?? status?.listen?.[0];
  const address = (listener?.address ?? "127.0.0.1:3128").replace(/^(0\.0\.0\.0|\[::\])/, location.hostname);
  return `curl -x http://${address} -A ExampleBot/1.0 http://example.com/`;
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
  if (tail.after == null) Object.assign(tail, { found: 0 });
  tail.found += answer.found;
  Object.assign(tail, { held: answer.held, oldest: answer.oldest });
  tail.missed += answer.missed ?? 0;
  tail.after = answer.next;
  Object.assign(reasons, answer.reasons);
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
  return make("li", { class: fresh && "new", "data-id": record.id }, details);
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
      link("origin", { origin: record.origin }, "This site"),
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
      ? muted("No site has changed its robots.txt lately.")
      : make("ul", { class: "plain" }, changes.reverse().slice(0, MAX_CHANGES).map((record) => make("li", {}, change(record)))),
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
    make("p", {}, link("origin", { origin: record.origin }, "This site")),
  );
}

function noteTail() {
  const shown = tail.rows.length;
  const parts = [];
  const since = tail.oldest ? `, back to ${tail.oldest.slice(0, 16).replace("T", " ")} UTC` : "";
  if (tail.held === 0) parts.push("Nothing has been refused since robotgate started.");
  else if (tail.filter)
    parts.push(`${count(tail.found)} of the ${count(tail.held)} refusals in memory${since} fit the filter. The audit log has older ones.`);
  else
    parts.push(`${shown < tail.found ? `The last ${count(shown)} of ` : ""}${plural(tail.found, "refusal")} in memory${since}, newest first. The list includes requests that were forwarded despite the decision.`);
  if (tail.missed > 0) parts.push(`${plural(tail.missed, "refusal")} went by unseen; the audit log has them.`);
  if (halted())
    parts.push(`${tail.paused ? "Paused" : "Not updated while a record is open"}: ${count(tail.waiting.length)} new.`);
  $("columns").hidden = shown === 0;
  write("tail-note", parts.join(" "));
}

let filtering = null;
$("filter").addEventListener("input", () => {
  clearTimeout(filtering);
  filtering = setTimeout(() => {
    const filter = $("filter").value.trim();
    // Replaces the address, so that going back leaves the list.
    history.replaceState(null, "", filter ? `#refusals?${new URLSearchParams({ filter })}` : "#refusals");
    filterBy(filter);
  }, TYPING);
});
for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", () => save(`refusals.${button.dataset.save}`, { filter: tail.filter }));
}

/** Saves a file of the API. A link could not carry the token. */
async function save(path, query) {
  const url = new URL(`api/v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
  const token = sessionStorage.getItem(TOKEN);
  try {
    const response = await fetch(url, { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store" });
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

// === History ===

const RANGES = { "5m": 300, "1h": 3600, "6h": 21600, "24h": 86400, "8d": 8 * 86400 };
const iso = (seconds) => new Date(seconds * 1000).toISOString().replace(".000", "");
let wantedHistory = {}; // the fields of the address of the history

const historyHash = (fields) => `#history?${new URLSearchParams(Object.entries(fields).filter(([, value]) => value))}`;

/** Returns the times that a range stands for. */
function timesOf({ range, from, until }) {
  const midnight = Math.floor(now() / 86400000) * 86400;
  if (range === "today") return { from: iso(midnight) };
  if (range === "yesterday") return { from: iso(midnight - 86400), until: iso(midnight) };
  if (range === "chosen" && from && until) return { from, until };
  return { from: range in RANGES ? `${RANGES[range]}s` : "1h" };
}

/** Returns the filter of the list of refusals for what the history shows. */
function filterOf(parts, times) {
  const quoted = (value) => (/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value);
  return Object.entries({ ...parts, since: times.from, until: times.until })
    .filter(([, value]) => value)
    .map(([field, value]) => `${field}:${quoted(String(value))}`)
    .join(" ");
}

function readHistory(fields) {
  wantedHistory = Object.fromEntries(fields);
  const { range = "1h", by = "verdict", only, site, bot } = wantedHistory;
  $("range").querySelector("[value=chosen]").hidden = range !== "chosen";
  $("range").value = range;
  $("by").value = by;
  $("only").checked = only === "refusals";
  const without = (field) => historyHash({ ...wantedHistory, [field]: null });
  const about = [["site", site], ["bot", bot]].filter(([, value]) => value);
  show($("about"), about, () =>
    about.map(([field, value]) => make("span", { class: "chip" }, `${field} `, data(value), " ", make("a", { href: without(field), "aria-label": `Show every ${field}` }, "×"))),
  );
  drawnAt = -Infinity;
  showHistory(true);
}

for (const id of ["range", "by", "only"]) {
  $(id).addEventListener("change", () => {
    const fields = { ...wantedHistory, range: $("range").value, by: $("by").value, only: $("only").checked && "refusals" };
    if (fields.range !== "chosen") Object.assign(fields, { from: null, until: null });
    location.hash = historyHash(fields);
  });
}

async function showHistory(isNew) {
  const wanted = wantedHistory;
  const { range = "1h", by = "verdict", only, site, bot } = wanted;
  // Ask often only for what changes fast.
  if (performance.now() - drawnAt < (range === "5m" ? 900 : 10000)) return;
  drawnAt = performance.now();
  const times = timesOf(wanted);
  let report;
  try {
    report = await api("history", { ...times, by, only, site, bot, limit: 15 });
  } catch (problem) {
    if (isNew || problem.status) write("history-note", `The history cannot be shown. ${problem.message}`);
    return;
  }
  const unfetched = await failingFetches(site);
  if (wanted !== wantedHistory) return;
  const exact = { from: report.from, until: report.until };
  const open = (parts) => `#refusals?${new URLSearchParams({ filter: filterOf({ site, bot, ...parts }, exact) })}`;
  drawChart($("history-chart"), report, {
    label: only ? "refusals" : by === "answer" ? "answers of sites" : "decisions",
    kind: kindOf(by),
    title: titleOf(by),
    order: by === "verdict" ? VERDICTS : by === "answer" ? ["answered", "failed"] : [],
    link: (each) =>
      each.name == null || each.name === "answered" || each.name === "allow"
        ? null
        : by === "site" || by === "bot"
          ? historyHash({ ...wanted, [by]: each.name, by: "verdict" })
          : by === "answer"
            ? "#history?" + new URLSearchParams({ ...wanted, by: "site" })
            : open({ [by]: each.name }),
    pick: (from, until) =>
      (location.hash =
        report.step > 60
          ? historyHash({ ...wanted, range: "chosen", from: iso(from), until: iso(until) })
          : `#refusals?${new URLSearchParams({ filter: filterOf({ site, bot }, { from: iso(from), until: iso(until) }) })}`),
  });
  const parts = [];
  if (report.series.length === 0)
    parts.push("Nothing happened in this time", site || bot ? " that fits." : ". To see something here, send a request: ", ...(site || bot ? [] : copyable(tryIt())));
  else if (report.since && report.since > report.from) parts.push(`There is no history from before ${report.since.slice(0, 16).replace("T", " ")} UTC.`);
  show($("history-note"), parts.map((part) => part.textContent ?? part), () => parts.map((part) => (part instanceof Node ? part : make("span", {}, part))));
  showTables(report, unfetched, wanted, exact, open);
}

/** Returns the sites whose robots.txt cannot be fetched, those that fail the longest first. */
async function failingFetches(site) {
  try {
    const { origins } = await api("origins", { state: "failing", sort: "failing-since", search: site, limit: 10 }, 20000);
    return origins.filter((row) => !site || row.origin === site);
  } catch {
    // The other tables do not need it.
    return [];
  }
}

/** Says how a count compares with the time before. */
function than(count_, before) {
  if (before == null) return null;
  if (before === 0) return count_ > 0 ? make("span", { class: "muted" }, "new") : null;
  const factor = count_ / before;
  const text = Math.abs(factor - 1) >= 0.05 ? `${factor > 1 ? "+" : "−"}${count(Math.round(Math.abs(factor - 1) * 100))} %` : "same";
  return make("span", { class: factor >= 1.5 ? "deny" : "muted", title: `${count(before)} in the time before` }, text);
}

/** Creates a table, or says that it is empty. */
function tableOf(heads, rows, empty) {
  if (rows.length === 0) return muted(empty);
  const cell = (value, index) =>
    index === 0
      ? make("th", { scope: "row" }, value)
      : make("td", { "data-label": heads[index].replace(/^#/, ""), class: `${heads[index].startsWith("#") ? "number" : ""} ${value == null ? "none" : ""}` }, value ?? "–");
  return make(
    "table",
    { class: "cards" },
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col", class: head.startsWith("#") && "number" }, head.replace(/^#/, ""))))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))),
  );
}

function showTables(report, unfetched, wanted, exact, open) {
  const toSite = (site) => link("origin", { origin: site }, data(site));
  show($("most"), report.refusals, () =>
    tableOf(
      ["Site", "Bot", "Reason", "Rule", "#Refusals", "#Change"],
      report.refusals.map((row) => [
        toSite(row.site),
        row.bot ? make("a", { href: historyHash({ ...wanted, bot: row.bot }) }, data(row.bot)) : "(no bot)",
        make("span", {}, make("b", { class: row.verdict }, row.verdict), row.reason !== row.verdict && `, ${row.reason}`),
        row.rule && data(row.rule),
        make("a", { href: open({ site: row.site, bot: row.bot ?? "none", reason: row.reason }) }, count(row.count)),
        than(row.count, row.before),
      ]),
      "Nothing was refused in this time.",
    ),
  );
  show($("refused-bots"), [report.refused_bots, report.bots], () => {
    const known = new Map(report.bots.map((row) => [row.bot, row]));
    return tableOf(
      ["Bot", "#Refusals", "#Change", "#Too fast (defer)", "#Allowed"],
      report.refused_bots.map((row) => [
        row.bot ? make("a", { href: historyHash({ ...wanted, bot: row.bot, only: "refusals", by: "reason" }) }, data(row.bot)) : "(no bot)",
        make("a", { href: open({ bot: row.bot ?? "none" }) }, count(row.count)),
        than(row.count, row.before),
        count(known.get(row.bot)?.defer),
        count(known.get(row.bot)?.allow),
      ]),
      "No bot was refused in this time.",
    );
  });
  show($("refused-sites"), report.refused_sites, () =>
    tableOf(
      ["Site", "#Refusals", "#Change", "#Requests"],
      report.refused_sites.map((row) => [
        toSite(row.site),
        make("a", { href: open({ site: row.site }) }, count(row.refused)),
        than(row.refused, row.refused_before),
        count(row.requests),
      ]),
      "No site refused anything in this time.",
    ),
  );
  const since = (what, at) => make("span", { class: "deny" }, what, make("span", { class: "unbroken" }, `${at.slice(0, 16).replace("T", " ")} UTC`));
  show($("failing"), [report.failing_sites, unfetched], () => [
    tableOf(
      ["Site", "Since when", "#Failed", "#Answered"],
      [
        ...report.failing_sites.map((row) => [
          toSite(row.site),
          row.failing_since ? since("no answer since ", row.failing_since) : "answers sometimes",
          make("a", { href: historyHash({ ...wanted, site: row.site, by: "answer", only: null }) }, count(row.failed)),
          count(row.answered),
        ]),
        ...unfetched.map((row) => [
          toSite(row.origin),
          make("span", {}, row.failing_since && since("no robots.txt since ", row.failing_since), row.error && `: ${row.error}`),
          null,
          null,
        ]),
      ],
      "No site failed to answer a forwarded request in this time, and no robots.txt is missing.",
    ),
    make("p", { class: "more" }, link("origins", { state: "failing", sort: "failing-since" }, "All sites whose robots.txt cannot be fetched")),
  ]);
  show($("slow"), report.slow_sites, () =>
    tableOf(
      ["Site", "#Mean wait", "#Answered"],
      report.slow_sites.map((row) => [
        toSite(row.site),
        make("a", { href: historyHash({ ...wanted, site: row.site, by: "answer", only: null }) }, wait(row.mean_us)),
        count(row.answered),
      ]),
      "No site answered a request in this time.",
    ),
  );
}

/** Formats a time in microseconds. */
function wait(us) {
  if (us == null) return "–";
  return us < 1e5 ? `${(us / 1000).toFixed(us < 1e4 ? 1 : 0)} ms` : `${(us / 1e6).toFixed(us < 1e7 ? 2 : 0)} s`;
}

// === Origins ===

// The columns of the list: what the API calls it, its title, whether it holds numbers.
const COLUMNS = [
  ["origin", "Site"],
  ["holds", "What applies"],
  ["fetched", "Last fetch"],
  ["expires", "Next fetch"],
  ["bytes", "Size", true],
  ...VERDICTS.map((verdict) => [verdict, verdict, true]),
];
let wantedSites = {}; // the fields of the address of the list

for (const holds of Object.keys(HOLDS)) $("state-filter").append(make("option", { value: holds }, holds.replaceAll("-", " ")));
for (const [sort, title] of [...COLUMNS, ["failing-since", "failing since"]])
  for (const order of ["asc", "desc"]) $("sort").append(make("option", { value: `${sort} ${order}` }, `${title} ${order === "asc" ? "↑" : "↓"}`));

const sitesHash = (fields) => {
  const kept = Object.entries({ ...wantedSites, ...fields }).filter(([, value]) => value);
  return `#origins?${new URLSearchParams(kept)}`.replace(/\?$/, "");
};

/** Shows the heads of the columns: buttons that sort. */
function showHeads(sort, order) {
  show($("origins-heads"), [sort, order], () =>
    COLUMNS.map(([name, title, isNumber]) => {
      const here = name === sort;
      // Numbers and times begin with the largest.
      const first = isNumber || name === "fetched" ? "desc" : "asc";
      const next = here ? (order === "asc" ? "desc" : "asc") : first;
      const button = make("button", { type: "button", class: "head", "data-sort": name }, title, here ? (order === "asc" ? " ↑" : " ↓") : "");
      button.addEventListener("click", () => (location.hash = sitesHash({ sort: name, order: next, offset: null })));
      return make("th", { scope: "col", class: isNumber && "number", "aria-sort": here ? (order === "asc" ? "ascending" : "descending") : null }, button);
    }),
  );
  $("sort").value = `${sort} ${order}`;
}

function readSites(fields) {
  wantedSites = Object.fromEntries(fields);
  if ($("search") !== document.activeElement) $("search").value = wantedSites.search ?? "";
  $("state-filter").value = wantedSites.state ?? "";
  showOrigins();
}

async function showOrigins() {
  const question = ++list.question;
  const { search = "", state = "", sort = "origin", order = "asc" } = wantedSites;
  const offset = Number(wantedSites.offset) || 0;
  const focused = document.activeElement?.dataset?.sort;
  showHeads(sort, order);
  if (focused) document.querySelector(`[data-sort="${focused}"]`)?.focus();
  const slow = setTimeout(() => write("origins-note", "Searching…"), 400);
  try {
    const page = await api("origins", { search, state, sort, order, offset: String(offset), limit: PAGE }, 20000);
    if (question !== list.question) return;
    $("origins").replaceChildren(...page.origins.map(originRow));
    const end = offset + page.origins.length;
    $("previous").hidden = offset === 0;
    $("more").hidden = !page.next;
    write("page-of", offset > 0 || page.next ? `${count(offset + 1)}–${count(end)} of ${count(page.total)}` : "");
    $("origins-table").hidden = page.origins.length === 0;
    const isAll = !search && !state;
    const cut = page.complete ? "" : " There was no time to read all sites; search for a name.";
    if (page.total > 0) write("origins-note", `${plural(page.total, "site")}${isAll ? " known" : ""}.${cut}`);
    else if (!isAll) write("origins-note", `No known site fits.${cut}`);
    else $("origins-note").replaceChildren("robotgate knows no site yet: no bot has requested a page. Try: ", ...copyable(tryIt()));
  } catch (problem) {
    if (question === list.question) write("origins-note", `The sites cannot be shown. ${problem.message}`);
  } finally {
    clearTimeout(slow);
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

$("refresh").addEventListener("click", () => showOrigins());
const turnPage = (by) => {
  location.hash = sitesHash({ offset: Math.max(0, (Number(wantedSites.offset) || 0) + by) });
  $("view-origins").scrollIntoView();
};
$("more").addEventListener("click", () => turnPage(PAGE));
$("previous").addEventListener("click", () => turnPage(-PAGE));
$("state-filter").addEventListener("change", () => (location.hash = sitesHash({ state: $("state-filter").value, offset: null })));
$("sort").addEventListener("change", () => {
  const [sort, order] = $("sort").value.split(" ");
  location.hash = sitesHash({ sort, order, offset: null });
});
let typing = null;
$("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    history.replaceState(null, "", sitesHash({ search: $("search").value.trim(), offset: null }));
    readSites(new URLSearchParams(location.hash.split("?")[1] ?? ""));
  }, TYPING);
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
          ["Decisions", `${verdicts} (since robotgate has the site in memory)`],
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
        " · ",
        make("a", { href: historyHash({ site: row.origin, range: "24h" }) }, "History"),
        " · ",
        link("refusals", { filter: `site:${row.origin}` }, "Refusals"),
      ),
    );
    const about = make("div", { class: "chart-box" });
    left.append(make("h3", {}, "Last 24 hours"), about);
    const versions = make("div", {});
    if (row.bots?.length > 0) left.append(make("h3", {}, "Its pace and purposes, by bot"), make("ul", { class: "plain rules" }, row.bots.map(atSite)));
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
              `line ${line}: ${field}: `,
              data(key == null ? value : `${path == null ? "" : `${path} `}${key}=${value}`),
              agents.length > 0 && [" for ", data(agents.join(", "))],
            ),
          ),
        ),
      );
    const right =
      row.robots == null ? muted("robotgate has no text of this robots.txt.") : file(row.robots, null, row.robots_truncated);
    $("origin").replaceChildren(left, make("div", {}, right, versions));
    showSiteHistory(origin, about);
    showVersions(origin, versions);
  } catch (problem) {
    if (question !== asked) return;
    const text = problem.status === 404 ? "robotgate knows nothing about this origin." : problem.message;
    $("origin").replaceChildren(make("p", { class: "error" }, text));
  }
}

/** Says how fast a bot may go at a site, and what the site says about its purposes. */
function atSite(bot) {
  const pace = bot.pace_error
    ? bot.pace_error
    : bot.gap_ms != null &&
      (bot.gap_ms > 0 ? `a request every ${wait(bot.gap_ms * 1000)} (${bot.gap_cause})` : "no delay between requests");
  const parts = [pace, bot.usage && (bot.usage.said.map((each) => `${use(each)} (${each.policy})`).join("; ") || `${bot.usage.purposes.join(", ")}: nothing is said`)];
  return make(
    "li",
    {},
    make("b", {}, data(bot.bot)),
    ": ",
    parts.filter(Boolean).join("; "),
    bot.not_before && ["; next request ", time(bot.not_before), ` (${bot.pace_cause})`],
  );
}

async function showSiteHistory(site, box) {
  const wanted = { site, range: "24h" };
  try {
    const report = await api("history", { from: "24h", site, by: "verdict" });
    if (!box.isConnected) return;
    if (report.series.length === 0) return box.replaceChildren(muted("No decision in the last 24 hours."));
    drawChart(box, report, {
      label: "decisions about this site",
      order: VERDICTS,
      kind: kindOf("verdict"),
      title: titleOf("verdict"),
      link: (each) => (each.name === "allow" ? null : `#refusals?${new URLSearchParams({ filter: `site:${site} verdict:${each.name}` })}`),
      pick: (from, until) => (location.hash = historyHash({ ...wanted, range: "chosen", from: iso(from), until: iso(until) })),
    });
    const failing = report.failing_sites.find((row) => row.site === site);
    if (failing)
      box.after(
        make("p", { class: "deny" }, `${plural(failing.failed, "request")} failed, ${count(failing.answered)} answered`,
          failing.failing_since && `; no answer since ${failing.failing_since.slice(0, 16).replace("T", " ")} UTC`, ". ",
          make("a", { href: historyHash({ ...wanted, by: "answer" }) }, "When")),
      );
    const slow = report.slow_sites.find((row) => row.site === site);
    if (slow) box.after(muted(`Mean wait for an answer: ${wait(slow.mean_us)}.`));
  } catch {
    box.replaceChildren(muted("The history of this site cannot be shown."));
  }
}

/** Lists the versions of a site's robots.txt. Each opens its difference from the one before. */
async function showVersions(origin, box) {
  try {
    const { versions } = await api("origins/versions", { origin });
    if (!box.isConnected || versions.length === 0) return;
    box.append(
      make("h3", {}, `Versions of its robots.txt (${count(versions.length)})`),
      make("ul", { class: "plain versions" }, versions.reverse().slice(0, SHOWN).map((version) => make("li", {}, versionOf(origin, version)))),
      ...(versions.length > SHOWN ? [muted(`Older versions: robotgate cache history ${origin}`)] : []),
    );
  } catch (problem) {
    box.append(muted(`The versions of the robots.txt cannot be shown. ${problem.message}`));
  }
}

function versionOf(origin, version) {
  const what = version.sha256 == null ? `no robots.txt${version.status ? ` (${version.status})` : ""}` : `${bytes(version.bytes)}, SHA-256 ${version.sha256.slice(0, 12)}`;
  const day = (at) => at.slice(0, 16).replace("T", " ");
  const details = make(
    "details",
    {},
    make("summary", {}, `Version ${version.version}: from ${day(version.first_seen)} UTC, last seen ${day(version.last_seen)}, ${what}`),
  );
  details.addEventListener("toggle", async () => {
    if (!details.open || details.childElementCount > 1) return;
    const box = make("div", {}, muted("Comparing…"));
    details.append(box);
    try {
      const { difference } = await api("origins/versions", { origin, to: version.version });
      if (!difference) return box.replaceChildren(muted("This is the oldest version, so there is none to compare it with."));
      const lines = difference.diff.split("\n").slice(2);
      box.replaceChildren(
        muted(difference.rules === "unchanged" ? "The rules are the same." : `${plural(difference.rules_added, "rule")} added, ${count(difference.rules_removed)} removed.`),
        make("pre", { class: "diff", tabindex: 0, role: "region", "aria-label": "Difference" },
          ...lines.map((line) => make("span", { class: { "+": "allow", "-": "deny", "@": "muted" }[line[0]] }, `${line}\n`))),
      );
    } catch (problem) {
      box.replaceChildren(make("p", { class: "error" }, problem.message));
    }
  });
  return details;
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

/** Returns the URLs that the form has, one a line. */
const urls = () => $("url").value.split("\n").map((url) => url.trim()).filter(Boolean);

$("url").addEventListener("input", () => ($("url").rows = Math.min(12, Math.max(1, $("url").value.split("\n").length))));
$("url").addEventListener("keydown", (event) => {
  // As in a field of one line; Shift and Enter begins another.
  if (event.key !== "Enter" || event.shiftKey || urls().length > 1) return;
  event.preventDefault();
  $("ask").requestSubmit();
});
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = { agent: $("agent").value.trim(), url: urls().join("\n") };
  if ($("unproven").checked) question.proof = "none";
  if ($("pasted").open && $("robots").value) {
    // A robots.txt can be too long for an address.
    return showAnswers(question.agent, urls(), question.proof, $("robots").value);
  }
  const hash = `#explain?${new URLSearchParams(question)}`;
  if (location.hash === hash) route();
  else location.hash = hash;
});

/** Shows the decisions on several URLs, or on those of sites with another robots.txt. */
async function showAnswers(agent, urls, proof, robots) {
  const question = ++asked;
  const box = $("answer");
  box.replaceChildren(muted("Asking…"));
  try {
    const requests = urls.map((url) => ({ agent, url, ...(proof && { proof }) }));
    const { decisions } = await api("decide", {}, 70000, { requests, ...(robots != null && { robots }) });
    if (question !== asked) return;
    const allowed = decisions.filter((each) => each.verdict === "allow").length;
    const said = make("p", { class: "said" }, `${count(allowed)} of ${plural(decisions.length, "URL")} allowed.`);
    const rows = decisions.map((each) => [
      robots == null && !each.error ? link("explain", { agent, url: each.url, proof: proof ?? "assumed" }, data(each.url)) : data(each.url),
      each.error ? make("span", { class: "error" }, each.error) : make("span", {}, make("b", { class: each.verdict }, each.verdict), `, ${each.reason}`),
      each.rule != null ? data(`line ${each.line}: ${each.rule}`) : each.sentence,
    ]);
    const line = decisions.length === 1 ? decisions[0].line : null;
    box.replaceChildren(
      make("div", { class: robots == null && "whole-row" }, said, robots != null && muted("As if every site had this robots.txt. Nothing was fetched."), tableOf(["URL", "Verdict", "Why"], rows, "")),
      ...(robots == null ? [] : [file(robots, line, false)]),
    );
    scrollToMark(box);
    write("told", said.textContent);
  } catch (problem) {
    if (question === asked) box.replaceChildren(make("p", { class: "error" }, problem.message));
  }
}

async function showAnswer(agent, url, proof) {
  const several = (url ?? "").split("\n").filter(Boolean);
  if (agent && several.length > 1) return showAnswers(agent, several, proof, null);
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
    make("p", {}, link("origin", { origin: originOf(decision.url) }, "This site")),
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
  ["as_logged", "", "are taken as logged, because the network, a credential or the pace decided"],
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
  const box = $("differences");
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
  const wanted = ["now", "history", "refusals", "origins", "origin", "explain", "what-if", "configuration"].includes(name) ? name : "now";
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
  if (view === "now") poll();
  if (view === "history") readHistory(fields);
  if (view === "refusals") filterBy(fields.get("filter") ?? "");
  if (view === "origins") readSites(fields);
  if (view === "origin") showOrigin(fields.get("origin") ?? "");
  if (view === "configuration") showConfiguration();
  if (view === "what-if" && fields.get("origin")) fillIn(fields.get("origin"));
  if (view === "explain") {
    if (fields.has("agent") || !$("agent").value) $("agent").value = fields.get("agent") ?? "";
    if (fields.has("url") || !$("url").value) $("url").value = fields.get("url") ?? "";
    if (fields.has("agent")) $("unproven").checked = fields.get("proof") === "none";
    showAnswer(fields.get("agent"), fields.get("url"), fields.get("proof"));
  }
  if (view === "explain") $("url").dispatchEvent(new Event("input"));
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
// Short on a phone.
$("running").open = innerWidth >= 700;
view = "";
route();
poll();
