package browsertest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slash presses the key that leads to the search. KeyEvent would also type it there, as no person
// could.
var slash = input.DispatchKeyEvent(input.KeyRawDown).WithKey("/").WithCode("Slash")

// of is the address of a node.
func of(key string, more ...string) string {
	q := url.Values{"c": {"items"}, "key": {key}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "?" + q.Encode()
}

// labels are the keys that an answer shows.
func (b *tab) labels(answer string) []string {
	b.t.Helper()
	return js[[]string](b, fmt.Sprintf(`[...document.querySelectorAll(".%s .hits .key")].map((a) => a.textContent)`, answer))
}

// choose takes an option of a list, as a person does.
func (b *tab) choose(id, option string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`(() => { const s = document.getElementById(%q); s.value = %q; s.dispatchEvent(new Event("change")); })()`, id, option), nil))
}

// TestSearchAndClick goes from a text to a node and on, with the keyboard, and back.
func TestSearchAndClick(t *testing.T) {
	b := open(t)
	b.visit("")
	b.until(`document.querySelectorAll(".start a").length === 12`)
	b.do(slash)
	b.until(`document.activeElement.id === "search"`)
	b.do(chromedp.KeyEvent("EM 07"))
	b.until(`document.querySelectorAll("#found li").length === 1`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.shows(item(7))
	assert.Contains(t, js[string](b, "location.search"), "key=item+07")
	assert.Equal(t, []string{item(14)}, b.labels("known"))
	assert.Contains(t, js[string](b, `document.querySelector(".payload pre").textContent`), "{\n  \"n\": 7,\n  \"list\": [\n    1,\n    2\n  ]\n}")

	first := b.labels("first")
	require.Len(t, first, 20)
	b.do(chromedp.Click(".first .hits li:nth-child(3) .key", chromedp.ByQuery))
	b.shows(first[2])
	b.do(chromedp.NavigateBack())
	b.shows(item(7))
	assert.Equal(t, first, b.labels("first"), "the address holds the state")

	b.do(chromedp.Focus(".first .hits li:nth-child(1) .key", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowUp))
	assert.Equal(t, first[1], js[string](b, "document.activeElement.textContent"))
	assert.Equal(t, "solid", js[string](b, "getComputedStyle(document.activeElement).outlineStyle"), "the focus is seen")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.shows(first[1])

	b.do(slash, chromedp.KeyEvent("no such key"))
	b.until(`document.getElementById("found-note").textContent.startsWith("No key begins")`)
	js[any](b, `document.activeElement.select()`)
	b.do(chromedp.KeyEvent("item"))
	b.until(`document.querySelectorAll("#found li").length === 20 && document.getElementById("found-note").textContent.startsWith("There may be more")`)
	b.sound()
}

// TestAttributesAndReasons shows attributes, filters by them, and opens the reasons of a hit.
func TestAttributesAndReasons(t *testing.T) {
	b := open(t)
	b.visit(of(item(7), "k", "5", "filter", "price <= 10 and released >= 2025-01-03"))
	b.shows(item(7))
	assert.Equal(t, "price3.5released2025-01-08", js[string](b, `document.querySelector(".head .attributes").textContent`))
	assert.Len(t, b.labels("first"), 5)
	for _, tags := range js[[]string](b, `[...document.querySelectorAll(".first .hits .tags")].map((e) => e.textContent)`) {
		assert.Contains(t, tags, "price ")
	}
	b.do(chromedp.Click(".first .hits li:nth-child(2) .why summary", chromedp.ByQuery))
	b.until(`document.querySelector(".first .hits li:nth-child(2) .why dl")`)
	why := js[string](b, `document.querySelector(".first .hits li:nth-child(2) .why").innerText`)
	assert.Contains(t, why, "By dimensions")
	assert.Contains(t, why, "Known, by cosine")
	assert.Contains(t, why, item(14), "its only known link")
	b.do(chromedp.Click(".first .hits li:nth-child(2) .why dl a", chromedp.ByQuery))
	b.shows(item(14))

	b.visit(of(item(7), "k", "5"))
	b.shows(item(7))
	plain := b.labels("first")
	b.choose("control-diversity", "0.8")
	b.until(`location.search.includes("diversity=0.8") && document.querySelectorAll(".first .hits li").length === 5 && !document.querySelector(".first button.verify")`)
	assert.NotEqual(t, plain, b.labels("first"), "other hits, which differ more")

	b.visit(of(scriptKey))
	b.until(`document.querySelector(".head .attributes")`)
	assert.Contains(t, js[string](b, `document.querySelector(".head .attributes").textContent`), "window.hacked=5")
	assert.True(t, js[bool](b, "window.hacked === undefined"))
	b.sound()
}

// TestControls filters, verifies, compares, and makes mistakes.
func TestControls(t *testing.T) {
	b := open(t)
	b.visit(of(item(60)))
	b.shows(item(60))
	b.do(chromedp.SendKeys("#control-filter", "mod1 and not missing"+kb.Enter, chromedp.ByQuery))
	b.until(`location.search.includes("filter=") && document.querySelector(".first .note")`)
	assert.Equal(t, "no node has the tag missing", js[string](b, `document.querySelector(".first .note").textContent`))
	for _, label := range b.labels("first") {
		var n int
		_, err := fmt.Sscanf(label, "item %d", &n)
		require.NoError(t, err)
		assert.Equal(t, 1, n%3, label)
	}
	b.do(chromedp.Click(".first button.verify", chromedp.ByQuery))
	b.until(`document.querySelector(".first .good")?.textContent.startsWith("✓ The exact scan agrees on all 20.")`)

	b.visit(of(item(60), "filter", "mod1 and"))
	b.until(`document.querySelector(".first .fault")?.textContent.includes("filter")`)
	assert.Equal(t, 1, js[int](b, `document.querySelectorAll("#control-filter").length`), "it can be mended")

	b.visit(of(item(60), "k", "5"))
	b.shows(item(60))
	assert.Len(t, b.labels("first"), 5)
	b.choose("control-vs", "decoder:weighted")
	b.until(`document.querySelectorAll(".second .hits li").length === 5`)
	one, two := b.labels("first"), b.labels("second")
	require.NotEqual(t, one, two)
	marks := js[[]string](b, `[...document.querySelectorAll(".second .change")].map((e) => e.textContent)`)
	for i, label := range two {
		want := "only here"
		for j, other := range one {
			switch {
			case other == label && i == j:
				want = "="
			case other == label && j > i:
				want = fmt.Sprintf("▲ %d", j-i)
			case other == label:
				want = fmt.Sprintf("▼ %d", i-j)
			}
		}
		assert.Equal(t, want, marks[i], label)
	}
	b.visit(of("nobody"))
	b.until(`document.querySelector("main .fault")?.textContent.includes("nobody")`)
	b.sound()
}

// TestReleasesAndCaps puts a staged release beside the live one, and bounds hits by their tags.
func TestReleasesAndCaps(t *testing.T) {
	b := open(t)
	b.visit(of(item(60), "k", "5", "decoder", "dot"))
	b.shows(item(60))
	live := b.labels("first")
	b.choose("control-vs", "release:night")
	b.until(`document.querySelectorAll(".second .hits li").length === 5`)
	assert.Contains(t, js[string](b, `document.querySelector(".second h2").textContent`), "Release night")
	assert.Equal(t, live, b.labels("first"))
	assert.Contains(t, b.labels("second"), item(6), "which is far off in the live one")
	assert.Equal(t, "only here", js[string](b, `document.querySelector(".second .change").textContent`))
	b.visit(of(item(75), "k", "5", "decoder", "dot", "vs", "release:night"))
	b.until(`document.querySelectorAll(".first .hits li").length === 5 && document.querySelector(".second .fault")`)

	b.visit(of(item(60), "k", "5", "decoder", "dot", "filter", "all"))
	b.shows(item(60))
	b.do(chromedp.SendKeys("#control-per", "tag=3"+kb.Enter, chromedp.ByQuery))
	b.until(`location.search.includes("per=tag") && document.querySelectorAll(".first .hits li").length === 3`)
	assert.Contains(t, js[string](b, `document.querySelector(".first .note").textContent`), "Fewer than asked for: with at most 3 of one tag")
	assert.Zero(t, js[int](b, `document.querySelectorAll(".verify").length`), "the exact scan finds the best, and these are chosen")
	b.until(`document.querySelectorAll("#caps option").length > 1`)
	assert.Contains(t, js[[]string](b, `[...document.querySelectorAll("#caps option")].map((o) => o.value)`), "price=2")
	assert.Contains(t, js[[]string](b, `[...document.querySelectorAll("#filters option")].map((o) => o.value)`), "price >= 0")
	b.visit(of(item(60), "per", "tag"))
	b.until(`document.querySelector(".first .fault")?.textContent.includes("want a name and how many hits")`)

	b.visit("?c=items&view=health")
	b.until(`document.querySelector(".queries")`)
	text := js[string](b, "document.body.innerText")
	for _, want := range []string{"Growth since the index was built", "82 in the index", "2 newer", "2 dead", "night", "staged", "(14 nodes without)"} {
		assert.Contains(t, text, want)
	}
	b.sound()
}

// TestRelations asks a decoder that has relations, in both directions, and compares it.
func TestRelations(t *testing.T) {
	b := open(t)
	b.visit(of(item(10), "decoder", "graph"))
	b.shows(item(10))
	assert.Equal(t, []string{item(79)}, b.labels("known"), "of the first relation")
	b.choose("control-relation", "hates")
	b.until(`location.search.includes("relation=hates") && document.querySelector(".known .soft + .soft, .known p.soft")`)
	b.shows(item(10))
	assert.Empty(t, b.labels("known"))
	b.visit(of(item(79), "decoder", "graph", "relation", "likes", "reverse", "1", "vs", "decoder:dot"))
	b.shows(item(79))
	assert.Equal(t, []string{item(10)}, b.labels("known"))
	b.until(`document.querySelectorAll(".second .hits li").length === 20`)
	b.visit(of(item(79), "decoder", "dot", "vs", "decoder:graph"))
	b.until(`document.querySelectorAll(".second .hits li").length === 20`)
	assert.Contains(t, js[string](b, `document.querySelector(".second h2").textContent`), "graph, likes")
	b.sound()
}

func TestWrongToken(t *testing.T) {
	b := open(t)
	origin := b.address[:strings.LastIndex(b.address[:len(b.address)-1], "/")+1]
	for _, address := range []string{origin, origin + "AAAAAAAAAAAAAAAAAAAAAAAAAA/", origin + "api/keys?c=items"} {
		b.do(chromedp.Navigate(address))
		assert.Contains(t, js[string](b, "document.body.textContent"), "the token in the address is missing or of another run")
		assert.Zero(t, js[int](b, `document.querySelectorAll("header, script").length`))
		resp, err := http.Get(address)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusForbidden, resp.StatusCode)
	}
}

