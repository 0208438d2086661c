// The list of sites, and the view of one.

// === Origins ===

// The columns of the list: the name in the API, the title, the content of a cell, and whether that is a number.
const COLUMNS = [
  ["origin", "Site", (row) => link("origin", { origin: row.origin }, data(row.origin))],
  ["holds", "What applies", whatApplies],
  ["fetched", "Last fetch", (row) => time(row.fetched)],
  ["expires", "Next fetch", (row) => time(row.expires)],
  ["bytes", "Size", (row) => bytes(row.bytes), true],
  ...VERDICTS.map((verdict) => [verdict, verdict, (row) => count(row.verdicts?.[verdict] ?? 0), true]),
];
let wantedSites = {}; // the fields after `#origins?` in the page's URL

for (const holds of STATES)
  $("state-filter").append(make("option", { value: holds }, holds.replaceAll("-", " ")));
for (const [sort, title] of [...COLUMNS, ["failing-since", "failing since"]])
  for (const order of ["asc", "desc"])
    $("sort").append(make("option", { value: `${sort} ${order}` }, `${title} ${order === "asc" ? "↑" : "↓"}`));

const sitesHash = (fields) => {
  const kept = Object.entries({ ...wantedSites, ...fields }).filter(([, value]) => value);
  return `#origins?${new URLSearchParams(kept)}`.replace(/\?$/, "");
};

/** Shows the heads of the columns: buttons that sort. */
function showHeads(sort, order) {
  show($("origins-heads"), [sort, order], () =>
    COLUMNS.map(([name, title, , isNumber]) => {
      const here = name === sort;
      // The first click on a column of numbers or on "Last fetch" puts the largest value first.
      const first = isNumber || name === "fetched" ? "desc" : "asc";
      const next = here ? (order === "asc" ? "desc" : "asc") : first;
      const button = make(
        "button",
        { type: "button", class: "head", "data-sort": name },
        title,
        here ? (order === "asc" ? " ↑" : " ↓") : "",
      );
      button.addEventListener("click", () => (location.hash = sitesHash({ sort: name, order: next, offset: null })));
      return make(
        "th",
        {
          scope: "col",
          class: isNumber && "number",
          "aria-sort": here ? (order === "asc" ? "ascending" : "descending") : null,
        },
        button,
      );
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
    else
      $("origins-note").replaceChildren(
        "robotgate knows no site yet: no bot has requested a page. Try: ",
        ...copyable(tryIt()),
      );
  } catch (problem) {
    if (question === list.question) write("origins-note", `The sites cannot be shown. ${problem.message}`);
  } finally {
    clearTimeout(slow);
  }
}

function whatApplies(row) {
  return make(
    "span",
    {},
    row.meaning,
    row.status != null && ` (${row.status})`,
    row.failing_since && make("span", { class: "deny" }, ", failing since ", time(row.failing_since)),
  );
}

function originRow(row) {
  const [[, , site], ...others] = COLUMNS;
  const cells = others.map(([name, title, content, isNumber]) => {
    const isNone = VERDICTS.includes(name) && !row.verdicts?.[name];
    const kind = isNumber ? `number${isNone ? " none" : ""}` : undefined;
    return make("td", { "data-label": title, class: kind }, content(row) ?? "–");
  });
  return make("tr", {}, make("th", { scope: "row" }, site(row)), ...cells);
}

$("refresh").addEventListener("click", () => showOrigins());
const turnPage = (by) => {
  location.hash = sitesHash({ offset: Math.max(0, (Number(wantedSites.offset) || 0) + by) });
  $("view-origins").scrollIntoView();
};
$("more").addEventListener("click", () => turnPage(PAGE));
$("previous").addEventListener("click", () => turnPage(-PAGE));
$("state-filter").addEventListener(
  "change",
  () => (location.hash = sitesHash({ state: $("state-filter").value, offset: null })),
);
$("sort").addEventListener("change", () => {
  const [sort, order] = $("sort").value.split(" ");
  location.hash = sitesHash({ sort, order, offset: null });
});
let typing = null;
$("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    // The operator may have left the list during the pause after the last keystroke.
    if (view !== "origins") return;
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
          ["What applies", row.meaning],
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
    if (row.bots?.length > 0)
      left.append(
        make("h3", {}, "Its pace and purposes, by bot"),
        make("ul", { class: "plain rules" }, row.bots.map(atSite)),
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
      row.robots == null
        ? muted("robotgate has no text of this robots.txt.")
        : file(row.robots, null, row.robots_truncated);
    $("origin").replaceChildren(left, make("div", {}, right, versions));
    showSiteHistory(origin, about);
    showVersions(origin, versions);
  } catch (problem) {
    if (question !== asked) return;
    const text = problem.status === 404 ? "robotgate knows nothing about this site." : problem.message;
    $("origin").replaceChildren(make("p", { class: "error" }, text));
  }
}

/** Says how fast a bot may send requests to a site, and what the site says about the bot's purposes. */
function atSite(bot) {
  const pace = bot.pace_error
    ? bot.pace_error
    : bot.gap_ms != null &&
      (bot.gap_ms > 0 ? `a request every ${wait(bot.gap_ms * 1000)} (${bot.gap_cause})` : "no delay between requests");
  const parts = [
    pace,
    bot.usage &&
      (uses(bot.usage) ||
        `${bot.usage.purposes.join(", ")}: nothing is said`),
  ];
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
      order: [...VERDICTS, NOT_ENFORCED],
      kind: kindOf("verdict"),
      title: titleOf("verdict"),
      link: (each) =>
        each.name === "allow"
          ? null
          : `#refusals?${new URLSearchParams({ filter: filterOf({ site, ...partsOf(each.name) }, {}) })}`,
      pick: (from, until) =>
        (location.hash = historyHash({ ...wanted, range: "chosen", from: iso(from), until: iso(until) })),
    });
    const failing = report.failing_sites.find((row) => row.site === site);
    if (failing)
      box.after(
        make(
          "p",
          { class: "deny" },
          `${plural(failing.failed, "request")} failed, ${count(failing.answered)} answered`,
          failing.failing_since && `; no answer since ${failing.failing_since.slice(0, 16).replace("T", " ")} UTC`,
          ". ",
          make("a", { href: historyHash({ ...wanted, by: "answer" }) }, "When"),
        ),
      );
    const slow = report.slow_sites.find((row) => row.site === site);
    if (slow) box.after(muted(`Mean wait for an answer: ${wait(slow.mean_us)}.`));
  } catch {
    box.replaceChildren(muted("The history of this site cannot be shown."));
  }
}

