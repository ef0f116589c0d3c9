package waitingroom

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// room serves calls, and has those of a crowd wait by themselves.
type room struct {
	server   *http.Server
	next     http.Handler
	mayWait  func(*http.Request) bool
	give     func(net.Conn) bool
	crowd    int64
	patience time.Duration

	calls atomic.Int64 // under way, of those that may wait
	alone atomic.Int64 // of these, those that answer by themselves, or may be about to

	mu     sync.Mutex
	over   bool // nobody comes back any more
	gone   bool // nor is anybody answered
	asking map[*conn]struct{}
	atRest map[*conn]struct{}
}

func newRoom(server *http.Server, mayWait func(*http.Request) bool, give func(net.Conn) bool) *room {
	return &room{
		server: server, next: cmp.Or[http.Handler](server.Handler, http.DefaultServeMux), mayWait: mayWait, give: give, crowd: crowd, patience: patience,
		asking: map[*conn]struct{}{}, atRest: map[*conn]struct{}{},
	}
}

func (r *room) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if !isPlain(request) || !r.mayWait(request) {
		r.next.ServeHTTP(w, request)
		return
	}
	if r.calls.Add(1) <= r.crowd {
		defer r.calls.Add(-1)
		r.next.ServeHTTP(w, request)
		return
	}
	v := newVisit(request)
	go r.serve(v)
	waited := time.NewTimer(r.patience)
	defer waited.Stop()
	select {
	case <-v.served:
	case <-waited.C:
		if r.takeOver(w, v) {
			return
		}
		<-v.served
	}
	v.copyTo(w)
}

// serve has a call served, and answers it if it is by itself then.
func (r *room) serve(v *visit) {
	defer func() { // also where the handler leaves its goroutine
		r.calls.Add(-1)
		if c := v.finish(recover()); c != nil {
			r.answer(v, c)
		}
	}()
	r.next.ServeHTTP(&v.answer, v.request)
	v.returned = true
}

// takeOver lets a call answer by itself, unless its connection cannot be had.
func (r *room) takeOver(w http.ResponseWriter, v *visit) bool {
	r.alone.Add(1) // before net/http forgets the connection: until then Shutdown waits for that
	taken, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		r.alone.Add(-1)
		return false
	}
	c := newConn(taken, buffered.Reader)
	r.note(r.asking, c)
	if !v.leave(c) { // it was served meanwhile
		go r.answer(v, c)
	}
	return true
}

// answer answers a call that has been served.
func (r *room) answer(v *visit, c *conn) {
	again := v.answerTo(c, r.server, r.isOver())
	r.forget(r.asking, c)
	r.alone.Add(-1)
	if !again {
		_ = c.Close()
		return
	}
	go r.rest(c) // with a small stack
}

// rest waits until the caller has more to say, and has that served.
func (r *room) rest(c *conn) {
	stays := r.note(r.atRest, c)
	if stays {
		stays = c.await(cmp.Or(r.server.IdleTimeout, r.server.ReadTimeout)) == nil // as in net/http
	}
	r.forget(r.atRest, c)
	if !stays || !r.give(c) {
		_ = c.Close()
	}
}

// note reports false where the end has come.
func (r *room) note(list map[*conn]struct{}, c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	list[c] = struct{}{}
	if r.gone {
		_ = c.Close()
	}
	return !r.over
}

func (r *room) forget(list map[*conn]struct{}, c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(list, c)
}

func (r *room) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// end hangs up on callers that have nothing to say. All others are answered.
func (r *room) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for c := range r.atRest {
		_ = c.Close()
	}
}

// cut hangs up on all.
func (r *room) cut() {
	r.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	for c := range r.asking {
		_ = c.Close()
	}
}

// waitEvery is between two looks whether all calls are answered.
const waitEvery = 5 * time.Millisecond

// wait returns when all calls are answered, or the context ends.
func (r *room) wait(ctx context.Context) error {
	for r.alone.Load() > 0 {
		select {
		case <-time.After(waitEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
