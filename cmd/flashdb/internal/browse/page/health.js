// The health of a collection: its index, what is newer, what recall its plans reach, its files, and
// its releases, and the times of the last queries.
import { h, s, fill, ask, fault, waiting, count, counted, millis } from "./dom.js";
import { keyLink } from "./app.js";

export async function healthView(main, now, signal) {
  main.dataset.shown = "";
  fill(main, waiting("Counting…"));
  try {
    const a = await ask("health", { c: now.c }, signal);
    if (signal.aborted) return;
    fill(main, h("h1", {}, "Health of ", h("bdi", {}, now.c)),
      a.warnings.map((w) => h("p", { class: "note" }, w)),
      facts("Collection and index", a.facts), a.growth && changes(a.growth), curves(a.curves), a.releases.length > 0 && releases(a.releases), facts("Files of the whole database", a.files), queries(a.queries));
  } catch (err) {
    if (err.name !== "AbortError") fill(main, fault(err, () => healthView(main, now, signal)));
  }
}

// changes draws what has changed since the index was built, as shares of all rows.
function changes(g) {
  const all = g.indexed + g.newer + g.dead || 1;
  const parts = [["indexed", g.indexed, "in the index"], ["newer", g.newer, "newer"], ["dead", g.dead, "dead"]];
  const section = facts("Growth since the index was built", g.facts);
  section.querySelector("h2").after(h("div", { class: "card growth" },
    h("div", { class: "shares", role: "img", "aria-label": parts.map(([, n, what]) => `${counted(n, "row")} ${what}`).join(", ") },
      parts.filter(([, n]) => n > 0).map(([kind, n]) => h("span", { class: `share ${kind}`, "data-share": n / all }))),
    h("ul", { class: "legend" }, parts.map(([kind, n, what]) => h("li", {}, h("span", { class: `swatch ${kind}` }), `${count(n)} ${what}`)))));
  for (const part of section.querySelectorAll(".share")) part.style.flexGrow = part.dataset.share;
  return section;
}

// releases lists what each release has of the collection.
function releases(list) {
  const day = (time) => (time ? new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : "–");
  return h("section", {}, h("h2", {}, "Releases"), h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Releases" }, h("table", {},
    h("thead", {}, h("tr", {}, ["release", "state", "embeddings", "decoders", "index", "staged", "published"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, list.map((r) => h("tr", {}, h("td", {}, h("b", {}, h("bdi", {}, r.name))), h("td", {}, h("span", { class: `state ${r.state}` }, r.state)),
      h("td", {}, count(r.rows), r.without_row > 0 && h("span", { class: "soft" }, ` (${counted(r.without_row, "node")} without)`)),
      h("td", {}, r.decoders.length ? h("bdi", {}, r.decoders.join(", ")) : "none"), h("td", {}, r.generation ? `generation ${r.generation}` : "none"), h("td", {}, day(r.created)), h("td", {}, day(r.published))))))));
}

function facts(title, list) {
  return h("section", {}, h("h2", {}, title), h("dl", { class: "facts" }, list.map((f) => h("div", { class: "card" }, h("dt", {}, f.name), h("dd", {}, h("b", {}, f.value), f.note && h("span", { class: "soft" }, f.note))))));
}

function curves(list) {
  const section = h("section", {}, h("h2", {}, "Calibration: what recall costs"));
  if (!list.length) section.append(h("p", { class: "soft" }, "No decoder is calibrated. flashdb rebuild, or flashdb calibrate, measures plans on this collection."));
  else section.append(h("p", { class: "soft" }, "Each dot is a plan: the share of the exact answer that it finds on average, over the time it takes. The bar below a dot reaches down to what is certain at 95%. The green line is the recall that queries ask for unless told otherwise."), h("div", { class: "curves" }, list.map(curve)));
  return section;
}

