// The views that ask what robotgate would decide.

// === May this bot fetch this URL? ===

/** Returns the URLs in the form, which has one on each line. */
const urls = () =>
  $("url")
    .value.split("\n")
    .map((url) => url.trim())
    .filter(Boolean);

$("url").addEventListener(
  "input",
  () => ($("url").rows = Math.min(12, Math.max(1, $("url").value.split("\n").length))),
);
$("url").addEventListener("keydown", (event) => {
  // Enter sends the form if it has at most one URL, as in a one-line field. Shift+Enter begins another line.
  if (event.key !== "Enter" || event.shiftKey || urls().length > 1) return;
  event.preventDefault();
  $("ask").requestSubmit();
});
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = { agent: $("agent").value.trim(), url: urls().join("\n") };
  if ($("unproven").checked) question.proof = "none";
  if ($("pasted").open && $("robots").value) {
    // A robots.txt can be too long for the page's URL, so ask without changing the URL.
    return showAnswers(question.agent, urls(), question.proof, $("robots").value);
  }
  const hash = `#explain?${new URLSearchParams(question)}`;
  if (location.hash === hash) route();
  else location.hash = hash;
});

/** Shows the decisions on several URLs. If `robots` is not null, it replaces the robots.txt of every site. */
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
      robots == null && !each.error
        ? link("explain", { agent, url: each.url, proof: proof ?? "assumed" }, data(each.url))
        : data(each.url),
      each.error
        ? make("span", { class: "error" }, each.error)
        : make("span", {}, make("b", { class: each.verdict }, each.verdict), `, ${each.reason}`),
      each.rule != null ? data(`line ${each.line}: ${each.rule}`) : each.sentence,
    ]);
    const line = decisions.length === 1 ? decisions[0].line : null;
    box.replaceChildren(
      make(
        "div",
        { class: robots == null && "whole-row" },
        said,
        robots != null && muted("As if every site had this robots.txt. Nothing was fetched."),
        tableOf(["URL", "Verdict", "Why"], rows, ""),
      ),
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
    box.replaceChildren(
      left,
      text?.text != null ? file(text.text, text.line, text.truncated) : muted(noFile(decision)),
    );
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

/** Creates the heading of a list of the first SHOWN items of `given`. `total` also counts items not in `given`. */
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
          group && [data(group.agents.map((each) => each.agent).join(", ")), ` (line ${group.line})`],
        ],
        ["Enforcement", decision.enforcement],
        [
          "Use",
          decision.usage &&
            data(uses(decision.usage) || "nothing is said"),
        ],
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

/** Returns what a site says about the purposes of a bot, and the policy for each statement. */
const uses = ({ said, sentences }) => said.map(({ policy }, at) => `${sentences[at]} (${policy})`).join("; ");

function originOf(url) {
  try {
    return new URL(url).origin;
  } catch {
    return url;
  }
}

// === Which requests would be decided differently? ===

const EFFECTS = [
  ["refused", "deny", "would be refused instead of forwarded"],
  ["forwarded", "allow", "would be forwarded instead of refused"],
  ["verdict", "unverifiable", "would get a different verdict, but be forwarded or refused as before"],
  ["basis", "", "would have a different rule or reason, but the same result"],
  ["same", "", "would stay the same"],
  ["as_logged", "", "taken as logged, because an address, a credential or the pace decided"],
  ["skipped", "", "are older, and were not compared for lack of time"],
];

/** Fills in the robots.txt of a site, so that the operator can edit it. */
async function fillIn(origin) {
  const question = ++asked;
  if ($("if-origin").value === origin && $("if-robots").value) return;
  $("if-origin").value = origin;
  $("if-robots").value = "";
  try {
    const { robots } = await api("origins/detail", { origin });
    if (question === asked && !$("if-robots").value) $("if-robots").value = robots ?? "";
  } catch {
    // Ignore the error: the operator can paste the text.
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
  const line = (number, text, kind) =>
    make("li", {}, make("b", { class: kind }, count(number)), make("span", {}, text));
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
    found.pace_changes &&
      muted("[pace] changes, but turns at sites are not simulated: some requests may also wait or be refused."),
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
