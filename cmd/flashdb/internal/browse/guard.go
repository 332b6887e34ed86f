package browse

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// policy allows what this package serves and nothing else. The one style sheet stands in the page
// and is known by its hash. Trusted types make the browser refuse to parse any text as HTML.
var policy = "default-src 'none'; script-src 'self'; style-src '" + hashOf(style) + "'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// hashOf returns the source expression that allows a style sheet in a page.
func hashOf(style template.CSS) string {
	sum := sha256.Sum256([]byte(style))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if !loopback(r.Host) {
		http.Error(w, "this page is for this machine alone: open it at 127.0.0.1 or localhost", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodGet && s.redeem(r.URL.Path) {
		http.Redirect(w, r, s.Path(), http.StatusSeeOther)
		return
	}
	token, rest, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 || !found {
		http.Error(w, "the token in the address is missing or of another run: open the address that flashdb browse printed", http.StatusForbidden)
		return
	}
	if !sameSite(r) {
		http.Error(w, "another site asked for this", http.StatusForbidden)
		return
	}
	if name, ok := strings.CutPrefix(rest, "api/"); ok {
		s.serveCall(w, r, name)
		return
	}
	s.serveFile(w, r, rest)
}

// loopback tells whether a Host header names this machine. Any port will do, as one may be
// forwarded.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// sameSite tells whether a request is from the page itself, or from a person who opens it. Browsers
// say where a request comes from in Sec-Fetch-Site; those that do not still send the Origin of a
// POST.
func sameSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default: // a link that was followed is fine, for its address holds the token
		if r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return false
		}
	}
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host
}

// serveCall answers a call of the page's scripts. What is no call is an error in JSON too.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, name string) {
	c, ok := s.calls[name]
	if !ok {
		reply(w, http.StatusNotFound, failure{"there is no such call"})
		return
	}
	if r.Method != c.method {
		w.Header().Set("Allow", c.method)
		reply(w, http.StatusMethodNotAllowed, failure{"this call is a " + c.method})
		return
	}
	answer, err := c.answer(r)
	if err != nil {
		reply(w, statusOf(err), failure{s.opts.ErrorText(err)})
		return
	}
	reply(w, http.StatusOK, answer)
}
