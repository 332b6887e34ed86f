// What every part of the page is made with. Text from the database only ever becomes text nodes and
// attribute values here: nothing on this page parses HTML.

const svgSpace = "http://www.w3.org/2000/svg";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

// fill puts children into a place instead of what it holds. Those that are missing are left out.
export const fill = (place, ...children) => { place.replaceChildren(); return build(place, null, children); };

export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => build(document.createElementNS(svgSpace, tag), attributes, children);

// labelOf returns what is shown of a node. No label holds a character that cannot be seen.
export const labelOf = (ref) => ref.label || ref.key;

// breakable is a label that breaks after its separators first, where it must.
export function breakable(label) {
  if (label.length > 200) return label;
  return label.split(/(?<=[/._:-])/u).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));
}

// short keeps the beginning and the end of a long text.
export function short(text, length) {
  const letters = Array.from(text);
  if (letters.length <= length) return text;
  const head = Math.ceil((length - 1) * 0.6);
  return letters.slice(0, head).join("") + "…" + letters.slice(letters.length - (length - 1 - head)).join("");
}

export function count(n) { return Number(n).toLocaleString("en"); }

export function counted(n, noun) { return `${count(n)} ${noun}${Number(n) === 1 ? "" : "s"}`; }

export function millis(ms) {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${Number(ms.toPrecision(3))} ms`;
  return `${(ms / 1000).toFixed(1)} s`;
}

export function percent(p) {
  if (typeof p !== "number") return String(p);
  if (p > 0.99995 && p < 1) return ">99.99%";
  if (p < 0.0001 && p > 0) return "<0.01%";
  return p === 0 || p === 1 ? `${100 * p}%` : `${(100 * p).toPrecision(p > 0.99 ? 4 : 3)}%`;
}

export function scoreText(x) { return typeof x === "number" ? Number(x.toPrecision(4)).toString() : String(x); }

// scoreColumn is a score among others, so that their points stand below each other.
export function scoreColumn(x) {
  if (typeof x !== "number") return String(x);
  if (x !== 0 && Math.abs(x) < 0.0005) return x.toExponential(1);
  return x.toFixed(Math.abs(x) < 1000 ? 3 : 0);
}

// addressOf writes values as the query of an address; empty ones are left out.
export function addressOf(values) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== null && value !== "" && value !== false) q.set(name, value === true ? "1" : value);
  return "?" + q.toString();
}

// ask calls the server. What fails is an Error whose text is for people.
export async function ask(call, values, signal) { return answerOf(await reach("api/" + call + addressOf(values), { signal })); }

export async function tell(call, body, signal) {
  return answerOf(await reach("api/" + call, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal }));
}

async function reach(address, options) {
  try {
    return await fetch(address, { ...options, cache: "no-store" });
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Error("flashdb browse does not answer: it was ended, or it is busy. Start it again.");
  }
}

async function answerOf(response) {
  let body;
  try { body = await response.json(); } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Error(`the answer cannot be read (status ${response.status}): was flashdb browse started anew? Open the address that it printed.`);
  }
  if (!response.ok) throw Object.assign(new Error(body.error || `status ${response.status}`), { status: response.status });
  return body;
}

// fault shows an error, with a way to try again where there is one.
export function fault(err, again) {
  return h("div", { class: "fault", role: "alert" }, h("p", {}, String(err.message || err)), again && h("button", { type: "button", onclick: again }, "Try again"));
}

export const waiting = (what) => h("p", { class: "soft waiting", role: "status" }, what);

export function say(text) { document.getElementById("status").textContent = text; }
