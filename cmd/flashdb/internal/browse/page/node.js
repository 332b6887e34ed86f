// A node: what is stored of it, its known links, predictions, and another answer beside them.
import { h, fill, ask, tell, fault, waiting, say, labelOf, breakable, count, counted, millis, percent, scoreText, scoreColumn } from "./dom.js";
import { go, hrefOf, keyLink, mayWrite } from "./app.js";
import { drawGraph } from "./graph.js";
import { controlsFor, settle } from "./controls.js";

// about keeps what the controls offer for each collection.
const about = new Map();
export async function aboutCollection(c, signal) {
  if (!about.has(c)) about.set(c, await ask("collection", { c }, signal));
  return about.get(c);
}

export async function nodeView(main, now, signal) {
  if (!now.key) return startView(main, now, signal);
  if (main.dataset.shown !== now.c + "\n" + now.key) fill(main, waiting("Reading the node…"));
  try {
    const [offer, node] = await Promise.all([aboutCollection(now.c, signal), ask("node", { c: now.c, key: now.key }, signal)]);
    if (signal.aborted) return;
    const asked = settle(now, offer);
    const answers = h("div", { class: "answers" });
    const drawing = h("section", { class: "card drawing", "aria-label": "Neighbourhood" });
    fill(main, h("div", { class: "layout" },
      h("div", { class: "side" }, headOf(node, now), payloadOf(node.payload)),
      h("div", { class: "body" }, controlsFor(now, asked, offer, node), answers, drawing)));
    main.dataset.shown = now.c + "\n" + now.key;
    showAnswers(answers, asked, signal);
    drawGraph(drawing, asked, signal);
  } catch (err) {
    if (err.name === "AbortError") return;
    main.dataset.shown = "";
    fill(main, fault(err, () => nodeView(main, now, signal)), startHint());
  }
}

function startHint() { return h("p", { class: "soft" }, "Press ", h("kbd", {}, "/"), " to search for a key."); }

// startView is shown before a node is chosen.
async function startView(main, now, signal) {
  main.dataset.shown = "";
  const list = h("ul", { class: "start", "data-list": true });
  const place = h("section", { class: "empty" },
    h("h1", {}, "Look at a node"),
    h("p", {}, "Press ", h("kbd", {}, "/"), " and type a part of its key. Or begin with one of these:"), list);
  fill(main, place);
  try {
    const offer = await aboutCollection(now.c, signal);
    if (signal.aborted) return;
    fill(list, ...offer.first.map((ref) => h("li", {}, keyLink(ref))));
    if (!offer.first.length) fill(place, noNode(now.c));
  } catch (err) {
    if (err.name !== "AbortError") list.replaceWith(fault(err, () => startView(main, now, signal)));
  }
}

export function noNode(c) { return [h("h1", {}, "No node yet"), h("p", {}, h("bdi", {}, c), " holds no node. ", h("code", {}, "flashdb import"), " brings some in.")]; }

// headOf shows a node.
function headOf(node, now) {
  return h("section", { class: "card head" },
    h("p", { class: "over" }, "node of ", h("bdi", {}, now.c)),
    h("h1", { title: labelOf(node) }, h("bdi", {}, breakable(labelOf(node)))),
    node.tags.length > 0 && h("ul", { class: "chips", "aria-label": "Tags" }, node.tags.map((tag) => h("li", {}, h("bdi", {}, tag)))),
    node.attributes.length > 0 && h("dl", { class: "attributes", "aria-label": "Attributes" }, node.attributes.map((a) => [h("dt", {}, h("bdi", {}, a.name)), h("dd", {}, h("bdi", {}, a.value))])),
    h("p", { class: "soft" }, `embedding of ${counted(node.dim, "value")}, length ${scoreText(node.norm)}`),
    h("p", {}, h("a", { href: hrefOf({ view: "map" }) }, "Show it on the map")));
}

