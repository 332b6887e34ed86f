package flashdb

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/flashdb/flashdb/internal/control"
)

// sentinels are the errors that keep their identity over the control socket.
var sentinels = []error{
	ErrNotFound, ErrExists, ErrClosed, ErrDim, ErrInvalid, ErrReadOnly, ErrCorrupt, ErrVersion, ErrLocked, ErrQuality,
	context.Canceled, context.DeadlineExceeded,
}

// startControl serves the control socket: the calls of other processes, the
// flashdb command's among them, while this one has the directory open. Each
// call is answered by public methods, or what stands behind them.
func (db *DB) startControl() (err error) {
	db.control, err = control.Serve(db.closing, db.home.Handle(), db.controlCalls(), func(err error) (string, int) {
		return errorCode(db.endedByClose(err))
	})
	if err != nil {
		return fmt.Errorf("serve the control socket: %w", err)
	}
	return nil
}

// stopControl ends the calls under way and removes the socket, if the directory
// is still ours.
func (db *DB) stopControl() (err error) {
	db.controlStop.Do(func() {
		if db.control != nil {
			err = db.control.Close(db.store.Held() == nil)
		}
	})
	return err
}

// endedByClose returns ErrClosed for a call that ended because the database is
// being closed.
func (db *DB) endedByClose(err error) error {
	if db.closing.Err() != nil && errors.Is(err, context.Canceled) {
		return ErrClosed
	}
	return err
}

// errorCode returns the code of err, which is the text of its sentinel, and the
// HTTP status it has.
func errorCode(err error) (code string, status int) {
	status = http.StatusInternalServerError
	for _, s := range sentinels {
		if errors.Is(err, s) {
			code = s.Error()
			break
		}
	}
	switch code {
	case ErrNotFound.Error():
		status = http.StatusNotFound
	case ErrExists.Error():
		status = http.StatusConflict
	case ErrDim.Error(), ErrInvalid.Error():
		status = http.StatusBadRequest
	case ErrClosed.Error(), ErrReadOnly.Error():
		status = http.StatusServiceUnavailable
	}
	return code, control.StatusOf(err, status)
}
