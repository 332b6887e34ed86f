package browse

import (
	"context"
	"time"

	"github.com/flashdb/flashdb"
)

// A releaseAbout is a release that is not live, as the controls offer it.
type releaseAbout struct {
	Name     string   `json:"name"`
	State    string   `json:"state"` // staged or former
	Decoders []string `json:"decoders"`
}

// addReleases adds to each target the releases that can answer for it.
func (s *Server) addReleases(ctx context.Context, targets []target) error {
	all, err := s.db.Releases(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.State == flashdb.ReleaseLive {
			continue
		}
		for _, has := range r.Collections {
			for i := range targets {
				if targets[i].Collection == has.Name && len(has.Decoders) > 0 {
					targets[i].Releases = append(targets[i].Releases, releaseAbout{r.Name, r.State, has.Decoders})
				}
			}
		}
	}
	return nil
}

// A releaseFact is what a release has of a collection.
type releaseFact struct {
	Name       string    `json:"name"`
	State      string    `json:"state"`
	Rows       uint64    `json:"rows"`
	WithoutRow uint64    `json:"without_row"`
	Decoders   []string  `json:"decoders"`
	Generation uint64    `json:"generation"`
	Created    time.Time `json:"created,omitzero"`
	Published  time.Time `json:"published,omitzero"`
}

// releasesOf returns what the releases have of a collection, or none if the first one is the only
// one there ever was.
func (s *Server) releasesOf(ctx context.Context, collection string) ([]releaseFact, error) {
	all, err := s.db.Releases(ctx)
	if err != nil {
		return nil, err
	}
	facts := []releaseFact{}
	if len(all) == 1 && all[0].Created.IsZero() {
		return facts, nil
	}
	for _, r := range all {
		for _, has := range r.Collections {
			if has.Name != collection {
				continue
			}
			facts = append(facts, releaseFact{
				Name: r.Name, State: r.State, Rows: has.Rows, WithoutRow: has.WithoutRow, Decoders: append([]string{}, has.Decoders...),
				Generation: has.Generation, Created: r.Created, Published: r.Published,
			})
		}
	}
	return facts, nil
}
