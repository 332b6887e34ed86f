// The collection as a map: a sample of its nodes where they vary most, the node and its hits on it.
import { h, fill, ask, tell, fault, waiting, labelOf, count, millis } from "./dom.js";
import { go, hrefOf, hrefOfNode, isDark, keyLink } from "./app.js";
import { aboutCollection, noNode, queryOf } from "./node.js";
import { settle } from "./controls.js";

const light = ["#0072b2", "#d55e00", "#009e73", "#b5478a", "#8a6d00", "#5b4fc4"];
const dark = ["#56b4e9", "#ff8a3d", "#2fd6a5", "#f08cc6", "#f0e442", "#a99bff"];
const maps = new Map(); // by collection: the server keeps them too

export async function mapView(main, now, signal) {
  main.dataset.shown = "";
  fill(main, waiting("Drawing a sample of the collection…"));
  try {
    const offer = await aboutCollection(now.c, signal);
    const asked = settle(now, offer);
    // The map is that of the nodes that are found, so that the hits lie on it.
    const c = now.key ? asked.to : now.c;
    const map = maps.get(c) || await ask("map", { c }, signal);
    if (map.points.length) maps.set(c, map);
    const here = now.key ? await hitsOf(asked, c, signal) : { points: [], hits: [] };
    if (signal.aborted) return;
    if (map.points.length) show(main, now, c, map, here, signal);
    else fill(main, h("section", { class: "empty" }, noNode(c)));
  } catch (err) {
    if (err.name !== "AbortError") fill(main, fault(err, () => mapView(main, now, signal)));
  }
}

async function hitsOf(asked, c, signal) {
  const query = { ...queryOf(asked), k: Math.min(Number(asked.k) || 20, 100) };
  const found = await (asked.decoder ? ask("predict", query, signal) : ask("nearest", { ...query, by: "ip" }, signal));
  const { points } = await tell("place", { c, from: asked.c, source: asked.key, keys: found.hits.map((hit) => hit.key) }, signal);
  return { points, hits: found.hits };
}

function show(main, now, c, map, here, signal) {
  const colouring = (tag) => go(hrefOf({ tag }), true);
  const chosen = map.tags.includes(now.tag) ? now.tag : "";
  const legend = chosen ? [chosen] : map.tags.slice(0, light.length);
  const canvas = h("canvas", { class: "map", tabindex: "0", role: "img", "aria-label": `Map of ${map.points.length} nodes of ${c}${here.hits.length ? ` with ${here.hits.length} hits` : ""}. The lists beside it hold the same hits.` });
  const tip = h("p", { class: "tip", hidden: true });
  const view = scene(canvas, tip, map, here, legend.map((tag) => map.tags.indexOf(tag)), (ref, own) => go(hrefOfNode(ref, own ? now.c : c)));
  fill(main, h("div", { class: "layout map-layout" },
    h("section", { class: "card", "aria-label": "Map" },
      h("div", { class: "bar" }, h("h1", {}, "Map of ", h("bdi", {}, c)),
        h("div", { class: "tools", role: "group", "aria-label": "Map" },
          map.tags.length > 0 && [h("label", { for: "coloured" }, "Colour by"),
            h("select", { id: "coloured", onchange: (e) => colouring(e.target.value) },
              h("option", { value: "" }, "the most frequent tags"), map.tags.map((tag) => h("option", { value: tag, selected: tag === chosen }, tag)))],
          h("button", { type: "button", "aria-label": "Zoom in", onclick: () => view.zoom(1.25) }, "+"),
          h("button", { type: "button", "aria-label": "Zoom out", onclick: () => view.zoom(0.8) }, "−"),
          h("button", { type: "button", "aria-label": "Show all of it", onclick: view.reset }, "⤢"))),
      h("div", { class: "map-frame" }, canvas, tip),
      legend.length > 0 && h("ul", { class: "legend", "aria-label": "Colours" }, legend.map((tag) => h("li", {}, h("span", { class: "swatch" }), h("bdi", {}, tag))), h("li", {}, h("span", { class: "swatch" }), chosen ? "other nodes" : "none of these")),
      h("p", { class: "soft" }, `${count(map.points.length)} of ${count(map.nodes)} nodes, placed by the two directions in which their embeddings vary most. These hold ${Math.round(100 * map.share)}% of the variance, so that near on the map need not be near in the space. Drawn once, in ${millis(map.ms)}.`),
      h("p", {}, h("button", { type: "button", onclick: () => again(main, now, c) }, "Sample again"))),
    now.key ? h("section", { class: "card" }, h("h2", {}, "★ The node"), h("p", {}, keyLink({ key: now.key, label: here.points[0] && here.points[0].label }, now.c)),
      h("h2", {}, "◯ Its hits"), h("ol", { class: "hits ranked", "data-list": true }, here.hits.map((hit, i) => h("li", {}, h("span", { class: "rank" }, i + 1), keyLink(hit, c)))))
      : h("section", { class: "card" }, h("h2", {}, "No node is marked"), h("p", { class: "soft" }, "Search for a key, or choose a dot. The node and what is predicted for it are then marked."))));
  const paint = () => main.querySelectorAll(".swatch").forEach((dot, i) => { if (i < legend.length) dot.style.background = palette()[i]; });
  paint();
  view.reset();
  document.addEventListener("themechange", () => { paint(); view.draw(); }, { signal });
}