// TestHostileText looks at nodes whose keys, tags and payloads try to become part of the page.
func TestHostileText(t *testing.T) {
	b := open(t)
	for _, width := range []int64{400, 1600} {
		b.do(chromedp.EmulateViewport(width, 900))
		for key, label := range map[string]string{scriptKey: scriptKey, turnedKey: `"\u202egnp.eman\nline two"`, longKey: longKey, "base64://4=": `"\xff\xfe"`} {
			b.visit(of(key))
			b.shows(label)
			assert.Contains(t, js[string](b, `document.querySelector(".payload pre").textContent`), `"a": "</pre><script>window.hacked=3</script><img src=x onerror=window.hacked=4>"`)
			assert.Contains(t, js[string](b, `document.querySelector(".chips").textContent`), "<b>bold</b>")
			b.intact(width)
			b.visit(of(key, "view", "map"))
			b.until(`document.querySelector("canvas.map")`)
			b.intact(width)
		}
		b.visit("?c=items&view=health")
		b.until(`document.querySelector(".queries")`)
		b.intact(width)
	}
	b.visit(of(item(1)))
	b.shows(item(1))
	assert.Contains(t, b.labels("known"), scriptKey)
	b.do(slash, chromedp.KeyEvent("<script"))
	b.until(`document.querySelectorAll("#found li").length === 1`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.shows(scriptKey)
	assert.False(t, js[bool](b, `(() => { try { document.body.innerHTML = "<b>x</b>"; return true } catch { return false } })()`), "the browser refuses to make HTML of text")
}

// intact demands that nothing of the database became part of the page, and that it fits its width.
func (b *tab) intact(width int64) {
	b.t.Helper()
	assert.Equal(b.t, "undefined", js[string](b, "typeof window.hacked"))
	assert.Zero(b.t, js[int](b, `document.querySelectorAll("main script, main img, main b b, body > script").length`))
	assert.LessOrEqual(b.t, js[int64](b, "document.documentElement.scrollWidth"), width, "the page is not wider than the window")
	assert.NotContains(b.t, js[string](b, "document.body.innerText"), "\u202e")
	b.sound()
}

// TestDrawing draws as many nodes as there may be: no label hides another one or is cut off.
func TestDrawing(t *testing.T) {
	b := open(t)
	for _, width := range []int64{400, 900, 1600} {
		b.do(chromedp.EmulateViewport(width, 900))
		b.visit(of(item(0), "k", "40"))
		b.shows(item(0))
		b.choose("drawn", "60")
		b.until(`document.querySelectorAll(".graph .dot").length === 60`)
		hidden := js[[]string](b, `(() => {
			const all = [...document.querySelectorAll(".graph .dot .label")].map((e) => ({ text: e.textContent, box: e.getBoundingClientRect() }));
			const frame = document.querySelector(".graph").getBoundingClientRect(), bad = [];
			all.forEach((a, i) => {
				if (a.text && (a.box.left < frame.left - 1 || a.box.right > frame.right + 1)) bad.push(a.text + " leaves the drawing");
				all.slice(i + 1).forEach((b) => { if (a.text && b.text && a.box.left < b.box.right && b.box.left < a.box.right && a.box.top + 2 < b.box.bottom - 2 && b.box.top + 2 < a.box.bottom - 2) bad.push(a.text + " and " + b.text); });
			});
			return bad;
		})()`)
		assert.Empty(t, hidden, "width %d", width)
		assert.Equal(t, "none", js[string](b, `getComputedStyle(document.querySelector(".graph .edge.known")).strokeDasharray`))
		assert.NotEqual(t, "none", js[string](b, `getComputedStyle(document.querySelector(".graph .edge.predicted")).strokeDasharray`))
		b.sound()
	}
	box := js[string](b, `document.querySelector(".graph").getAttribute("viewBox")`)
	b.do(chromedp.Click(`.drawing button[aria-label="Zoom in"]`, chromedp.ByQuery))
	assert.NotEqual(t, box, js[string](b, `document.querySelector(".graph").getAttribute("viewBox")`))
	label := js[string](b, `document.querySelector(".graph .dot.known title").textContent`)
	b.do(chromedp.Focus(".graph .dot.known", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	b.shows(label)
	b.sound()
}

func TestMapAndHealth(t *testing.T) {
	b := open(t)
	b.visit(of(item(3), "view", "map"))
	b.until(`document.querySelectorAll(".map-layout .hits .key").length === 20`)
	assert.Equal(t, "all", js[string](b, `document.querySelector(".legend li").textContent`))
	b.choose("coloured", "mod1")
	b.until(`location.search.includes("tag=mod1") && document.querySelector(".legend li").textContent === "mod1"`)
	colour := js[string](b, `document.querySelector(".legend .swatch").style.background`)
	b.do(chromedp.Click("#theme", chromedp.ByQuery))
	assert.NotEqual(t, colour, js[string](b, `document.querySelector(".legend .swatch").style.background`), "as the dots of this theme")
	b.do(chromedp.Click(".map-layout .hits .key", chromedp.ByQuery))
	b.until(heading + ` !== "" && !location.search.includes("view=map")`)
	b.do(chromedp.Click("nav a[data-view=health]", chromedp.ByQuery))
	b.until(`document.querySelector(".queries")`)
	assert.Equal(t, "84", js[string](b, `document.querySelector(".facts b").textContent`), "nodes")
	b.do(chromedp.NavigateBack())
	b.until(heading + ` !== ""`)
	b.sound()
}

// TestWrite links and unlinks a shown pair; without --write there is nothing to do so with.
func TestWrite(t *testing.T) {
	b := open(t, "--write")
	b.visit(of(item(70)))
	b.shows(item(70))
	hit := b.labels("first")[0]
	b.do(chromedp.Click(".first .hits button", chromedp.ByQuery))
	b.until(fmt.Sprintf(`document.querySelector(".known .hits .key")?.textContent === %q`, hit))
	b.until(fmt.Sprintf(`document.querySelector(".first .hits .key") && ![...document.querySelectorAll(".first .key")].some((a) => a.textContent === %q)`, hit))
	b.do(chromedp.Click(".known .hits button", chromedp.ByQuery))
	b.until(`document.querySelector(".known") && !document.querySelector(".known .hits") && document.querySelector(".known h2 .soft")?.textContent === "0"`)
	b.sound()
	look := open(t)
	look.visit(of(item(70)))
	look.shows(item(70))
	assert.Zero(t, js[int](look, `document.querySelectorAll(".hits button").length`))
}

// TestEmpty looks at a collection without nodes.
func TestEmpty(t *testing.T) {
	b := open(t)
	for query, text := range map[string]string{
		"?c=void": "void holds no node.", "?c=void&view=map": "void holds no node.", "?c=void&view=health": "None yet.",
		"?c=none": "There is no collection none", "?c=void&key=x": `node "x" not found`,
	} {
		b.visit(query)
		b.until(fmt.Sprintf("document.querySelector(\"main\").textContent.includes(%q)", text))
	}
	b.sound()
}

// TestNames demands a name of everything that can be used, for those who hear the page.
func TestNames(t *testing.T) {
	b := open(t, "--write")
	for _, query := range []string{"?c=items", of(item(0), "vs", "search:ip"), of(item(0), "view", "map"), "?c=items&view=health"} {
		b.visit(query)
		b.until(`document.querySelector("main h1")`)
		if strings.Contains(query, "vs") {
			b.shows(item(0))
		}
		assert.Empty(t, js[[]string](b, `[...document.querySelectorAll("button, a, input, select, [tabindex='0']")].filter((e) => {
			const label = e.id && document.querySelector("label[for='" + e.id + "']");
			return !(e.getAttribute("aria-label") || e.textContent.trim() || (label && label.textContent.trim()));
		}).map((e) => e.outerHTML)`), query)
		ids := js[[]string](b, `[...document.querySelectorAll("[id]")].map((e) => e.id)`)
		seen := map[string]bool{}
		for _, id := range ids {
			assert.False(t, seen[id], "%s is there twice", id)
			seen[id] = true
		}
	}
	b.sound()
}
