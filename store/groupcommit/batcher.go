// Package groupcommit lets calls that come at the same time share one statement and one commit.
//
//	call ──┐
//	call ──┼─► queue ──► one batch ──► each caller its own result
//	call ──┘     ▲           │
//	             └── the next batch takes what has queued
//
// Under load there is a pause before the next batch: more requests share it, which saves the
// servers more than the pause costs the callers.
//
// A batch that one of its requests has failed is run again in parts, so that the others succeed;
// a request that would wait for a lock must not make its batch wait: see [motorpool/store].
package groupcommit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"motorpool/guard"
)

// Batcher runs requests in batches. While a batch runs, requests queue; the next batch takes the
// queue. A request that finds the batcher idle starts a goroutine, which ends when the queue is
// empty. Batches run there and not in a caller's goroutine: a statement needs 16 KiB of stack,
// which each of many waiting callers would keep. It is safe for concurrent use.
type Batcher[Req, Res any] struct {
	run    func(context.Context, []Req) ([]Res, error)
	limits Limits

	mu    sync.Mutex
	queue []*Call[Req, Res]
	busy  bool // a goroutine serves the queue
}

// Call is a request whose result is awaited later.
type Call[Req, Res any] struct {
	req  Req
	done chan result[Res] // buffered: the caller may not wait any more
}

type result[Res any] struct {
	res Res
	err error
}

const (
	// Requests in a batch from which on there is a pause; a choice. 3: with four commands in
	// flight a command takes 0.4 ms more. 8: with 20,000 waiting, batches have 3 to 5, and none
	// pauses.
	pauseFrom = 4
	// Pause for each request of such a batch, so that few commands do not wait for many. Half:
	// with 16 in flight, Postgres takes a tenth more for a command. Double: a fifth fewer commands.
	pauseEach = 200 * time.Microsecond
	// Longest pause. 2 ms: with 256 in flight 1.04 of the throughput without a pause, not 1.07.
	maxPause = 3 * time.Millisecond
)

// Limits bound the batches.
type Limits struct {
	MaxBatch int           // requests in a batch
	Timeout  time.Duration // of a batch, and of all attempts after it was split
	// Splits reports whether the error of a batch may be the fault of one request: then its
	// halves run separately, and so on. Defaults to never.
	Splits func(error) bool
	// Guard recovers the panic of a batch, which is the error of its requests. Nil: it is only
	// logged.
	Guard *guard.Guard
}

// New returns a batcher. run executes a batch and returns a result for each request, in their
// order; its error means that nothing was done.
func New[Req, Res any](limits Limits, run func(context.Context, []Req) ([]Res, error)) *Batcher[Req, Res] {
	return &Batcher[Req, Res]{run: run, limits: limits}
}

// Do runs one request, and blocks until it has the result or the context ends. In the latter case a
// request that is still queued is withdrawn, and one that is running goes on. It fails with the
// error of run, or of the context.
func (b *Batcher[Req, Res]) Do(ctx context.Context, req Req) (Res, error) {
	if err := ctx.Err(); err != nil {
		return *new(Res), err
	}
	return b.Wait(ctx, b.Begin(req))
}

// Begin queues a request and does not block. The caller may pass the call to Wait.
func (b *Batcher[Req, Res]) Begin(req Req) *Call[Req, Res] {
	call, idle := b.enqueue(req)
	if idle {
		go b.keepServing()
	}
	return call
}

// enqueue adds a request. Where it reports idle, no goroutine serves the queue, and the caller
// must start one.
func (b *Batcher[Req, Res]) enqueue(req Req) (call *Call[Req, Res], idle bool) {
	call = &Call[Req, Res]{req: req, done: make(chan result[Res], 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, call)
	idle = !b.busy
	b.busy = true
	return call, idle
}

// Wait blocks until the call has a result or the context ends, as Do does. Call it once for each
// call. It fails as Do does.
func (b *Batcher[Req, Res]) Wait(ctx context.Context, call *Call[Req, Res]) (Res, error) {
	select {
	case result := <-call.done: // even if the context has ended
		return result.res, result.err
	default:
	}
	select {
	case result := <-call.done:
		return result.res, result.err
	case <-ctx.Done():
		b.withdraw(call)
		return *new(Res), ctx.Err()
	}
}

func (b *Batcher[Req, Res]) withdraw(call *Call[Req, Res]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, call); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
}

func (b *Batcher[Req, Res]) keepServing() {
	_ = b.limits.Guard.Keep(context.Background(), "serve batches", b.serve)
}

// serve runs batches until none is queued.
func (b *Batcher[Req, Res]) serve(context.Context) error {
	for batch := b.next(); len(batch) > 0; batch = b.next() {
		b.serveBatch(batch)
		if len(batch) >= pauseFrom {
			time.Sleep(min(time.Duration(len(batch))*pauseEach, maxPause))
		}
	}
	return nil
}

func (b *Batcher[Req, Res]) next() []*Call[Req, Res] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), b.limits.MaxBatch)
	batch := slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n)
	b.busy = n > 0
	return batch
}

func (b *Batcher[Req, Res]) serveBatch(batch []*Call[Req, Res]) {
	InParts(batch, b.limits, func(part []*Call[Req, Res]) error {
		results, err := b.try(part)
		if err != nil {
			return err
		}
		for i, call := range part {
			call.done <- result[Res]{res: results[i]}
		}
		return nil
	}, func(part []*Call[Req, Res], err error) {
		for _, call := range part {
			call.done <- result[Res]{err: err}
		}
	})
}

// InParts runs a batch. Where a single item may have failed it, it runs the halves, then the
// halves of those that fail, and so on: one bad item of 256 costs 16 further statements. It calls
// failed with what is not done: an item that fails alone, a part whose error is no item's fault,
// and what is left when the limit of a batch has passed since the first failure. The error of the
// last is not that of an item: it only says that they were not tried.
func InParts[T any](batch []T, limits Limits, run func([]T) error, failed func([]T, error)) {
	var cause error
	var until time.Time // once one has failed
	for parts := [][]T{batch}; len(parts) > 0; parts = parts[1:] {
		part := parts[0]
		if cause != nil && time.Now().After(until) {
			failed(part, notTriedError{cause})
			continue
		}
		err := run(part)
		switch {
		case err == nil:
			continue
		case len(part) == 1 || limits.Splits == nil || !limits.Splits(err):
			failed(part, err)
			continue
		case cause == nil:
			until = time.Now().Add(limits.Timeout)
		}
		cause = err
		parts = slices.AppendSeq(parts, slices.Chunk(part, (len(part)+1)/2))
	}
}

// notTriedError is the error of requests that were not tried apart from one that has failed their
// batch. It does not wrap the failure, which may be the fault of others.
type notTriedError struct{ failure error }

func (e notTriedError) Error() string {
	return "not tried in time, after a batch had failed: " + e.failure.Error()
}

// Unavailable reports that a later call may succeed.
func (e notTriedError) Unavailable() bool { return true }

// try runs a batch with a separate timeout: it serves many callers, so none of their contexts may
// end it. A panic is returned as an error.
func (b *Batcher[Req, Res]) try(batch []*Call[Req, Res]) (results []Res, err error) {
	reqs := make([]Req, len(batch))
	for i, call := range batch {
		reqs[i] = call.req
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.limits.Timeout)
	defer cancel()
	err = b.limits.Guard.Try("run a batch", func() (err error) {
		results, err = b.run(ctx, reqs)
		return err
	})
	if err == nil && len(results) != len(reqs) {
		err = fmt.Errorf("%d results for %d requests", len(results), len(reqs))
	}
	return results, err
}