async function again(main, now, c) {
  fill(main, waiting("Drawing another sample…"));
  try {
    maps.set(c, await ask("map", { c, again: "1" }));
    go(location.search, true);
  } catch (err) { fill(main, fault(err, () => again(main, now, c))); }
}

function palette() { return isDark() ? dark : light; }

// scene draws on the canvas, and follows the pointer.
function scene(canvas, tip, map, here, tags, open) {
  const pen = canvas.getContext("2d");
  const marks = here.points.map((p, i) => ({ ...p, mark: i === 0 ? "source" : "hit" }));
  const all = [...map.points, ...marks];
  let scale = 1, ox = 0, oy = 0, held = null;
  const at = (p) => [ox + p.x * scale, oy - p.y * scale];

  function fit() {
    const xs = all.map((p) => p.x), ys = all.map((p) => p.y);
    const wide = Math.max(...xs) - Math.min(...xs) || 1, high = Math.max(...ys) - Math.min(...ys) || 1;
    scale = Math.min((canvas.clientWidth - 48) / wide, (canvas.clientHeight - 48) / high);
    ox = canvas.clientWidth / 2 - scale * (Math.max(...xs) + Math.min(...xs)) / 2;
    oy = canvas.clientHeight / 2 + scale * (Math.max(...ys) + Math.min(...ys)) / 2;
  }
  function draw() {
    const style = getComputedStyle(document.documentElement);
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const colours = palette();
    const order = [...map.points].map((p) => ({ p, i: tags.findIndex((t) => (p.tags || []).includes(t)) })).sort((a, b) => a.i - b.i);
    for (const { p, i } of order) {
      const [x, y] = at(p);
      pen.globalAlpha = i < 0 ? 0.45 : 0.85;
      pen.fillStyle = i < 0 ? style.getPropertyValue("--dim") : colours[i];
      pen.beginPath(); pen.arc(x, y, i < 0 ? 2.2 : 3, 0, 7); pen.fill();
    }
    pen.globalAlpha = 1;
    for (const m of [...marks].reverse()) {
      const [x, y] = at(m);
      pen.beginPath();
      if (m.mark === "source") star(pen, x, y, 11); else pen.arc(x, y, 6, 0, 7);
      pen.lineWidth = 4.5; pen.strokeStyle = style.getPropertyValue("--card"); pen.stroke();
      pen.lineWidth = 2; pen.strokeStyle = style.getPropertyValue("--ink"); pen.stroke();
      if (m.mark === "source") { pen.fillStyle = style.getPropertyValue("--mark"); pen.fill(); }
    }
  }
  const reset = () => { fit(); draw(); };
  const zoom = (by, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => { ox = x - (x - ox) * by; oy = y - (y - oy) * by; scale *= by; draw(); };
  function near(e) {
    const r = canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    let best = null, gap = 12;
    for (const p of all) { const [px, py] = at(p), d = Math.hypot(px - x, py - y) - (p.mark ? 4 : 0); if (d < gap) { gap = d; best = p; } }
    return best;
  }
  canvas.addEventListener("pointerdown", (e) => { held = { x: e.clientX, y: e.clientY, moved: false }; });
  canvas.addEventListener("pointermove", (e) => {
    if (held && (held.moved || Math.hypot(e.clientX - held.x, e.clientY - held.y) > 4)) {
      if (!held.moved) canvas.setPointerCapture(e.pointerId);
      held.moved = true;
      ox += e.clientX - held.x; oy += e.clientY - held.y; held.x = e.clientX; held.y = e.clientY;
      draw();
      return;
    }
    const p = near(e), r = canvas.getBoundingClientRect();
    tip.hidden = !p;
    canvas.style.cursor = p ? "pointer" : "grab";
    if (!p) return;
    tip.textContent = labelOf(p) + (p.tags && p.tags.length ? " · " + p.tags.map((t) => map.tags[t]).join(", ") : "");
    tip.style.left = `${Math.max(4, Math.min(e.clientX - r.left + 12, r.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${e.clientY - r.top + 14}px`;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("pointerup", (e) => { const moved = held && held.moved; held = null; const p = !moved && near(e); if (p) open(p, p.mark === "source"); });
  canvas.addEventListener("wheel", (e) => { if (!e.ctrlKey) return; e.preventDefault(); const r = canvas.getBoundingClientRect(); zoom(e.deltaY > 0 ? 0.89 : 1.12, e.clientX - r.left, e.clientY - r.top); }, { passive: false });
  canvas.addEventListener("keydown", (e) => {
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[e.key];
    if (step) { e.preventDefault(); ox += step[0]; oy += step[1]; draw(); }
    else if (e.key === "+") zoom(1.25);
    else if (e.key === "-") zoom(0.8);
    else if (e.key === "0") reset();
  });
  const resized = new ResizeObserver(() => { if (!canvas.isConnected) resized.disconnect(); else reset(); });
  resized.observe(canvas);
  return { reset, zoom, draw };
}

function star(pen, x, y, r) {
  for (let i = 0; i < 10; i++) {
    const a = Math.PI / 5 * i - Math.PI / 2, d = i % 2 ? r * 0.45 : r;
    pen[i ? "lineTo" : "moveTo"](x + d * Math.cos(a), y + d * Math.sin(a));
  }
  pen.closePath();
}
