// Logs in, polls robotgate, and chooses the view. This script comes last, because it starts the page.

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
  // Reload the page, which removes the data that it shows.
  location.reload();
});

// === Polling ===

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

/** Processes a new answer of api/v1/status. */
function seen(fresh) {
  skew = Date.parse(fresh.now) - Date.now();
  if (status && status.started !== fresh.started) {
    // robotgate was restarted, so its counters began at zero again.
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
  const wanted = ["now", "history", "refusals", "origins", "origin", "explain", "what-if", "configuration"].includes(
    name,
  )
    ? name
    : "now";
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
  // The link that led here may be hidden now, and a hidden element cannot keep the focus.
  if (was) $("main").focus({ preventScroll: true });
}

window.addEventListener("hashchange", route);
document.querySelector("[data-skip]").addEventListener("click", (event) => {
  event.preventDefault();
  $("main").focus();
});
setInterval(() => !document.hidden && age(), 5000);
// On a narrow screen, such as a phone's, close the panel `#running` to make the page shorter.
const wide = matchMedia("(min-width: 700px)");
wide.addEventListener("change", () => ($("running").open = wide.matches));
$("running").open = wide.matches;
view = "";
route();
poll();
