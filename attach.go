package flashdb

import (
	"errors"
	"os"
	"sync"
)

// A closingList holds what Close calls before anything else.
type closingList struct {
	mu     sync.Mutex // guards what follows, and is not held while a function runs
	over   bool
	before map[*func() error]struct{}

	once sync.Once // a Close waits for the functions that another one calls
	err  error     // of the functions
}

// run calls the functions, once, and returns what they returned.
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

// BeforeClose has Close call fn before it lets go of the directory, and wait for it: for a server
// that answers from this database, say. Calls of the database are answered meanwhile. Close calls
// fn once, however often it is called itself, and returns its error with its own. fn must not call
// Close.
//
// forget takes fn back; it does not wait for an fn under way. BeforeClose returns ErrClosed once a
// Close has begun.
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

// OpenRoot opens the directory of the database once more. It is the caller's to close, and leads to
// that directory whatever becomes of its path.
//
// It returns ErrReadOnly for a database that was opened read-only, and once the path of the
// directory leads elsewhere: a program that shares the directory by its path would not find this
// one.
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