function curve(c) {
  const about = `measured with ${counted(c.sources, "node")} of ${c.from}; the exact scan takes ${millis(c.exact_ms)}`;
  return h("article", { class: "card" }, h("h3", {}, h("bdi", {}, c.decoder), `, best ${c.k}`), h("p", { class: "soft" }, about, c.old && "; measured on an earlier index"),
    c.plans.length ? [chart(c), h("details", {}, h("summary", {}, "Numbers"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Plans" }, table(c)))] : h("p", { class: "soft" }, "No plan is faster than the exact scan, so that queries scan every node."));
}

function table(c) {
  return h("table", {}, h("thead", {}, h("tr", {}, ["plan", "mean", "95% bound", "worst", "rows scored", "time"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, c.plans.map((p) => h("tr", {}, h("td", {}, p.plan), h("td", {}, p.mean.toFixed(4)), h("td", {}, p.bound.toFixed(4)), h("td", {}, p.worst.toFixed(3)), h("td", {}, count(Math.round(p.scored))), h("td", {}, millis(p.ms))))));
}

// chart draws recall over time. Time is on a logarithmic axis.
function chart(c) {
  const width = 420, height = 210, left = 44, right = 14, top = 12, bottom = 38;
  const low = Math.min(...c.plans.map((p) => Math.min(p.mean, p.bound)), 0.98);
  const floor = low >= 0.9 ? 0.9 : low >= 0.5 ? 0.5 : 0;
  const times = c.plans.map((p) => Math.max(p.ms, 1e-4)).concat(Math.max(c.exact_ms, 1e-4));
  const t0 = Math.log10(Math.min(...times)) - 0.1, t1 = Math.log10(Math.max(...times)) + 0.1;
  const x = (ms) => left + (Math.log10(Math.max(ms, 1e-4)) - t0) / (t1 - t0) * (width - left - right);
  const y = (r) => top + (1 - r) / (1 - floor) * (height - top - bottom);
  const ticks = [1, 0.98, (1 + floor) / 2, floor].filter((r, i, all) => all.indexOf(r) === i);
  const marks = [];
  for (let e = Math.floor(t0); e <= t1; e++) for (const m of [1, 2, 5]) { const ms = m * Math.pow(10, e); if (Math.log10(ms) > t0 && Math.log10(ms) < t1) marks.push(ms); }
  const few = marks.filter((ms) => marks.length <= 6 || /^1/.test(ms.toExponential()));
  const end = x(c.exact_ms);
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Mean recall from ${c.plans[0].mean.toFixed(3)} in ${millis(c.plans[0].ms)} to ${c.plans[c.plans.length - 1].mean.toFixed(3)} in ${millis(c.plans[c.plans.length - 1].ms)}` },
    ticks.map((r) => [s("line", { class: r === 0.98 ? "grid goal" : "grid", x1: left, x2: width - right, y1: y(r), y2: y(r) }), s("text", { x: left - 6, y: y(r) + 4, "text-anchor": "end" }, String(Number(r.toFixed(3))))]),
    few.map((ms) => [s("line", { class: "grid", x1: x(ms), x2: x(ms), y1: height - bottom, y2: height - bottom + 4 }), s("text", { x: x(ms), y: height - bottom + 17, "text-anchor": "middle" }, millis(ms))]),
    s("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "time of a query on one core"),
    s("text", { x: left + 6, y: height - bottom - 6 }, "mean recall"),
    s("line", { class: "exact", x1: end, x2: end, y1: top, y2: height - bottom }), s("text", { x: end - 5, y: height - bottom - 6, "text-anchor": "end" }, "exact scan"),
    s("path", { class: "line", d: c.plans.map((p, i) => `${i ? "L" : "M"}${x(p.ms).toFixed(1)} ${y(p.mean).toFixed(1)}`).join("") }),
    c.plans.map((p) => s("g", { class: "plan" }, s("line", { x1: x(p.ms), x2: x(p.ms), y1: y(p.mean), y2: y(p.bound) }), s("circle", { cx: x(p.ms), cy: y(p.mean), r: 4 }), s("title", {}, `${p.plan}: mean ${p.mean.toFixed(4)}, at least ${p.bound.toFixed(4)}, ${millis(p.ms)}`))));
}

function queries(list) {
  const section = h("section", {}, h("h2", {}, "Last queries of this page"));
  if (!list.length) { section.append(h("p", { class: "soft" }, "None yet. Look at a node, and its queries are here.")); return section; }
  const most = Math.max(...list.map((q) => q.ms));
  section.append(h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Last queries" }, h("table", { class: "queries" },
    h("thead", {}, h("tr", {}, ["when", "node", "asked", "time", "rows scored"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, list.map((q) => h("tr", {}, h("td", {}, new Date(q.when).toLocaleTimeString("en-GB")), h("td", {}, keyLink(q.node, q.from)), h("td", {}, q.what === "predict" ? "predict " : "search ", h("bdi", {}, q.by)),
      h("td", {}, h("meter", { min: 0, max: most, value: q.ms, "aria-hidden": "true" }), " ", millis(q.ms)), h("td", {}, count(q.scored))))))));
  return section;
}
