// The controls of a question: what is predicted, with which decoder, and how.
import { h, ask, counted } from "./dom.js";
import { go, hrefOf } from "./app.js";

// settle fills in what the address leaves open: the collection that suits best, its first decoder.
export function settle(now, offer) {
  const target = offer.targets.find((t) => t.collection === now.to) || (now.to ? undefined : offer.targets[0]);
  if (!target) return { ...now, to: now.to || now.c, decoders: [], releases: [], k: now.k || "20" };
  const decoder = target.decoders.find((d) => d.name === now.decoder) || (now.decoder ? { name: now.decoder } : target.decoders[0]);
  const relations = (decoder && decoder.relations) || [];
  return {
    ...now, to: target.collection, decoders: target.decoders, releases: target.releases, decoder: decoder ? decoder.name : "", k: now.k || "20",
    relation: now.relation || relations[0] || "", reverse: relations.length ? now.reverse : "",
  };
}

function choice(name, label, options, value, note) {
  const id = `control-${name}`;
  return h("div", { class: "control" }, h("label", { for: id }, label),
    h("select", { id, title: note, onchange: (e) => change({ [name]: e.target.value }) },
      options.map(([v, text]) => h("option", { value: v, selected: v === value }, text))));
}

// change asks anew. Another target or decoder has other relations.
function change(changes) {
  if ("to" in changes) changes = { decoder: "", relation: "", reverse: "", vs: "", ...changes };
  if ("decoder" in changes) changes = { relation: "", reverse: "", ...changes };
  const focused = document.activeElement && document.activeElement.id;
  go(hrefOf({ verify: "", ...changes }));
  requestAnimationFrame(() => refocus(focused, 20));
}

// refocus returns the focus to a control once the page has it again.
function refocus(id, tries) {
  if (!id || tries === 0) return;
  const control = document.getElementById(id);
  if (control && control === document.activeElement && tries < 12) return;
  if (control) control.focus({ preventScroll: true });
  setTimeout(() => refocus(id, tries - 1), 25);
}

function text(name, label, value, attributes) {
  const id = `control-${name}`;
  return h("div", { class: `control ${name}` }, h("label", { for: id }, label),
    h("input", { id, value, autocomplete: "off", spellcheck: "false", ...attributes, onchange: (e) => change({ [name]: e.target.value.trim() }) }));
}

function check(name, label, value) {
  const id = `control-${name}`;
  return h("div", { class: "control check" }, h("input", { id, type: "checkbox", checked: value === "1", onchange: (e) => change({ [name]: e.target.checked ? "1" : "" }) }), h("label", { for: id }, label));
}

// controlsFor returns the controls as a form.
export function controlsFor(now, asked, offer, node) {
  const target = offer.targets.find((t) => t.collection === asked.to) || { decoders: [], sources: [], releases: [] };
  const decoder = target.decoders.find((d) => d.name === asked.decoder);
  const relations = (decoder && decoder.relations) || [];
  const compare = [["", "nothing"], ...target.decoders.filter((d) => d.name !== asked.decoder).map((d) => ["decoder:" + d.name, "decoder " + d.name]),
    ...(asked.decoder ? target.releases.map((r) => ["release:" + r.name, `release ${r.name} (${r.state})`]) : []), ...(asked.decoder ? [["exact:", "the exact scan"], ["search:ip", "inner product"]] : []), ["search:cosine", "cosine"], ["search:l2", "distance"]];
  const recalls = [["", "as usual (0.98)"], ["0.8", "0.8"], ["0.9", "0.9"], ["0.95", "0.95"], ["0.99", "0.99"], ["0.999", "0.999"]];
  if (now.recall && !recalls.some(([v]) => v === now.recall)) recalls.push([now.recall, now.recall]);
  const diversities = [["", "none"], ["0.1", "a little (0.1)"], ["0.3", "some (0.3)"], ["0.5", "much (0.5)"], ["0.8", "most (0.8)"]];
  if (now.diversity && !diversities.some(([v]) => v === now.diversity)) diversities.push([now.diversity, now.diversity]);
  const filters = h("datalist", { id: "filters" }), caps = h("datalist", { id: "caps" });
  const form = h("form", { class: "card controls", "aria-label": "Question", onsubmit: (e) => e.preventDefault() },
    offer.targets.length > 1 && choice("to", "Find nodes of", offer.targets.map((t) => [t.collection, t.collection]), asked.to, "the collection whose nodes are predicted for this source"),
    target.decoders.length > 0 && choice("decoder", "Decoder", target.decoders.map((d) => [d.name, d.name]), asked.decoder, decoder && decoder.kind),
    relations.length > 0 && choice("relation", "Relation", relations.map((r) => [r, r]), asked.relation),
    relations.length > 0 && choice("reverse", "Direction", [["", "from this node"], ["1", "to this node"]], asked.reverse),
    text("k", "Hits", asked.k, { type: "number", min: "1", max: "200", inputmode: "numeric" }),
    asked.decoder && !now.exact && choice("recall", "Recall", recalls, now.recall),
    asked.decoder && choice("diversity", "Diversity", diversities, now.diversity, "how much score to trade for hits whose embeddings differ"),
    asked.decoder && text("per", "Cap", now.per, { placeholder: "such as tag=2", list: "caps", type: "search", title: "at most so many hits of one value of an attribute, such as brand=2; tag=2: of one tag" }),
    choice("vs", "Compare with", compare, now.vs),
    text("filter", "Filter", now.filter, { placeholder: exampleFilter(node), list: "filters", type: "search" }),
    filters, caps,
    h("div", { class: "checks" }, check("linked", "known links too", now.linked), asked.decoder && check("exact", "scan every node", now.exact)),
    asked.decoder && target.sources.length > 0 && !target.sources.includes(now.c) && h("p", { class: "note" }, `The decoders of ${asked.to} were calibrated with nodes of ${target.sources.join(" and ")}. They may not fit nodes of ${now.c}.`));
  const complete = () => { complete.done ||= fillWords(filters, caps, asked.to); };
  for (const input of form.querySelectorAll("#control-filter, #control-per")) input.addEventListener("focus", complete);
  return form;
}

// exampleFilter is a filter that this node would match.
function exampleFilter(node) {
  const number = node.attributes.find((a) => /^-?\d+(\.\d+)?$/.test(a.value));
  if (number) return `such as ${number.name} <= ${number.value}`;
  return node.tags.length ? `such as ${node.tags[0]} and not other` : "tag and not other";
}

// word is a tag or a name as filters have it: in quotes where it is no bare word.
const word = (text) => (/^[\w.:/-]+$/.test(text) && !/^(and|or|not|in|has)$/i.test(text) ? text : JSON.stringify(text));

// beginning is a filter by an attribute, to go on from.
const beginning = (a) => ({ bool: word(a.name), string: `${word(a.name)} = ${JSON.stringify(a.lowest)}` })[a.type] || `${word(a.name)} >= ${a.lowest}`;

async function fillWords(filters, caps, c) {
  try {
    const { tags, attributes } = await ask("words", { c });
    filters.replaceChildren(...attributes.map((a) => h("option", { value: beginning(a) }, `${a.type}, ${a.lowest} to ${a.highest}`)),
      ...tags.map((t) => h("option", { value: word(t.tag) }, counted(t.nodes, "node"))));
    caps.replaceChildren(...attributes.map((a) => h("option", { value: `${a.name}=2` }, counted(a.distinct, "value"))), tags.length > 0 ? h("option", { value: "tag=2" }, counted(tags.length, "tag")) : "");
  } catch { /* both can be typed without */ }
}
