package storage

// A View is a snapshot of everything published. It belongs to one goroutine, and to the function it
// was handed to: beyond that it must not be kept. What its methods return may be kept; bitmaps are
// shared and must not be changed.
//
// Where the file turns out to be damaged, methods answer as if nothing were there, and Store.View
// returns the damage.
type View struct {
	reader
}

// View calls fn with a snapshot of everything published. It returns the error of fn, or an error
// that matches format.ErrCorrupt if fn came upon damage.
//
// The snapshot keeps bbolt from reusing pages and, now and then, from growing the file: fn should
// be short, and must not call Flush, PublishGeneration or Close.
func (s *Store) View(fn func(*View) error) error { return s.ViewOf("", fn) }

// ViewOf is View with the rows, decoders, plans, encoder and generation of a release that is not
// the live one. In collections that the release does not name it sees what is live. "" is the live
// release.
func (s *Store) ViewOf(name string, fn func(*View) error) error {
	st, r, err := s.snapshot()
	if err != nil {
		return err
	}
	v := &View{reader{file: s.path, layout: s.layout, catalog: st.catalog, layers: st.layers, reading: r}}
	defer v.end()
	if name != "" {
		if v.as, err = st.catalog.other(name); err != nil {
			return err
		}
	}
	err = v.guarded(fn)
	if v.err != nil {
		return v.err
	}
	return err
}

// guarded calls fn and notes a fault in bbolt's mapping as damage: fn looks at values beyond the
// calls that guard themselves. Every other panic is fn's own and passes.
func (v *View) guarded(fn func(*View) error) error {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if v.db.fault(p) == nil {
			panic(p)
		}
		v.fail(v.db.recovered(p))
	}()
	defer faults(faults(true))
	return fn(v)
}

// LSN returns that of the last change to a collection that the snapshot shows, of those published
// since Open: 0 if there is none.
func (v *View) LSN(uid uint32) uint64 {
	if col := v.catalog.byUID[uid]; col != nil {
		return col.lsn
	}
	return 0
}

func (v *View) end() {
	v.rollback()
	v.ended = true
}