function payloadOf(p) {
  const what = { none: "no payload", json: "JSON", text: "text", binary: "bytes that are no text" }[p.kind];
  return h("section", { class: "card payload" },
    h("h2", {}, "Payload"),
    p.kind === "none" ? h("p", { class: "soft" }, "This node has none.") :
      [h("p", { class: "soft" }, `${what}, ${counted(p.bytes, "byte")}${p.cut ? "; its beginning" : ""}`), h("pre", { tabindex: "0", "aria-label": "Payload" }, p.text)]);
}

// question is what every call about this node says.
function question(asked) {
  return { c: asked.c, key: asked.key, to: asked.to, decoder: asked.decoder, relation: asked.relation, reverse: asked.reverse };
}
export function queryOf(asked) {
  return { ...question(asked), k: asked.k, filter: asked.filter, linked: asked.linked, recall: asked.recall, exact: asked.exact, diversity: asked.diversity, per: asked.per };
}

// chosen says that the hits are not simply the best ones, so that the exact scan cannot verify them.
const chosen = (asked) => Boolean(asked.diversity || asked.per);

// secondOf asks for the answer that is compared with the predictions.
function secondOf(asked, signal) {
  const [kind, ...rest] = asked.vs.split(":");
  const name = rest.join(":");
  const query = queryOf(asked);
  if (kind === "search") return { title: { ip: "Inner product", cosine: "Cosine", l2: "Distance" }[name] || name, answer: ask("nearest", { ...query, by: name }, signal) };
  if (kind === "exact") return { title: "Exact scan", answer: ask("predict", { ...query, exact: "1" }, signal) };
  if (kind === "release") {
    const release = asked.releases.find((r) => r.name === name);
    const decoder = !release || release.decoders.includes(asked.decoder) ? asked.decoder : release.decoders[0];
    return { title: `Release ${name}${decoder === asked.decoder ? "" : `, ${decoder}`}`, answer: ask("predict", { ...query, decoder, release: name }, signal) };
  }
  const relations = (asked.decoders.find((d) => d.name === name) || {}).relations || [];
  const relation = relations.includes(asked.relation) ? asked.relation : relations[0];
  return { title: relation ? `${name}, ${relation}` : name, answer: ask("predict", { ...query, decoder: name, relation, reverse: relation && asked.reverse }, signal) };
}

async function showAnswers(place, asked, signal) {
  const known = h("section", { class: "card known" }, h("h2", {}, "Known links"), waiting("Reading…"));
  const first = h("section", { class: "card first" }, h("h2", {}, asked.decoder ? "Predictions" : "Nearest nodes"), waiting("Asking…"));
  const second = asked.vs ? h("section", { class: "card second" }, h("h2", {}, "Compared with"), waiting("Asking…")) : null;
  fill(place, known, first, second);
  place.classList.toggle("three", Boolean(second));
  place.parentElement.classList.toggle("beside", !second);
  showKnown(known, asked, signal);
  const fallback = !asked.decoder;
  const a = fallback ? ask("nearest", { ...queryOf(asked), by: "ip" }, signal) : ask("predict", { ...queryOf(asked), verify: chosen(asked) ? "" : asked.verify }, signal);
  const b = asked.vs ? secondOf(asked, signal) : null;
  const [one, two] = await Promise.allSettled([a, b && b.answer]);
  if (signal.aborted) return;
  const ranks = (outcome) => outcome.status === "fulfilled" && outcome.value ? new Map(outcome.value.hits.map((hit, i) => [hit.key, i])) : null;
  const name = fallback ? "Inner product" : asked.decoder;
  showAnswer(first, fallback ? "Nearest nodes" : "Predictions", name, one, ranks(two), asked, fallback ? "nearest" : "first");
  if (second) showAnswer(second, b.title, "compared with " + name, two, ranks(one), asked, "second");
  if (one.status === "fulfilled") say(`${one.value.hits.length} nodes found in ${millis(one.value.ms)}`);
}

