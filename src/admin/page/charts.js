// Charts of the history: stacked bars with axes. The pointer or the arrow keys choose a bar, and the page shows its
// numbers as text. Each chart also has a table for people who cannot see it.

const CHART = { height: 190, left: 48, right: 8, top: 10, bottom: 22 };
const TICKS = [5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];
const DAY = 86400;

/** Creates an SVG element. */
function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Formats a number of seconds for the end of "per …", such as `minute` or `5 min`. */
function lengthOf(seconds) {
  if (seconds < 60) return seconds === 1 ? "second" : `${seconds} s`;
  if (seconds < 3600) return seconds === 60 ? "minute" : `${seconds / 60} min`;
  if (seconds < DAY) return seconds === 3600 ? "hour" : `${seconds / 3600} h`;
  return "day";
}

/** Formats a time in UTC, with seconds if `step` is less than a minute. */
function clock(at, step, withDay = false) {
  const text = new Date(at * 1000).toISOString();
  const day = new Date(at * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  const time = text.slice(11, step < 60 ? 19 : 16);
  return withDay ? `${day} ${time}` : time;
}

/** Returns the smallest round number that is at least `value`. Its half, which the axis also shows, is round too. */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return (power === 1 ? [1, 2, 4, 6, 8, 10] : [1, 2, 3, 4, 6, 8, 10])
    .map((factor) => factor * power)
    .find((nice) => nice >= value);
}

/**
 * Draws `report` into `box`. `options.label` says what the chart counts.
 * `options.kind(series, index)` returns the CSS class of a series.
 * `options.title(series)` returns the name that is shown for a series.
 * `options.link(series)` returns the URL to which this name links, or null.
 * `options.pick(from, until)` is called when the user clicks on a bar, or presses Enter. The bar covers the time
 * from `from` to `until`, in seconds since 1970.
 */
