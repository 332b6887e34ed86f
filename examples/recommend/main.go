// Command recommend is a small service that embeds flashdb: it recommends items and friends to
// users over HTTP, takes new users, items and likes, and forgets items. It trains its model itself,
// on a sample of who likes what. Users and items are two collections with embeddings of one space;
// a decoder scores a user against an item, and the dot product a user against a user. What comes
// after training is embedded from its likes.
//
// It serves the control socket of its database, so that a job in another process can rebuild the
// index meanwhile:
//
//	go run ./examples/recommend --dir /tmp/shop.flash &
//	curl 'localhost:8080/items?user=user-7&k=3'
//	curl -X PUT localhost:8080/users/zoe -d '["item-7", "item-47"]'
//	curl 'localhost:8080/items?user=zoe&k=3'
//	flashdb rebuild /tmp/shop.flash
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
)

func main() {
	dir := flag.String("dir", "shop.flash", "database directory; made when it is not there, by training on sample data")
	addr := flag.String("addr", "localhost:8080", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "recommend:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, addr string) (err error) {
	db, err := flashdb.Open(dir, &flashdb.Options{Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := control.Serve(db, nil); err != nil { // for `flashdb rebuild` and the other commands
		return err
	}
	shop, err := openShop(ctx, db, sampleUsers, sampleItems)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, Handler: shop.handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	slog.Info("serving", "addr", addr, "dir", dir)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	wait, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return server.Shutdown(wait) // requests under way finish before the database closes
}
