package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/browse"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/control"
)

func (a *app) browseCommand() *cobra.Command {
	var addr string
	var noOpen, write bool
	cmd := &cobra.Command{
		Use:   "browse DIR [--addr HOST:PORT] [--no-open] [--write]",
		Short: "Look at a database in a browser, until interrupted",
		Long: `Browse serves a page for looking at a database, and opens it in the browser. It shows a node,
its known links beside predictions, two decoders or releases side by side, a drawing of the
neighbourhood, a map of the collection, and the health of the index. The page needs no network.

Only this machine reaches the page, and only at the address that browse prints: it holds a token,
new at every run. With --no-open that address stands alone on one line. Nothing is written,
unless --write lets the page link and unlink nodes. When another process has the database open,
the page asks that one.`,
		Example: `  flashdb browse papers.flash
  flashdb browse papers.flash --no-open --addr 127.0.0.1:8080`,
		Args: usage.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := listenHere(addr)
			if err != nil {
				return err
			}
			defer l.Close()
			return a.withBrowsed(cmd.Context(), args[0], write, func(db database) error {
				return a.browse(cmd.Context(), args[0], l, db, write, noOpen)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&addr, "addr", "127.0.0.1:0", "listen at this `host:port` of this machine; port 0: any free one")
	fs.BoolVar(&noOpen, "no-open", false, "print the address alone, and open no browser")
	fs.BoolVar(&write, "write", false, "let the page link and unlink nodes")
	return cmd
}

// withBrowsed runs fn on the database to browse. To look, it is opened read-only. To write, this
// process owns it and answers other commands meanwhile, as the shell does.
func (a *app) withBrowsed(ctx context.Context, dir string, write bool, fn func(database) error) error {
	return a.withDB(ctx, dir, flashdb.Options{ReadOnly: !write}, func(db database) error {
		if own := db.DB(); own != nil && write {
			if _, err := control.Serve(own, nil); err != nil {
				return err
			}
		}
		return fn(db)
	})
}

// listenHere listens at an address of this machine that no other one reaches.
func listenHere(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	ip, ipErr := netip.ParseAddr(host)
	if err != nil || host != "localhost" && (ipErr != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("--addr %q: want a port of this machine, such as 127.0.0.1:8080; the page is for nobody else", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--addr: %w", err)
	}
	return l, nil
}

// browsed is a database as package browse asks for it.
type browsed struct{ database }

func (b browsed) Collection(ctx context.Context, name string) (browse.Collection, error) {
	c, err := collectionOf(ctx, b.database, name)
	if err != nil {
		return nil, err // and no collection that is nil
	}
	return c, nil
}

func (b browsed) ReleaseCollection(ctx context.Context, release, name string) (browse.Collection, error) {
	c, err := b.database.ReleaseCollection(ctx, release, name)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// browseEnd is how long answers under way may take once browse was interrupted.
const browseEnd = 2 * time.Second

// browse serves the page until ctx ends.
func (a *app) browse(ctx context.Context, dir string, l net.Listener, db database, write, noOpen bool) error {
	page := browse.New(browsed{db}, browse.Options{
		Title: filepath.Base(filepath.Clean(dir)), Version: version(), Write: write,
		ErrorText: func(err error) string { return withoutKinds(err, oneLine(err)) },
	})
	server := &http.Server{
		Handler: page, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, // an end of it ends the queries
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	here := "http://" + l.Addr().String()
	if err := a.sayAddress(dir, here+page.Path(), noOpen); err != nil {
		return errors.Join(err, server.Close())
	}
	if !noOpen && openInBrowser(here+page.Ticket()) != nil {
		a.remark("no browser could be started: open the address yourself")
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), browseEnd)
	defer cancel()
	if server.Shutdown(end) != nil { // somebody does not read an answer
		return server.Close()
	}
	return nil
}

// sayAddress prints where the page is.
func (a *app) sayAddress(dir, address string, noOpen bool) error {
	switch {
	case a.json:
		return a.emit(struct {
			Address string `json:"address"`
		}{address})
	case noOpen:
		_, err := fmt.Fprintln(a.out, address)
		return err
	}
	_, err := fmt.Fprintf(a.out, "%s is at\n  %s\nuntil you press Ctrl-C.\n", show.Text(dir), address)
	return err
}

// openInBrowser asks the system to show an address. It does not wait for the browser.
func openInBrowser(address string) error {
	program, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	cmd := exec.Command(program, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // its fate is its own
	return nil
}
