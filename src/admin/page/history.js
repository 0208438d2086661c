// The view of the history: charts and tables of the last days.

// === History ===

const RANGES = { "5m": 300, "1h": 3600, "6h": 21600, "24h": 86400, "8d": 8 * 86400 };
const ROWS = 15; // maximum number of rows of a table
const iso = (seconds) => new Date(seconds * 1000).toISOString().replace(".000", "");
let wantedHistory = {}; // the fields after `#history?` in the page's URL

const historyHash = (fields) => `#history?${new URLSearchParams(Object.entries(fields).filter(([, value]) => value))}`;

/** Returns the API's parameters `from` and `until` for the range that the view shows. */
function timesOf({ range, from, until }) {
  const midnight = Math.floor(now() / 86400000) * 86400;
  if (range === "today") return { from: iso(midnight) };
  if (range === "yesterday") return { from: iso(midnight - 86400), until: iso(midnight) };
  if (range === "chosen" && from && until) return { from, until };
  return { from: range in RANGES ? `${RANGES[range]}s` : "1h" };
}

/** Returns a filter for the list of refusals, from the fields in `parts` and the time range that the view shows. */
function filterOf(parts, times) {
  const quoted = (value) => (/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value);
  return Object.entries({ ...parts, since: times.from, until: times.until })
    .filter(([, value]) => value)
    .map(([field, value]) => `${field}:${quoted(String(value))}`)
    .join(" ");
}

/** Returns the fields of a filter that selects a bot. The history counts all bots without a [[bot]] as `other`. */
const partsOfBot = (bot) => (bot === "other" ? { identity: "product-token" } : { bot });

/** Returns the fields of a filter that selects the requests of a series in a chart by verdict. */
const partsOf = (series) => (series === NOT_ENFORCED ? { forwarded: "yes" } : { verdict: series, forwarded: "no" });

function readHistory(fields) {
  wantedHistory = Object.fromEntries(fields);
  const { range = "1h", by = "verdict", only, site, bot } = wantedHistory;
  $("range").querySelector("[value=chosen]").hidden = range !== "chosen";
  $("range").value = range;
  $("by").value = by;
  $("only").checked = only === "refusals";
  const without = (field) => historyHash({ ...wantedHistory, [field]: null });
  const about = [
    ["site", site],
    ["bot", bot],
  ].filter(([, value]) => value);
  show($("about"), about, () =>
    about.map(([field, value]) =>
      make(
        "span",
        { class: "chip" },
        `${field} `,
        data(value),
        " ",
        make("a", { href: without(field), "aria-label": `Show every ${field}` }, "×"),
      ),
    ),
  );
  drawnAt = -Infinity;
  showHistory(true);
}

for (const id of ["range", "by", "only"]) {
  $(id).addEventListener("change", () => {
    const fields = {
      ...wantedHistory,
      range: $("range").value,
      by: $("by").value,
      only: $("only").checked && "refusals",
    };
    if (fields.range !== "chosen") Object.assign(fields, { from: null, until: null });
    location.hash = historyHash(fields);
  });
}

