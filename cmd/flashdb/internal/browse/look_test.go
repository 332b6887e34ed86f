package browse

import (
	"context"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// namesAlone is a database that knows the names of its collections and fails a test that asks for
// more.
type namesAlone struct{ Database }

func (namesAlone) Collections(context.Context) ([]string, error) {
	return []string{"some", "other"}, nil
}

// TestPageAsksForNamesAlone: what the browser needs for its first paint costs the same at any size
// of the database.
func TestPageAsksForNamesAlone(t *testing.T) {
	c := client{t, New(namesAlone{}, Options{Title: "t"})}
	w := c.do("GET", c.s.Path(), nil)
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Contains(t, w.Body.String(), "<option>some</option><option>other</option>")
	entries, err := files.ReadDir("page")
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != "page.html" && e.Name() != "style.css" {
			assert.Equal(t, http.StatusOK, c.do("GET", c.s.Path()+e.Name(), nil).Code, e.Name())
		}
	}
}

// TestContrast holds each colour of text to 4.5 on what it stands on, as WCAG 2 asks (AA), by the
// variables of both themes. Marks that are no text need 3.
func TestContrast(t *testing.T) {
	b, err := files.ReadFile("page/style.css")
	require.NoError(t, err)
	themes := regexp.MustCompile(`\{ color-scheme: (light dark|dark); (--ink[^}]*)\}`).FindAllStringSubmatch(string(b), -1)
	require.Len(t, themes, 2, "light, and dark as it is chosen")
	system := regexp.MustCompile(`:not\(\[data-theme=light\]\) \{ (--ink[^}]*)\}`).FindStringSubmatch(string(b))
	require.NotNil(t, system)
	assert.Equal(t, strings.TrimSpace(themes[1][2]), strings.TrimSpace(system[1]), "dark is one, chosen or of the system")
	for _, theme := range themes {
		colours := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(theme[2], -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		for _, pair := range []string{
			"ink paper", "ink card", "soft paper", "soft card", "main paper", "main card", "main tint", "good good-tint", "good card",
			"bad bad-tint", "warn warn-tint", "card ink",
		} {
			contrast(t, colours, theme[1], pair, 4.5)
		}
		contrast(t, colours, theme[1], "predicted card", 3)
		contrast(t, colours, theme[1], "dim card", 3)
	}
}

func contrast(t *testing.T, colours map[string]float64, theme, pair string, least float64) {
	t.Helper()
	text, ground, _ := strings.Cut(pair, " ")
	require.Contains(t, colours, text)
	require.Contains(t, colours, ground)
	light, dark := max(colours[text], colours[ground]), min(colours[text], colours[ground])
	assert.GreaterOrEqual(t, (light+0.05)/(dark+0.05), least, "%s in %s", pair, theme)
}

// luminance is that of WCAG 2.
func luminance(t *testing.T, hex string) (sum float64) {
	t.Helper()
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		require.NoError(t, err)
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