function drawChart(box, report, options) {
  const { step } = report;
  const from = Date.parse(report.from) / 1000;
  const points = Math.max(1, Math.round((Date.parse(report.until) / 1000 - from) / step));
  // If there is `options.order`, it gives the order of the series. Otherwise, they keep the order of the report: the
  // largest first.
  const order = (each) => (options.order ?? []).indexOf(each.name);
  const series = report.series.toSorted((a, b) => order(a) - order(b));
  const sums = Array.from({ length: points }, (_, point) => series.reduce((sum, each) => sum + each.counts[point], 0));
  const top = niceAbove(Math.max(1, ...sums));
  const width = Math.max(280, Math.floor(box.clientWidth || 600));
  const inner = { width: width - CHART.left - CHART.right, height: CHART.height - CHART.top - CHART.bottom };
  const x = (point) => CHART.left + (point * inner.width) / points;
  const y = (value) => CHART.top + inner.height * (1 - value / top);
  const long = points * step > DAY / 2;

  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${CHART.height}`,
    width,
    height: CHART.height,
    "aria-hidden": "true",
  });
  for (const value of top === 1 ? [0, 1] : [0, top / 2, top]) {
    drawing.append(
      svg("line", { class: "grid", x1: CHART.left, x2: width - CHART.right, y1: y(value), y2: y(value) }),
      svg("text", { class: "tick", x: CHART.left - 6, y: y(value) + 4, "text-anchor": "end" }, brief(value)),
    );
  }
  const wide = long ? 96 : step < 60 ? 76 : 60;
  const tick = TICKS.find((each) => each >= step && (points * step) / each <= inner.width / wide) ?? 2 * DAY;
  for (let at = Math.ceil(from / tick) * tick; at < from + points * step; at += tick) {
    const left = x((at - from) / step);
    drawing.append(svg("line", { class: "mark", x1: left, x2: left, y1: y(0), y2: y(0) + 4 }));
    const text = clock(at, tick, long);
    // Leave out a label that would not fit into the drawing.
    if (Math.min(left, width - left) < text.length * 3.4) continue;
    drawing.append(svg("text", { class: "tick", x: left, y: CHART.height - 5, "text-anchor": "middle" }, text));
  }
  const base = new Array(points).fill(0);
  const gap = inner.width / points > 4 ? 1 : 0;
  series.forEach((each, index) => {
    let path = "";
    each.counts.forEach((count, point) => {
      if (count === 0) return;
      const [low, high] = [y(base[point]), y(base[point] + count)];
      base[point] += count;
      path += `M${x(point).toFixed(1)} ${low.toFixed(1)}V${high.toFixed(1)}H${(x(point + 1) - gap).toFixed(1)}V${low.toFixed(1)}Z`;
    });
    drawing.append(svg("path", { class: options.kind(each, index), d: path }));
  });
  const cursor = svg("rect", {
    class: "cursor",
    y: CHART.top,
    width: inner.width / points,
    height: inner.height,
    visibility: "hidden",
  });
  drawing.append(cursor);

  // Reuse the element that can have the focus, so that it keeps the focus when the chart is drawn again.
  const figure = box.figure ?? (box.figure = make("div", { class: "plot", tabindex: 0, role: "application" }));
  const told = box.told ?? (box.told = make("p", { class: "told", "aria-live": "polite" }));
  const unit = `per ${lengthOf(step)}`;
  figure.setAttribute(
    "aria-label",
    `Chart: ${options.label}, ${unit}. Use the arrow keys to read it, and Enter to open a time.`,
  );
  const isFocused = box.at != null && box.at < points;
  figure.replaceChildren(drawing);

  const time = (point) => `${clock(from + point * step, step, true)}–${clock(from + (point + 1) * step, step)} UTC`;
  const tell = (point) => {
    box.at = point;
    if (point == null) {
      cursor.setAttribute("visibility", "hidden");
      const total = sums.reduce((sum, each) => sum + each, 0);
      told.textContent = `${count(total)} in all; at most ${count(Math.max(...sums))} ${unit}. Times are in UTC.`;
      return;
    }
    cursor.setAttribute("x", x(point));
    cursor.setAttribute("visibility", "visible");
    const parts = series
      .filter((each) => each.counts[point] > 0)
      .map((each) => `${options.title(each)} ${count(each.counts[point])}`);
    told.textContent = visible(`${time(point)}: ${parts.join(", ") || "none"}`);
  };
  tell(isFocused ? box.at : null);
  const pick = (point) => options.pick?.(from + point * step, from + (point + 1) * step);
  const pointOf = (event) => {
    const left = event.clientX - figure.getBoundingClientRect().left - CHART.left;
    const point = Math.floor((left / inner.width) * points);
    return point >= 0 && point < points ? point : null;
  };
  figure.onpointermove = (event) => tell(pointOf(event));
  figure.onpointerleave = () => tell(null);
  figure.onblur = () => tell(null);
  figure.onclick = (event) => pointOf(event) != null && pick(pointOf(event));
  figure.onkeydown = (event) => {
    const at = box.at;
    const moves = { ArrowLeft: (at ?? points) - 1, ArrowRight: (at ?? -1) + 1, Home: 0, End: points - 1 };
    if (event.key in moves) tell(Math.min(points - 1, Math.max(0, moves[event.key])));
    else if (event.key === "Enter" && at != null) pick(at);
    else if (event.key === "Escape") tell(null);
    else return;
    event.preventDefault();
  };
  if (!box.contains(figure)) {
    box.legend = make("ul", { class: "plain legend" });
    box.table = make("details", { class: "as-table" }, make("summary", {}, "As a table"));
    box.table.addEventListener("toggle", () => box.fill());
    box.replaceChildren(figure, told, box.legend, box.table);
  }
  show(box.legend, [report.from, report.until, series.map((each) => [each.name, each.total])], () =>
    series.map((each, index) => {
      const title = [
        make("i", { class: options.kind(each, index) }),
        data(options.title(each)),
        ` ${count(each.total)}`,
      ];
      const href = options.link?.(each);
      return make("li", {}, href ? make("a", { href }, ...title) : title);
    }),
  );
  // Fill the table only when somebody opens it, because most tables are never opened.
  box.fill = () => {
    if (!box.table.open) return;
    box.table.querySelector("div")?.remove();
    const rows = sums.flatMap((sum, point) =>
      sum === 0
        ? []
        : [
            make(
              "tr",
              {},
              make("th", { scope: "row" }, time(point)),
              ...series.map((each) => make("td", { class: "number" }, count(each.counts[point]))),
            ),
          ],
    );
    const heads = ["Time", ...series.map(options.title)].map((title, index) =>
      make("th", { scope: "col", class: index > 0 && "number" }, title),
    );
    box.table.append(
      make(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of the chart" },
        rows.length
          ? make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows))
          : muted("Nothing."),
      ),
    );
  };
  box.fill();
  box.redraw = () => drawChart(box, report, options);
}

/** Formats a number for an axis, in a few characters, such as 20k. */
function brief(n) {
  for (const [unit, size] of [
    ["M", 1e6],
    ["k", 1e3],
  ])
    if (n >= size) return `${n / size}${unit}`;
  return String(n);
}

window.addEventListener("resize", () => {
  for (const box of document.querySelectorAll(".chart-box")) box.redraw?.();
});