async function showHistory(isNew) {
  const wanted = wantedHistory;
  const { range = "1h", by = "verdict", only, site, bot } = wanted;
  // Ask about every second for the last 5 minutes, and every 10 seconds for longer ranges, which change slowly.
  if (performance.now() - drawnAt < (range === "5m" ? 900 : 10000)) return;
  drawnAt = performance.now();
  const times = timesOf(wanted);
  let report;
  try {
    report = await api("history", { ...times, by, only, site, bot, limit: 50 });
  } catch (problem) {
    if (isNew || problem.status) write("history-note", `The history cannot be shown. ${problem.message}`);
    return;
  }
  const unfetched = await failingFetches(site);
  if (wanted !== wantedHistory) return;
  const exact = { from: report.from, until: report.until };
  const open = (parts) => `#refusals?${new URLSearchParams({ filter: filterOf({ site, ...partsOfBot(bot), ...parts }, exact) })}`;
  drawChart($("history-chart"), report, {
    label: only ? "refusals" : by === "answer" ? "answers of sites" : "decisions",
    kind: kindOf(by),
    title: titleOf(by),
    order: by === "verdict" ? [...VERDICTS, NOT_ENFORCED] : by === "answer" ? ["answered", "failed"] : [],
    link: (each) =>
      each.name == null ||
      each.name === "answered" ||
      each.name === "allow" ||
      // A series links to the list of its refusals. This reason has no refusals, so its series gets no link.
      (by === "reason" && ![...report.refusals, ...report.not_enforced].some((row) => row.reason === each.name))
        ? null
        : by === "site" || by === "bot"
          ? historyHash({ ...wanted, [by]: each.name, by: "verdict" })
          : by === "answer"
            ? "#history?" + new URLSearchParams({ ...wanted, by: "site" })
            : open(by === "verdict" ? partsOf(each.name) : { [by]: each.name }),
    pick: (from, until) =>
      (location.hash =
        report.step > 60
          ? historyHash({ ...wanted, range: "chosen", from: iso(from), until: iso(until) })
          : `#refusals?${new URLSearchParams({ filter: filterOf({ site, ...partsOfBot(bot) }, { from: iso(from), until: iso(until) }) })}`),
  });
  const parts = [];
  if (report.series.length === 0)
    parts.push(
      "Nothing happened in this time",
      site || bot ? " that fits." : ". To see something here, send a request: ",
      ...(site || bot ? [] : copyable(tryIt())),
    );
  else if (report.since && report.since > report.from)
    parts.push(`There is no history from before ${report.since.slice(0, 16).replace("T", " ")} UTC.`);
  show(
    $("history-note"),
    parts.map((part) => part.textContent ?? part),
    () => parts.map((part) => (part instanceof Node ? part : make("span", {}, part))),
  );
  showTables(report, unfetched, wanted, exact, open);
}

/** Returns the sites whose robots.txt cannot be fetched. The site that has failed for the longest time comes first. */
async function failingFetches(site) {
  try {
    const { origins } = await api(
      "origins",
      { state: "failing", sort: "failing-since", search: site, limit: 10 },
      20000,
    );
    return origins.filter((row) => !site || row.origin === site);
  } catch {
    // If the API does not return the list, show the other tables without it.
    return [];
  }
}

/** Says how a count compares with the count in the period before, which is as long. */
function than(count_, before) {
  if (before == null) return null;
  if (before === 0) return count_ > 0 ? make("span", { class: "muted" }, "new") : null;
  const factor = count_ / before;
  const text =
    Math.abs(factor - 1) >= 0.05
      ? `${factor > 1 ? "+" : "−"}${count(Math.round(Math.abs(factor - 1) * 100))} %`
      : "same";
  return make("span", { class: factor >= 1.5 ? "deny" : "muted", title: `${count(before)} in the time before` }, text);
}

/** Creates a table, or says that it is empty. */
function tableOf(heads, rows, empty) {
  if (rows.length === 0) return muted(empty);
  const cell = (value, index) =>
    index === 0
      ? make("th", { scope: "row" }, value)
      : make(
          "td",
          {
            "data-label": heads[index].replace(/^#/, ""),
            class: `${heads[index].startsWith("#") ? "number" : ""} ${value == null ? "none" : ""}`,
          },
          value ?? "–",
        );
  return make(
    "table",
    { class: "cards" },
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        ...heads.map((head) =>
          make("th", { scope: "col", class: head.startsWith("#") && "number" }, head.replace(/^#/, "")),
        ),
      ),
    ),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))),
  );
}

