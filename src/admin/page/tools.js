// The page for operators: asks the API and shows its answers. It changes nothing.
//
// Text from outside (URLs, names, rules, errors) enters the document only as text, through `make`.

"use strict";

const TOKEN = "robotgate-token";
const PERIOD = 1000; // ms between two polls of the status
const SLOWEST = 5000; // maximum ms between two attempts while robotgate does not answer
const WINDOW = 10; // seconds; the page keeps each sample for this time and 5 seconds more
const SHOWN = 50; // maximum number of rules that did not decide, of other statements, and of versions, to show
const MAX_TAIL = 500; // refusals that the page keeps
const TYPING = 400; // ms without a keystroke before a search or a filter is sent
const PAGE = 100; // sites on a page
const MAX_CHANGES = 20; // changes of robots.txt files to show
const CHANGES_PERIOD = 5000; // ms between two requests for the changes of robots.txt files
const VERDICTS = ["allow", "deny", "unverifiable", "defer"];
const NOT_ENFORCED = "not-enforced"; // the series of requests that were forwarded although the verdict was not allow

const STATES = [
  "rules",
  "expired",
  "no-robots",
  "soft-404",
  "unreachable",
  "last-copy",
  "unreachable-too-long",
  "egress",
];
const LOST = {
  "tie-allow-wins": "as long, but allow wins a tie",
  "tie-earlier": "as long, but another rule comes first",
  "shorter-match": "matches, but is shorter",
  "does-not-match": "does not match",
  "never-matches": "can never match",
};

// === What the page knows ===

let status = null; // the last answer of api/v1/status
let skew = 0; // the server's clock minus the browser's, in ms
let samples = []; // {at, allow, deny, unverifiable, defer}, for the rates
let timer = null;
let failures = 0;
let polling = false;
let lookedForChanges = -Infinity; // when the page last asked for changes, in ms
let view = "now";
let asked = 0; // number of the latest question, to ignore late answers to earlier ones

// The records of refusals, newest first: `rows` are in the list, and `waiting` arrived while the list was paused.
const tail = {
  filter: "",
  after: null,
  rows: [],
  waiting: [],
  missed: 0,
  found: 0,
  held: 0,
  oldest: null,
  paused: false,
};
const list = { question: 0 };
let drawnAt = -Infinity; // when the history was last asked for, in ms

// === Small tools ===

const $ = (id) => document.getElementById(id);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const now = () => Date.now() + skew;
const numbers = new Intl.NumberFormat("en");
const count = (n) => (n == null ? "–" : numbers.format(n));
const plural = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;

/** Escapes invisible characters, and characters that reorder text. Keeps line ends and tabs. */
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

/** Creates a copy button. If the browser forbids copying (no HTTPS), the button selects the text instead. */
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
 * Asks the API, with a POST if there is a body. Waits `patience` ms for the response.
 * @throws {Problem} with the response's status, or 0 if there is no response
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
    // If the response is not JSON, the code below reports its status.
  }
  if (response.status === 401) logIn(token);
  if (!response.ok || json === null) {
    const told = json && [json.title, json.detail].filter(Boolean).join(": ");
    throw new Problem(
      response.status,
      told || json?.error || `The response was ${response.status} ${response.statusText}.`,
    );
  }
  return json;
}
