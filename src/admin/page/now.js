// The view of what happens now, and the banners above every view.

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
        "Configuration ",
        count(s.generation),
        " stays in use. Rejected ",
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
    make(
      "p",
      {},
      "Decisions that are based on new robots.txt files cannot be replayed later. ",
      s.evidence.error ?? "",
    ),
  );
  banner("seal", "warn", s.seal?.fails && "The audit log cannot be sealed.", null, () =>
    make("p", {}, "Later changes to its new lines cannot be detected. robotgate's operational log says why."),
  );
  banner("fleet", "warn", s.fleet && !s.fleet.connected && "The fleet's server is not used.", s.fleet?.error, () =>
    make(
      "p",
      {},
      "Until it can be used, robotgate fetches every robots.txt itself, and applies [pace] as fleet.on-loss says. ",
      s.fleet.error ? `Reason: ${s.fleet.error}.` : "",
    ),
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
  // A link cannot send the token. So hide the links to the API if the API requires a token.
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

/** Return functions for the CSS class and the title of a series in a chart by verdict, reason, bot, site or answer. */
const kindOf = (by) => (each, index) =>
  each.name == null
    ? "rest"
    : by === "verdict"
      ? each.name
      : by === "answer"
        ? { answered: "allow", failed: "deny" }[each.name]
        : `s${index}`;
const titleOf = (by) => (each) => each.name ?? (by === "site" ? "all other sites" : "all others");

async function showNowChart() {
  const report = await api("history", { from: "5m", by: "verdict" });
  drawChart($("now-chart"), report, {
    label: "decisions of the last 5 minutes",
    order: [...VERDICTS, NOT_ENFORCED],
    kind: kindOf("verdict"),
    title: titleOf("verdict"),
    link: (each) =>
      `#history?${new URLSearchParams({ range: "1h", by: "reason", ...(!["allow", NOT_ENFORCED].includes(each.name) && { only: "refusals" }) })}`,
    pick: (from, until) =>
      (location.hash = historyHash({ range: "chosen", from: iso(from), until: iso(until), by: "reason" })),
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
          ? "rejected robotgate's certificate"
          : "ends its connections as soon as it sees robotgate's certificate";
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

// === Changes of robots.txt files ===

async function showChanges() {
  if (performance.now() - lookedForChanges < CHANGES_PERIOD) return;
  const { changes } = await api("changes");
  lookedForChanges = performance.now();
  show($("changes"), changes, () =>
    changes.length === 0
      ? muted("No site has changed its robots.txt lately.")
      : make(
          "ul",
          { class: "plain" },
          changes
            .reverse()
            .slice(0, MAX_CHANGES)
            .map((record) => make("li", {}, change(record))),
        ),
  );
}

/** Describes in a sentence what a change of a robots.txt did. */
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
    make("summary", {}, time(record.time), " ", data(record.origin), ": ", changed(record)),
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
