// The neighbourhood of a node as a drawing: known links to the left of it, predictions to the
// right. Each side is a column with a line for every label, so that no label hides another one.
import { s, h, fill, ask, fault, waiting, labelOf, short, percent } from "./dom.js";
import { go, hrefOf, hrefOfNode } from "./app.js";
import { queryOf } from "./node.js";

const lineHeight = 20;
const sizes = [20, 40, 60];
export async function drawGraph(place, asked, signal) {
  const heading = h("h2", {}, "Neighbourhood");
  const size = Math.min(60, Math.max(2, Math.round(Number(asked.draw)) || 30));
  const again = (draw) => {
    history.replaceState(null, "", hrefOf({ draw }));
    drawGraph(place, { ...asked, draw }, signal);
  };
  fill(place, heading, waiting("Drawing…"));
  try {
    const d = await ask("graph", { ...queryOf(asked), n: size }, signal);
    if (signal.aborted) return;
    const view = picture(d, asked, Math.max(280, place.clientWidth - 2));
    const known = d.nodes.filter((n) => n.kind === "known").length;
    fill(place, h("div", { class: "bar" }, heading, legend(),
      h("div", { class: "tools", role: "group", "aria-label": "Drawing" },
        h("label", { class: "hidden", for: "drawn" }, "Nodes drawn"),
        h("select", { id: "drawn", onchange: (e) => again(e.target.value) },
          [...new Set([size, ...sizes])].sort((a, b) => a - b).map((n) => h("option", { value: n, selected: n === size }, `${n} nodes`))),
        h("button", { type: "button", "aria-label": "Zoom in", onclick: () => view.zoom(0.8) }, "+"),
        h("button", { type: "button", "aria-label": "Zoom out", onclick: () => view.zoom(1.25) }, "−"),
        h("button", { type: "button", "aria-label": "Show all of it", onclick: view.reset }, "⤢"))),
      d.nodes.length === 1 ? h("p", { class: "soft" }, "Nothing is linked to it and nothing is predicted.") : view.svg,
      d.known > known && h("p", { class: "soft" }, `${known} of ${d.known} known links are drawn.`));
  } catch (err) {
    if (err.name === "AbortError") return;
    if (err.status === 400) fill(place, heading, h("p", { class: "soft not-drawn" }, "Not drawn: the question above has an error."));
    else fill(place, heading, fault(err, () => drawGraph(place, asked, signal)));
  }
}

function legend() {
  const sample = (kind) => s("svg", { width: 34, height: 10, "aria-hidden": "true" }, s("line", { class: `edge ${kind}`, x1: 1, y1: 5, x2: 33, y2: 5 }));
  return h("p", { class: "legend soft" }, h("span", {}, sample("known"), " known link"), h("span", {}, sample("predicted"), " predicted"));
}

// layOut places the nodes of each side on an arc, a line of text apart. Where it is narrow there is
// one column, so that labels have room. It returns the height, and the room for a label.
function layOut(nodes, width) {
  const left = nodes.filter((n) => n.kind === "known");
  const right = nodes.filter((n) => n.kind === "predicted");
  const narrow = width < 560;
  const columns = narrow ? [[[...left, ...right], 1]] : [[left, -1], [right, 1]];
  const most = Math.max(...columns.map(([list]) => list.length));
  const height = Math.max(150, lineHeight * most + 2.5 * lineHeight);
  const reach = narrow ? 74 : Math.min(width * 0.2, 170);
  const x = narrow ? 16 : width * (left.length === 0 ? 0.25 : right.length === 0 ? 0.75 : 0.5);
  for (const [list, sign] of columns) list.forEach((n, i) => {
    const off = i - (list.length - 1) / 2;
    const bend = Math.sqrt(Math.max(0, 1 - Math.pow(off / (list.length / 2 + 0.5), 2)));
    n.x = x + sign * reach * (0.55 + 0.45 * bend);
    n.y = height / 2 + off * lineHeight + (narrow ? lineHeight / 2 : 0);
    n.sign = sign;
  });
  nodes[0].x = x;
  nodes[0].y = height / 2;
  const room = left.length === 0 || narrow ? width - x : right.length === 0 ? x : width / 2;
  return { height, room: room - reach - 14, narrow };
}

