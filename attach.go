package flashdb

import (
	"errors"
	"os"
	"sync"
)

// A closingList holds the functions that Close calls first.
type closingList struct {
	mu     sync.Mutex // guards over and before; not held while a function runs
	over   bool
	before map[*func() error]struct{}

	once sync.Once // a second Close waits until the first has called the functions
	err  error     // what the functions returned
}

// run calls the functions once, and returns what they returned.
func (l *closingList) run() error {
	l.once.Do(func() {
		l.mu.Lock()
		l.over = true
		before := l.before
		l.before = nil
		l.mu.Unlock()
		for fn := range before {
			l.err = errors.Join(l.err, (*fn)())
		}
	})
	return l.err
}

// BeforeClose makes Close call fn before it releases the directory, and wait for fn. A server that
// answers from this database can stop that way. Calls of the database still succeed while fn runs.
// Close calls fn once, even if Close is called again, and its error includes that of fn. fn must
// not call Close.
//
// forget unregisters fn. It does not wait for an fn that is running. BeforeClose returns ErrClosed
// once a Close has begun.
func (db *DB) BeforeClose(fn func() error) (forget func(), err error) {
	l := &db.leaving
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, ErrClosed
	}
	if l.before == nil {
		l.before = map[*func() error]struct{}{}
	}
	l.before[&fn] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.before, &fn)
	}, nil
}

// OpenRoot opens the directory of the database once more. The caller must close it. It stays the
// same directory even if that is moved.
//
// It returns ErrReadOnly for a database that was opened read-only. It also does once the path leads
// to another directory, because programs that use the path would not find this one.
func (db *DB) OpenRoot() (*os.Root, error) {
	leave, err := db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := db.owned(); err != nil {
		return nil, err
	}
	return db.home.Handle().OpenRoot(".")
}
