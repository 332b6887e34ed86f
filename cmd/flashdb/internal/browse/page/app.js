// The page as a whole: its state is its address, so that back, reload and bookmarks work.
import { h, fill, addressOf, labelOf, breakable, fault } from "./dom.js";
import { startSearch } from "./search.js";
import { nodeView } from "./node.js";
import { mapView } from "./map.js";
import { healthView } from "./health.js";

const names = ["c", "view", "key", "to", "decoder", "relation", "reverse", "k", "recall", "diversity", "per", "exact", "filter", "linked", "verify", "vs", "draw", "tag"];
const collections = document.getElementById("collection");
const main = document.getElementById("main");
const title = document.body.dataset.title;
export const mayWrite = document.body.dataset.write === "1";

// state reads the address.
export function state() {
  const q = new URLSearchParams(location.search);
  const values = Object.fromEntries(names.map((name) => [name, q.get(name) || ""]));
  values.c = values.c || collections.value;
  return values;
}

// hrefOf is the address of another state: this one with changes. Another node keeps the questions
// asked of it, but for a check of one answer.
export function hrefOf(changes) { return addressOf({ ...state(), ...changes }); }
export function hrefOfNode(ref, collection) {
  const now = state();
  const kept = collection && collection !== now.c ? { k: now.k, recall: now.recall, draw: now.draw } : now;
  return addressOf({ ...kept, c: collection || now.c, key: ref.key, view: "", verify: "", tag: "" });
}

export function go(address, replace) {
  if (address === location.search && !replace) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  render();
}

// keyLink is a link to a node.
export function keyLink(ref, collection) {
  const label = labelOf(ref);
  return h("a", { class: "key", href: hrefOfNode(ref, collection), title: label }, h("bdi", {}, breakable(label)));
}

let drawing; // ends what an earlier state still asks for

function render() {
  const now = state();
  if (drawing) drawing.abort();
  drawing = new AbortController();
  if (now.c && ![...collections.options].some((o) => o.value === now.c)) {
    fill(main, fault(`There is no collection ${now.c} in this database.`));
    return;
  }
  collections.value = now.c;
  const view = ["map", "health"].includes(now.view) ? now.view : "node";
  for (const link of document.querySelectorAll("nav a")) {
    link.href = hrefOf({ view: link.dataset.view === "node" ? "" : link.dataset.view });
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = [view === "node" ? now.key : view, now.c, title, "flashdb"].filter(Boolean).join(" · ");
  ({ node: nodeView, map: mapView, health: healthView })[view](main, now, drawing.signal);
}

// Links within the page change its state and load nothing.
document.addEventListener("click", (e) => {
  const link = e.target.closest && e.target.closest("a[href^='?']");
  if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  const elsewhere = new URLSearchParams(link.getAttribute("href")).get("key") !== state().key;
  go(link.getAttribute("href"));
  if (elsewhere) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
});

// Arrow keys move in lists.
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
    e.preventDefault();
    document.getElementById("search").focus();
    document.getElementById("search").select();
    return;
  }
  const list = e.target.closest && e.target.closest("[data-list]");
  if (!list || !["ArrowDown", "ArrowUp", "Home", "End"].includes(e.key) || e.target.tagName !== "A") return;
  const links = [...list.querySelectorAll("a.key")];
  const at = links.indexOf(e.target);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[e.key];
  if (links[to]) { e.preventDefault(); links[to].focus(); }
});

function setTheme(theme) {
  if (!theme) return;
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("flashdb-theme", theme); } catch { /* it is not kept then */ }
}
export function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
try { setTheme(localStorage.getItem("flashdb-theme")); } catch { /* as the system says */ }
document.getElementById("theme").addEventListener("click", () => {
  setTheme(isDark() ? "light" : "dark");
  document.dispatchEvent(new Event("themechange"));
});

if (collections.value) {
  collections.addEventListener("change", () => go(addressOf({ c: collections.value, view: state().view })));
  addEventListener("popstate", render);
  startSearch(document.getElementById("search"), document.getElementById("panel"), (key) => go(hrefOfNode({ key })));
  render();
}