function picture(d, asked, width) {
  const { height, room, narrow } = layOut(d.nodes, width);
  const svg = s("svg", { class: "graph", width, height, role: "group", "aria-label": "The node, its known links and its predictions" });
  let box = { x: 0, y: 0, w: width, h: height };
  const look = () => svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.w} ${box.h}`);
  const zoom = (by, cx = box.x + box.w / 2, cy = box.y + box.h / 2) => {
    if (box.w * by < width / 12 || box.w * by > width * 4) return;
    box = { x: cx - (cx - box.x) * by, y: cy - (cy - box.y) * by, w: box.w * by, h: box.h * by };
    look();
  };
  const reset = () => { box = { x: 0, y: 0, w: width, h: height }; look(); };
  look();

  const edges = d.edges.map((e) => ({ ...e, path: s("path", { class: `edge ${e.known ? "known" : "predicted"}${e.from === 0 ? "" : " among"}` }) }));
  const layer = s("g", {}, edges.map((e) => e.path));
  const draw = () => edges.forEach((e) => e.path.setAttribute("d", curve(d.nodes[e.from], d.nodes[e.to], e.from === 0)));
  const groups = d.nodes.map((n, i) => nodeOf(n, i, asked, i > 0 ? room : narrow ? 0 : width * 0.4));
  const put = (i) => groups[i].setAttribute("transform", `translate(${d.nodes[i].x} ${d.nodes[i].y})`);
  d.nodes.forEach((_, i) => put(i));
  draw();
  svg.append(layer, ...groups.slice(1), groups[0]);
  const point = (e) => { const r = svg.getBoundingClientRect(); return { x: box.x + (e.clientX - r.left) / r.width * box.w, y: box.y + (e.clientY - r.top) / r.height * box.h }; };
  let held = null;
  svg.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    const at = groups.findIndex((g) => g.contains(e.target));
    held = { at, start: point(e), px: e.clientX, py: e.clientY, moved: false };
  });
  svg.addEventListener("pointermove", (e) => {
    if (!held) return;
    if (!held.moved && Math.hypot(e.clientX - held.px, e.clientY - held.py) < 4) return;
    if (!held.moved) { held.moved = true; svg.setPointerCapture(e.pointerId); svg.classList.add("held"); }
    const now = point(e);
    if (held.at >= 0) {
      const n = d.nodes[held.at];
      n.x += now.x - held.start.x; n.y += now.y - held.start.y;
      held.start = now;
      put(held.at); draw();
    } else { box.x -= now.x - held.start.x; box.y -= now.y - held.start.y; look(); }
  });
  const release = (e) => {
    if (!held) return;
    const was = held;
    held = null;
    svg.classList.remove("held");
    if (e.type === "pointerup" && !was.moved && was.at > 0) open(d.nodes[was.at], asked);
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  // The wheel alone scrolls the page, as elsewhere; with Ctrl, or a pinch, it zooms.
  svg.addEventListener("wheel", (e) => { if (!e.ctrlKey) return; e.preventDefault(); const p = point(e); zoom(e.deltaY > 0 ? 1.12 : 0.89, p.x, p.y); }, { passive: false });
  return { svg, zoom, reset };
}

function open(n, asked) { go(hrefOfNode(n, asked.to)); window.scrollTo(0, 0); }

function nodeOf(n, i, asked, room) {
  const source = n.kind === "source";
  const label = labelOf(n);
  const p = n.probability === undefined ? "" : `, predicted with ${percent(n.probability)}`;
  const text = s("text", source ? { class: "label", y: -14, "text-anchor": "middle" } : { class: "label", x: n.sign * 10, y: 4, "text-anchor": n.sign < 0 ? "end" : "start" }, room ? short(label, Math.max(8, Math.floor(room / 6.6))) : "");
  return s("g", {
    class: `dot ${n.kind}`, tabindex: i === 0 ? null : "0", role: i === 0 ? null : "link", "aria-label": `${label}, ${n.kind === "known" ? "known link" : n.kind}${p}`,
    onkeydown: (e) => { if (i > 0 && e.key === "Enter") open(n, asked); },
  }, s("title", {}, label + p), s("circle", { r: source ? 9 : 5.5 }), text);
}

function curve(a, b, straight) {
  if (straight) return `M${a.x} ${a.y} L${b.x} ${b.y}`;
  if (a.sign === b.sign) { // on one side: a bow towards the middle, so that it is not under the labels
    const deep = Math.min(60, 12 + Math.abs(a.y - b.y) * 0.3) * -a.sign;
    return `M${a.x} ${a.y} Q${(a.x + b.x) / 2 + deep} ${(a.y + b.y) / 2} ${b.x} ${b.y}`;
  }
  return `M${a.x} ${a.y} Q${(a.x + b.x) / 2} ${(a.y + b.y) / 2 + 24} ${b.x} ${b.y}`;
}
