package store

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// group lets calls that come at the same moment share one statement and one commit.
// While a batch runs, calls queue; the next batch takes what has queued. A call that
// finds the group idle starts at once, in its caller's goroutine if that waits for it, since waking another costs more than many
// a statement; an idle group has no goroutine.
type group[Req, Res any] struct {
	// run does a batch and returns a result for each request, in their order. An
	// error means that it did nothing.
	run     func(context.Context, []Req) ([]Res, error)
	limit   int           // of a batch
	timeout time.Duration // of a batch

	mu    sync.Mutex
	queue []*groupCall[Req, Res]
	busy  bool // a goroutine serves the queue
}

type groupCall[Req, Res any] struct {
	req  Req
	done chan groupResult[Res] // buffered: a caller may have left
}

type groupResult[Res any] struct {
	res Res
	err error
}

func newGroup[Req, Res any](config Config, run func(context.Context, []Req) ([]Res, error)) *group[Req, Res] {
	return &group[Req, Res]{run: run, limit: config.MaxBatch, timeout: config.Timeout}
}

// do returns the result of one request. A caller whose context ends first does not
// learn the result: a request that was still queued is not made, one that is under way is.
func (g *group[Req, Res]) do(ctx context.Context, req Req) (Res, error) {
	if err := ctx.Err(); err != nil {
		return *new(Res), err
	}
	call, idle := g.enqueue(req)
	switch {
	case idle && g.mayLead(ctx):
		g.serveBatch(g.next())
		g.handOn()
	case idle:
		go g.serve()
	}
	return g.wait(ctx, call)
}

// begin has a request made beside what its caller does, who may wait for the result.
func (g *group[Req, Res]) begin(req Req) *groupCall[Req, Res] {
	call, idle := g.enqueue(req)
	if idle {
		go g.serve()
	}
	return call
}

// enqueue reports whether nobody serves the queue: whoever gets that answer must.
func (g *group[Req, Res]) enqueue(req Req) (call *groupCall[Req, Res], idle bool) {
	call = &groupCall[Req, Res]{req: req, done: make(chan groupResult[Res], 1)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, call)
	idle = !g.busy
	g.busy = true
	return call, idle
}

// wait returns the result of a call, once.
func (g *group[Req, Res]) wait(ctx context.Context, call *groupCall[Req, Res]) (Res, error) {
	select {
	case result := <-call.done: // even if the context has ended
		return result.res, result.err
	default:
	}
	select {
	case result := <-call.done:
		return result.res, result.err
	case <-ctx.Done():
		g.withdraw(call)
		return *new(Res), ctx.Err()
	}
}

// mayLead reports whether a caller has time for a batch, which does not end with the caller's context: it may take its
// time limit and a statement's.
func (g *group[Req, Res]) mayLead(ctx context.Context) bool {
	end, ends := ctx.Deadline()
	return !ends || time.Until(end) > g.timeout*9/10
}

// handOn leaves what has queued meanwhile to a goroutine: its leader has a result to return.
func (g *group[Req, Res]) handOn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy = len(g.queue) > 0; g.busy {
		go g.serve()
	}
}

func (g *group[Req, Res]) withdraw(call *groupCall[Req, Res]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queue, call); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
}

// serve runs batches until none is queued.
func (g *group[Req, Res]) serve() {
	for batch := g.next(); len(batch) > 0; batch = g.next() {
		g.serveBatch(batch)
	}
}

func (g *group[Req, Res]) next() []*groupCall[Req, Res] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.queue), g.limit)
	batch := slices.Clone(g.queue[:n])
	g.queue = slices.Delete(g.queue, 0, n)
	g.busy = n > 0
	return batch
}

func (g *group[Req, Res]) serveBatch(batch []*groupCall[Req, Res]) {
	reqs := make([]Req, len(batch))
	for i, call := range batch {
		reqs[i] = call.req
	}
	results, err := g.try(reqs)
	if len(batch) > 1 && splits(err) {
		for _, call := range batch {
			g.serveBatch([]*groupCall[Req, Res]{call})
		}
		return
	}
	for i, call := range batch {
		if err != nil {
			call.done <- groupResult[Res]{err: err}
			continue
		}
		call.done <- groupResult[Res]{res: results[i]}
	}
}

// try runs a batch under its own time limit: it serves many callers, so none of
// their contexts may end it.
func (g *group[Req, Res]) try(reqs []Req) (results []Res, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	results, err = g.run(ctx, reqs)
	if err == nil && len(results) != len(reqs) {
		err = fmt.Errorf("%d results for %d requests", len(results), len(reqs))
	}
	return results, err
}
