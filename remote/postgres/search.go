package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/flashdb/flashdb/remote"
)

const (
	// maxEf is the most that hnsw.ef_search may be.
	maxEf = 1000
	// perRow is how many rows the index may compare for each row that is wanted or excluded before
	// it gives up, and minCompared how many at least.
	perRow      = 50
	minCompared = 40_000
)

// Search implements remote.Engine.
func (e *Engine) Search(ctx context.Context, in remote.Name, q *remote.Query) (a remote.Answer, err error) {
	if err := check(in); err != nil {
		return a, err
	}
	a.Rows = make([][]remote.Row, len(q.Vectors))
	all := make([]int, len(q.Vectors))
	for i := range all {
		all[i] = i
	}
	err = e.with(ctx, func(conn *pgx.Conn) error {
		if !q.Exact {
			if err := e.search(ctx, conn, in, q, all, false, a.Rows); err != nil {
				return err
			}
			all = all[:0]
			for i, found := range a.Rows {
				if len(found) < q.N { // the index gave up, or there are no more
					all = append(all, i)
				}
			}
		}
		if len(all) == 0 {
			return nil
		}
		return e.search(ctx, conn, in, q, all, true, a.Rows)
	})
	if err != nil {
		return remote.Answer{}, explain(ctx, err, "search collection %q", in.Collection)
	}
	return a, nil
}

// search sets found at the places of some vectors, in one round trip.
func (e *Engine) search(ctx context.Context, conn *pgx.Conn, in remote.Name, q *remote.Query, some []int, exact bool, found [][]remote.Row) error {
	var batch pgx.Batch
	batch.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	batch.Queue(settings, e.settings(q, exact)...)
	for _, i := range some {
		text, args, err := e.nearest(in, q, q.Vectors[i], exact)
		if err != nil {
			return err
		}
		batch.Queue(text, args...)
	}
	batch.Queue("COMMIT")
	results := conn.SendBatch(ctx, &batch)
	defer results.Close()
	for range 2 {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	for _, i := range some {
		rows, err := results.Query()
		if err != nil {
			return err
		}
		found[i], err = pgx.CollectRows(rows, func(from pgx.CollectableRow) (r remote.Row, err error) {
			err = read(from, &r)
			return r, err
		})
		if err != nil {
			return err
		}
	}
	if _, err := results.Exec(); err != nil {
		return err
	}
	return results.Close()
}

// settings of the transaction of a search. Plans are made anew each time, because the keys to leave
// out must be known to be looked up by a hash.
const settings = `SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true),
	set_config('enable_indexscan', $1, true), set_config('enable_seqscan', coalesce($4, current_setting('enable_seqscan')), true), set_config('hnsw.ef_search', $2, true), set_config('hnsw.max_scan_tuples', $3, true),
	set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.scan_mem_multiplier', '8', true)`

// settings returns the arguments of settings.
func (e *Engine) settings(q *remote.Query, exact bool) []any {
	indexes, rows := "on", (*string)(nil)
	if exact { // also where the server or the role is configured to avoid it
		off, on := "off", "on"
		indexes, rows = off, &on
	}
	compared := max(e.minCompared, perRow*(max(q.N, q.Effort)+len(q.Exclude)))
	return []any{indexes, strconv.Itoa(ef(q)), strconv.Itoa(min(compared, 1<<31-1)), rows}
}

// ef returns hnsw.ef_search.
func ef(q *remote.Query) int { return min(max(q.Effort, q.N, 1), maxEf) }

// nearest returns the statement that finds the nearest rows to a vector. The inner statement takes
// rows from the index, about in order. It takes more than are wanted where the index has a lower
// limit than the effort. The outer one puts them in order.
func (e *Engine) nearest(in remote.Name, q *remote.Query, vector []float32, exact bool) (string, []any, error) {
	var of query
	where, err := of.where(q.Filter)
	if err != nil {
		return "", nil, err
	}
	if exclude := storables(q.Exclude); len(exclude) > 0 {
		where += " AND key <> ALL(" + of.arg(exclude) + "::text[])"
	}
	to := of.arg(vector)
	taken := q.N
	if !exact && q.Effort > maxEf {
		taken = max(q.N, q.Effort)
	}
	return "WITH near AS MATERIALIZED (SELECT key, vector, tags, sum, vector " + e.distance() + " " + to + "::" + e.ext("vector") + " AS distance FROM " +
		e.table(in) + " WHERE " + where + " ORDER BY distance LIMIT " + of.arg(int64(taken)) +
		") SELECT key, vector, tags, sum FROM near ORDER BY distance, key LIMIT " + of.arg(int64(q.N)), of.args, nil
}