async function showKnown(place, asked, signal) {
  try {
    const known = await ask("links", question(asked), signal);
    if (signal.aborted) return;
    const list = known.links.map((n) => h("li", {}, keyLink(n, asked.to), probability(n), writeButton(asked, n, "unlink")));
    fill(place, h("h2", {}, "Known links ", h("span", { class: "soft" }, count(known.count))),
      known.count === 0 ? h("p", { class: "soft" }, `None from this node to ${asked.to}.`) : h("ul", { class: "hits", "data-list": true }, list),
      known.count > known.links.length && h("p", { class: "soft" }, `The first ${known.links.length} of ${count(known.count)}.`));
  } catch (err) {
    if (err.name !== "AbortError") fill(place, h("h2", {}, "Known links"), fault(err));
  }
}

function probability(n) {
  if (n.probability === undefined) return n.score === undefined ? null : h("span", { class: "p" }, h("b", {}, scoreColumn(n.score)));
  return h("span", { class: "p", title: `score ${scoreText(n.score)}` },
    h("meter", { min: "0", max: "1", value: typeof n.probability === "number" ? n.probability : 0, "aria-hidden": "true" }),
    h("b", {}, percent(n.probability)), h("span", { class: "score" }, scoreColumn(n.score)));
}

// showAnswer shows an answer; others are the ranks in the answer beside it.
function showAnswer(place, title, name, outcome, others, asked, role) {
  const heading = h("h2", {}, title, " ", h("span", { class: "soft" }, h("bdi", {}, name)));
  if (outcome.status === "rejected") {
    if (outcome.reason.name !== "AbortError") fill(place, heading, fault(outcome.reason));
    return;
  }
  const a = outcome.value;
  const missed = new Map((a.exact ? a.exact.missed : []).map((m) => [m.key, m]));
  fill(place, heading,
    h("p", { class: "soft" }, `${millis(a.ms)}, ${counted(a.scored, "row")} scored`, a.newer > 0 && `, ${count(a.newer)} newer than the index`),
    a.notes.map((note) => h("p", { class: "note" }, note)),
    a.hits.length > 0 ? h("ol", { class: "hits ranked", "data-list": true }, a.hits.map((hit, i) => hitRow(hit, i, others, asked, role))) : h("p", { class: "soft" }, "No node was found."),
    a.short && h("p", { class: "note" }, `Fewer than asked for: ${a.short}.`),
    missed.size > 0 && h("div", {}, h("h3", {}, "Only the exact scan found"), h("ul", { class: "hits", "data-list": true }, a.exact.missed.map((m) => h("li", {}, h("span", { class: "rank" }, m.rank), keyLink(m, asked.to), h("span", { class: "p" }, h("b", {}, scoreText(m.score))))))),
    role === "first" && !chosen(asked) && (a.hits.length > 0 || missed.size > 0) && verdict(a),
    a.plan && h("details", {}, h("summary", {}, "How it was found"), h("p", {}, a.plan), h("p", { class: "soft" }, `${counted(a.rounds, "round")}, ${counted(a.lists, "list")}`)));
}

function hitRow(hit, i, others, asked, role) {
  const mark = change(hit, i, others);
  return h("li", {}, h("span", { class: "rank" }, i + 1), keyLink(hit, asked.to), probability(hit),
    role !== "nearest" && writeButton(asked, hit, "link"),
    (mark || hit.tags.length + hit.attributes.length > 0) && h("span", { class: "tags" }, mark, hit.tags.slice(0, 4).map((tag) => h("bdi", {}, tag)),
      hit.attributes.slice(0, 4).map((a) => h("bdi", {}, `${a.name} ${a.value}`))),
    role === "first" && whyOf(hit, asked));
}

// whyOf opens the reasons of a hit, which are asked for when they are opened.
function whyOf(hit, asked) {
  const place = h("div");
  const open = async (e) => {
    if (!e.target.open || place.firstChild) return;
    fill(place, waiting("Asking…"));
    try {
      fill(place, reasonsOf(await ask("why", { ...question(asked), hit: hit.key }), asked));
    } catch (err) {
      fill(place, fault(err));
    }
  };
  return h("details", { class: "why", ontoggle: open }, h("summary", { "aria-label": `Why ${labelOf(hit)}` }, "Why"), place);
}

