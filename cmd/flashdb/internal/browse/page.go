package browse

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"path"
	"strings"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

//go:embed page
var files embed.FS

var page = template.Must(template.ParseFS(files, "page/page.html"))

// style stands in the page: to fetch it would delay the first paint of a fresh browser. Its lines
// end as the browser's parser leaves them, since the policy knows it by its hash.
var style = func() template.CSS {
	b, err := files.ReadFile("page/style.css")
	if err != nil {
		panic("browse: " + err.Error()) // it is embedded
	}
	return template.CSS(strings.ReplaceAll(string(b), "\r\n", "\n"))
}()

// kinds are the content types of the files that are served as they are, whatever this system says
// of their names. The style sheet is not among them, as the page holds it.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// serveFile answers with the page, or with a script or picture of it.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this is a page: GET it", http.StatusMethodNotAllowed)
		return
	}
	if name == "" {
		s.servePage(w, r)
		return
	}
	kind, ok := kinds[path.Ext(name)]
	b, err := files.ReadFile("page/" + name)
	if err != nil || !ok {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(b) // the page may have gone
}

// servePage answers with the page itself. It reads the names of the collections and nothing else,
// so that the page is there at once however large the database is.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	names, err := s.db.Collections(r.Context())
	data := struct {
		Title, Version string
		Write          bool
		Collections    []string
		Error          string
		Style          template.CSS
	}{Title: show.Text(s.opts.Title), Version: s.opts.Version, Write: s.opts.Write, Collections: names, Style: style}
	if err != nil {
		data.Error = s.opts.ErrorText(err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		http.Error(w, "the page cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}