/** Lists the versions of a site's robots.txt. An open version shows the difference from the version before it. */
async function showVersions(origin, box) {
  try {
    const { versions } = await api("origins/versions", { origin });
    if (!box.isConnected || versions.length === 0) return;
    box.append(
      make("h3", {}, `Versions of its robots.txt (${count(versions.length)})`),
      make(
        "ul",
        { class: "plain versions" },
        versions
          .reverse()
          .slice(0, SHOWN)
          .map((version) => make("li", {}, versionOf(origin, version))),
      ),
      ...(versions.length > SHOWN ? [muted(`Older versions: robotgate cache history ${origin}`)] : []),
    );
  } catch (problem) {
    box.append(muted(`The versions of the robots.txt cannot be shown. ${problem.message}`));
  }
}

function versionOf(origin, version) {
  const what =
    version.sha256 == null
      ? `no robots.txt${version.status ? ` (${version.status})` : ""}`
      : `${bytes(version.bytes)}, SHA-256 ${version.sha256.slice(0, 12)}`;
  const day = (at) => at.slice(0, 16).replace("T", " ");
  const details = make(
    "details",
    {},
    make(
      "summary",
      {},
      `Version ${version.version}: from ${day(version.first_seen)} UTC, last seen ${day(version.last_seen)}, ${what}`,
    ),
  );
  details.addEventListener("toggle", async () => {
    if (!details.open || details.childElementCount > 1) return;
    const box = make("div", {}, muted("Comparing…"));
    details.append(box);
    try {
      const { difference } = await api("origins/versions", { origin, to: version.version });
      if (!difference)
        return box.replaceChildren(muted("This is the oldest version, so there is none to compare it with."));
      const lines = difference.diff.split("\n").slice(2);
      box.replaceChildren(
        muted(
          difference.rules === "unchanged"
            ? "The rules are the same."
            : `${plural(difference.rules_added, "rule")} added, ${count(difference.rules_removed)} removed.`,
        ),
        make(
          "pre",
          { class: "diff", tabindex: 0, role: "region", "aria-label": "Difference" },
          ...lines.map((line) =>
            make("span", { class: { "+": "allow", "-": "deny", "@": "muted" }[line[0]] }, `${line}\n`),
          ),
        ),
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
  // Put many lines into one text node. An element for each line would be too slow: a file can have 250,000 lines.
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
