// Package browse serves a page for looking at a database: its nodes, their known links beside
// predictions, a drawing of the neighbourhood, a map of the collection, and its health. The page is
// HTML, CSS and JavaScript of this package alone, and asks no other host for anything.
//
// # Safety
//
// The page is for one person at this machine. Every address begins with a random token; without it
// each path answers 403. A request whose Host is not this machine is refused, so that no other site
// can reach the page by a name that leads here. Nothing is written unless Options.Write is set.
// Keys, tags and payloads may be hostile: they reach the page as JSON, and only ever become text
// there. The Content-Security-Policy allows the scripts and styles of this package and no others.
//
// # Endpoints
//
// Under /TOKEN/api/ each GET answers one JSON object, or {"error": "..."} with a status of 400 or
// above. They belong to the page and may change with it.
//
// A Server is safe for concurrent use.
package browse

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
)

// A Database is what the page asks. It may be open in this process or in another one.
type Database interface {
	Collections(ctx context.Context) ([]string, error)
	Collection(ctx context.Context, name string) (Collection, error)
	Stats(ctx context.Context) (flashdb.Stats, error)
	Releases(ctx context.Context) ([]flashdb.ReleaseInfo, error)
	// ReleaseCollection returns a collection as a release has it.
	ReleaseCollection(ctx context.Context, release, name string) (Collection, error)
}

// A Collection is what the page asks of a collection. The methods are those of
// flashdb.Collection.
type Collection interface {
	Name() string
	Schema() flashdb.Schema
	Get(ctx context.Context, key string) (flashdb.Node, error)
	KeysWithPrefix(ctx context.Context, prefix string, limit int) ([]string, error)
	RowKeys(ctx context.Context, row uint32, n int) ([]string, error)
	Linked(ctx context.Context, of flashdb.Edge) ([]string, error)
	Predict(ctx context.Context, key string, k int, opts *flashdb.PredictOptions) (flashdb.Result, error)
	Search(ctx context.Context, vec []float32, k int, opts *flashdb.SearchOptions) (flashdb.Result, error)
	Score(ctx context.Context, source string, of []string, opts *flashdb.ScoreOptions) ([]flashdb.Hit, error)
	Why(ctx context.Context, source string, hits []string, opts *flashdb.WhyOptions) ([]flashdb.Reason, error)
	Decoders(ctx context.Context) ([]string, error)
	Decoder(ctx context.Context, name string) (decoder.Decoder, error)
	Calibrations(ctx context.Context) ([]flashdb.Calibration, error)
	Link(ctx context.Context, edges ...flashdb.Edge) error
	Unlink(ctx context.Context, edges ...flashdb.Edge) (forgotten int, err error)
}

// Options configure New.
type Options struct {
	Title   string // of the page: what the database is called
	Version string // of flashdb
	Write   bool   // the page may link and unlink
	// ErrorText says why a call failed. Default: the error's own text.
	ErrorText func(error) string
}

// A Server answers the requests of the page.
type Server struct {
	db    Database
	opts  Options
	token string

	// ticket is a word that leads to the page once: see Ticket. It is empty when it was used.
	ticketMu sync.Mutex
	ticket   string

	calls map[string]call // below api/

	queries queryLog
	sizes   sizes
	mu      sync.Mutex // of what follows
	maps    map[string]*projection
	kinds   map[string]decoderAbout // by collection and decoder
}

// A call answers one of the page's questions.
type call struct {
	method string
	answer func(*http.Request) (any, error)
}

// New returns a server with a token of its own.
func New(db Database, opts Options) *Server {
	if opts.ErrorText == nil {
		opts.ErrorText = error.Error
	}
	s := &Server{db: db, opts: opts, token: rand.Text(), maps: map[string]*projection{}, kinds: map[string]decoderAbout{}}
	s.calls = map[string]call{
		"collection": {http.MethodGet, s.collection},
		"keys":       {http.MethodGet, s.keys},
		"node":       {http.MethodGet, s.node},
		"links":      {http.MethodGet, s.links},
		"why":        {http.MethodGet, s.why},
		"predict":    {http.MethodGet, s.predict},
		"nearest":    {http.MethodGet, s.nearest},
		"graph":      {http.MethodGet, s.graph},
		"map":        {http.MethodGet, s.drawMap},
		"health":     {http.MethodGet, s.health},
		"words":      {http.MethodGet, s.words},
		"place":      {http.MethodPost, s.place}, // which reads; its keys are too long for an address
		"link":       {http.MethodPost, s.writes(s.link)},
		"unlink":     {http.MethodPost, s.writes(s.unlink)},
	}
	return s
}

// Path is where the page is, with its token: /TOKEN/.
func (s *Server) Path() string { return "/" + s.token + "/" }

// Ticket returns a path that leads to the page the first time it is asked for, and never again. It
// is for the command line of a browser, which other users of the machine may see.
func (s *Server) Ticket() string {
	s.ticketMu.Lock()
	defer s.ticketMu.Unlock()
	s.ticket = rand.Text()
	return "/" + s.ticket
}

// redeem tells whether a path is the ticket, and uses it up.
func (s *Server) redeem(path string) bool {
	s.ticketMu.Lock()
	defer s.ticketMu.Unlock()
	if s.ticket == "" || subtle.ConstantTimeCompare([]byte(path), []byte("/"+s.ticket)) != 1 {
		return false
	}
	s.ticket = ""
	return true
}