function reasonsOf(r, asked) {
  const nodes = (list, to, value) => list.map((n, i) => [i > 0 && ", ", keyLink(n, n.collection || to), value && ` ${value(n.value)}`]);
  const signed = (x) => (typeof x === "number" && x >= 0 ? "+" : "") + scoreText(x);
  const row = (label, ...content) => h("div", {}, h("dt", {}, label), h("dd", {}, content));
  const largest = r.parts.slice().sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, 3).filter((p, i) => i === 0 || Math.abs(p.value) >= 0.005);
  const shared = r.ways.filter((w) => w.shared), others = r.ways.filter((w) => !w.shared);
  return [h("dl", {},
    r.known === 0 && row("Known links", "None from this node: only the decoder speaks for it."),
    r.by_score.length > 0 && row("Known, by the decoder", nodes(r.by_score, asked.to, scoreText)),
    r.by_cosine.length > 0 && row("Known, by cosine", nodes(r.by_cosine, asked.to, scoreText)),
    shared.length > 0 && row("Shared neighbours", nodes(shared, asked.to)),
    others.length > 0 && row("Linked through", nodes(others, asked.to)),
    row("By dimensions", largest.map((p) => `${p.from === p.to ? p.from : `${p.from}–${p.to}`} ${signed(p.value)}`).join(", "), Math.abs(r.rest) >= 0.005 && `, biases and the like ${signed(r.rest)}`),
    r.for.length > 0 && row("Known, along its slope", nodes(r.for, asked.to, signed)),
    r.against.length > 0 && row("Against", nodes(r.against, asked.to, signed))),
  h("p", { class: "soft" }, "An indication, from stored links and from the slope of the decoder at this node.")];
}

// change marks a rank that differs from that in the answer beside this one.
function change(hit, i, others) {
  if (!others) return null;
  const there = others.get(hit.key);
  if (there === undefined) return h("span", { class: "change only", title: "not in the other answer" }, "only here");
  if (there === i) return h("span", { class: "change same", title: "same rank" }, "=");
  const up = there > i;
  return h("span", { class: up ? "change up" : "change down", title: `rank ${there + 1} in the other answer`, "aria-label": `rank ${there + 1} in the other answer` }, `${up ? "▲" : "▼"} ${Math.abs(there - i)}`);
}

// verdict says whether exact agrees, or offers to find out.
function verdict(a) {
  if (!a.exact) return h("p", {}, h("button", { type: "button", class: "verify", onclick: () => go(hrefOf({ verify: "1" }), true) }, "Check with the exact scan"));
  const found = a.hits.length - a.exact.missed.length;
  if (a.exact.missed.length === 0) return h("p", { class: "good", role: "status" }, `✓ The exact scan agrees on all ${a.hits.length}. It took ${millis(a.exact.ms)}.`);
  return h("p", { class: "note", role: "status" }, `The exact scan agrees on ${found} of ${a.hits.length}. It took ${millis(a.exact.ms)}.`);
}

// writeButton links or unlinks a shown pair.
function writeButton(asked, n, call) {
  if (!mayWrite || (asked.reverse && asked.relation)) return null;
  const label = call === "link" ? "Link" : "Unlink";
  return h("button", {
    type: "button", class: "small", "aria-label": `${label} ${labelOf(n)}`,
    onclick: async (e) => {
      e.target.disabled = true;
      try {
        await tell(call, { c: asked.c, key: asked.key, to: asked.to, target: n.key, relation: asked.relation });
        say(call === "link" ? "linked" : "unlinked");
        go(location.search, true);
      } catch (err) {
        e.target.closest("section").prepend(fault(err));
      }
    },
  }, label);
}
