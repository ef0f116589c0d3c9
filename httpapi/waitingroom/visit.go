package waitingroom

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// roomForBody is the longest body of a call that may wait here, in bytes.
const roomForBody = 4 << 10

// isPlain reports whether a call can be answered without net/http.
func isPlain(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoMinor == 1 && !r.Close && r.Method != http.MethodHead && r.Header.Get("Expect") == "" &&
		0 <= r.ContentLength && r.ContentLength <= roomForBody
}

// visit is a call that may be answered by itself.
type visit struct {
	request  *http.Request // which refers to nothing of the connection
	cut      bool          // its body is not complete, so nothing can follow
	answer   answer        // for the handler to give
	returned bool          // the handler has, else it panicked, or left its goroutine
	panicked any           // what with
	stack    []byte        // likewise: where
	served   chan struct{} // closed when it has been, and who called for it is to answer

	mu   sync.Mutex
	over bool  // it has been served
	conn *conn // to be answered by itself
}

func newVisit(r *http.Request) *visit {
	own := r.WithContext(context.WithoutCancel(r.Context())) // which ends with net/http's handler
	v := &visit{request: own, answer: answer{header: http.Header{}}, served: make(chan struct{})}
	if r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body)
		own.Body, v.cut = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err})), err != nil
	}
	return v
}

// failing is a reader that fails; nil: it ends.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// leave lets the call be answered on a connection by itself, once it has been served. It reports false where it has been.
func (v *visit) leave(c *conn) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.conn = c
	return !v.over
}

// finish notes that the call has been served, and returns where it is to be answered by itself; nil: whoever called for it does.
func (v *visit) finish(panicked any) *conn {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over, v.panicked = true, panicked
	if panicked != nil {
		v.stack = debug.Stack()
	}
	if v.conn == nil {
		close(v.served)
	}
	return v.conn
}

// copyTo answers through net/http.
func (v *visit) copyTo(w http.ResponseWriter) {
	if !v.returned {
		if v.panicked == nil {
			v.panicked = http.ErrAbortHandler
		}
		panic(v.panicked)
	}
	maps.Copy(w.Header(), v.answer.header)
	w.WriteHeader(v.answer.code())
	_, _ = w.Write(v.answer.body) // the caller may leave
}

// writeWithin is how long a caller may take to take its answer.
const writeWithin = 10 * time.Second

// answerTo answers by itself, and reports whether the caller may ask something else on the connection.
func (v *visit) answerTo(c *conn, server *http.Server, last bool) bool {
	if !v.returned {
		if failed, ok := v.panicked.(error); v.panicked != nil && (!ok || !errors.Is(failed, http.ErrAbortHandler)) {
			logf(server, "http: panic serving %v: %v\n%s", c.RemoteAddr(), v.panicked, v.stack)
		}
		return false
	}
	last = last || v.cut || v.answer.closes()
	if err := c.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return false
	}
	if err := v.answer.writeTo(c, last); err != nil {
		return false
	}
	return !last && c.SetWriteDeadline(time.Time{}) == nil
}
