// The search for keys, as a combobox: the focus stays in the field, arrow keys choose.
import { h, ask, labelOf, say } from "./dom.js";
import { state } from "./app.js";

const pause = 120; // ms after the last letter
const enough = 20; // keys in the list

export function startSearch(field, panel, open) {
  const list = panel.querySelector("ul");
  const note = panel.querySelector("p");
  let timer, running, keys = [], chosen = -1;

  const show = (on) => {
    panel.hidden = !on;
    field.setAttribute("aria-expanded", String(on));
    if (!on) { chosen = -1; field.removeAttribute("aria-activedescendant"); }
  };

  function choose(at) {
    chosen = keys.length ? (at + keys.length) % keys.length : -1;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
    if (chosen < 0) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", list.children[chosen].id);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  }

  function fill() {
    list.replaceChildren(...keys.map((ref, i) => h("li", {
      id: `found-${i}`, role: "option", "aria-selected": "false", title: labelOf(ref),
      onmousedown: (e) => e.preventDefault(), onclick: () => take(i),
    }, h("bdi", {}, labelOf(ref)))));
  }

  function take(i) {
    const ref = keys[i];
    if (!ref) return;
    show(false);
    field.value = "";
    field.blur();
    open(ref.key);
    document.getElementById("main").focus({ preventScroll: true });
  }

  // look asks until there are enough keys or none is left; each call is short.
  async function look() {
    if (running) running.abort();
    const own = running = new AbortController();
    const text = field.value;
    keys = [];
    let from = 0;
    note.textContent = "Looking…";
    show(true);
    try {
      for (;;) {
        const found = await ask("keys", { c: state().c, q: text, n: enough - keys.length, from }, own.signal);
        if (own.signal.aborted) return;
        const known = new Set(keys.map((ref) => ref.key));
        keys = keys.concat(found.keys.filter((ref) => !known.has(ref.key)));
        const before = chosen;
        fill();
        choose(keys.length ? Math.max(before, 0) : -1);
        from = found.next;
        if (!from || keys.length >= enough) break;
        note.textContent = `Looking… ${from.toLocaleString("en")} keys so far`;
      }
      note.textContent = !keys.length ? `No key begins with or holds “${text}”.` : keys.length >= enough ? "There may be more: type on to narrow them down." : "";
      say(keys.length ? `${keys.length} keys found` : "No key found");
    } catch (err) {
      if (err.name !== "AbortError") note.textContent = err.message;
    }
  }

  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, pause); });
  field.addEventListener("focus", () => { clearTimeout(timer); timer = setTimeout(look, 0); });
  field.addEventListener("blur", () => { clearTimeout(timer); if (running) running.abort(); show(false); });
  field.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown") { e.preventDefault(); choose(chosen + 1); }
    else if (e.key === "ArrowUp") { e.preventDefault(); choose(chosen - 1); }
    else if (e.key === "Escape") { show(false); field.blur(); }
    else if (e.key === "Enter") {
      e.preventDefault();
      // A key that is typed in full is taken at once, whatever the list has by now.
      const same = keys.findIndex((ref) => labelOf(ref) === field.value);
      if (same >= 0 && chosen <= 0) take(same);
      else if (keys[chosen]) take(chosen);
    }
  });
}