function showTables(report, unfetched, wanted, exact, open) {
  const toSite = (site) => link("origin", { origin: site }, data(site));
  const toBot = ({ bot, bot_label }, fields) =>
    make("a", { href: historyHash({ ...wanted, bot: bot_label, ...fields }) }, bot ? data(bot) : "(no bot)");
  const showMost = (id, rows, forwarded, empty) =>
    show($(id), rows, () =>
      tableOf(
        ["Site", "Bot", "Reason", "Rule", forwarded === "yes" ? "#Forwarded" : "#Refusals", "#Change"],
        rows.slice(0, ROWS).map((row) => {
          const { site, bot, reason } = row;
          return [
            toSite(site),
            toBot(row),
            make("span", {}, make("b", { class: row.verdict }, row.verdict), reason !== row.verdict && `, ${reason}`),
            row.rule && data(row.rule),
            make("a", { href: open({ site, bot: bot ?? "none", reason, forwarded }) }, count(row.count)),
            than(row.count, row.before),
          ];
        }),
        empty,
      ),
    );
  showMost("most", report.refusals, "no", "Nothing was refused in this time.");
  showMost("not-enforced", report.not_enforced, "yes", "Nothing disallowed was forwarded in this time.");
  show($("refused-bots"), [report.refused_bots, report.bots], () => {
    // Leave out `other`: its counts are those of several bots together.
    const known = new Map(report.bots.filter((row) => row.bot !== "other").map((row) => [row.bot, row]));
    return tableOf(
      ["Bot", "#Refusals", "#Change", "#Too fast (defer)", "#Allowed", "#Not enforced"],
      report.refused_bots
        .slice(0, ROWS)
        .map((row) => [
          toBot(row, { only: "refusals", by: "reason" }),
          make("a", { href: open({ bot: row.bot ?? "none", forwarded: "no" }) }, count(row.count)),
          than(row.count, row.before),
          count(known.get(row.bot_label)?.defer),
          count(known.get(row.bot_label)?.allow),
          count(known.get(row.bot_label)?.not_enforced),
        ]),
      "No bot was refused in this time.",
    );
  });
  show($("refused-sites"), report.refused_sites, () =>
    tableOf(
      ["Site", "#Refusals", "#Change", "#Requests"],
      report.refused_sites
        .slice(0, ROWS)
        .map((row) => [
          toSite(row.site),
          make("a", { href: open({ site: row.site, forwarded: "no" }) }, count(row.refused)),
          than(row.refused, row.refused_before),
          count(row.requests),
        ]),
      "Nothing was refused in this time.",
    ),
  );
  const since = (what, at) =>
    make(
      "span",
      { class: "deny" },
      what,
      make("span", { class: "unbroken" }, `${at.slice(0, 16).replace("T", " ")} UTC`),
    );
  show($("failing"), [report.failing_sites, unfetched], () => [
    tableOf(
      ["Site", "Since when", "#Failed", "#Answered"],
      [
        ...report.failing_sites
          .slice(0, ROWS)
          .map((row) => [
            toSite(row.site),
            row.failing_since ? since("no answer since ", row.failing_since) : "answers sometimes",
            make(
              "a",
              { href: historyHash({ ...wanted, site: row.site, by: "answer", only: null }) },
              count(row.failed),
            ),
            count(row.answered),
          ]),
        ...unfetched.map((row) => [
          toSite(row.origin),
          make(
            "span",
            {},
            row.failing_since && since("no successful fetch of robots.txt since ", row.failing_since),
            row.error && `: ${row.error}`,
          ),
          null,
          null,
        ]),
      ],
      "No site failed to answer a forwarded request in this time, and no fetch of a robots.txt failed.",
    ),
    make(
      "p",
      { class: "more" },
      link("origins", { state: "failing", sort: "failing-since" }, "All sites whose robots.txt cannot be fetched"),
    ),
  ]);
  show($("slow"), report.slow_sites, () =>
    tableOf(
      ["Site", "#Mean wait", "#Answered"],
      report.slow_sites
        .slice(0, ROWS)
        .map((row) => [
          toSite(row.site),
          make("a", { href: historyHash({ ...wanted, site: row.site, by: "answer", only: null }) }, wait(row.mean_us)),
          count(row.answered),
        ]),
      "No site answered a request in this time.",
    ),
  );
}

/** Formats a duration, given in microseconds. */
function wait(us) {
  if (us == null) return "–";
  return us < 1e5 ? `${(us / 1000).toFixed(us < 1e4 ? 1 : 0)} ms` : `${(us / 1e6).toFixed(us < 1e7 ? 2 : 0)} s`;
}
