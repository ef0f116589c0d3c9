package waitingroom

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAnAnswerIsWhatNetHTTPMakesOfIt(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"nothing": func(http.ResponseWriter, *http.Request) {},
		"text":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
		"in pieces": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>"))
			_, _ = w.Write([]byte("hello"))
		},
		"a status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"two": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusGone)
			w.WriteHeader(http.StatusOK)
		},
		"a status of one": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599); _, _ = w.Write([]byte("odd")) },
		"no content":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Add("X-Many", "1")
			w.Header().Add("X-Many", "2\r\nX-Forged: 1")
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write([]byte("{}"))
		},
		"its own length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2")
			_, _ = w.Write([]byte("ok"))
		},
		"its own date": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "Thu, 01 Jan 1970 00:00:00 GMT") },
		"an end":       func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") },
		"encoded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("x"))
		},
		"a body too much": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotModified)
			if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("a body of 304: %v", err)
			}
		},
		"long": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat("x", 2000))) },
	} {
		t.Run(name, func(t *testing.T) {
			var waits *held
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if waits != nil {
					<-waits.letGo
				}
				answer(w, r)
			})
			ask := func(w *world, taken bool) (said, string) {
				c := w.call(t)
				c.order("/")
				if taken {
					w.by(t, 1, 0)
					close(waits.letGo)
				}
				r, body := c.hear()
				if r.Close {
					c.isLeft()
				}
				return r, body
			}
			plain, wantBody := ask(newWorld(t, handler, func(s *Server) { s.room.crowd = 1 }), false)
			waits = newHeld()
			got, body := ask(newWorld(t, handler), true)
			for _, r := range []said{plain, got} {
				if _, err := http.ParseTime(r.Header.Get("Date")); err != nil {
					t.Errorf("Date: %v", err)
				}
				if name != "its own date" {
					r.Header.Del("Date")
				}
			}
			if got.Status != plain.Status || got.Proto != plain.Proto || got.Close != plain.Close || got.ContentLength != plain.ContentLength ||
				!reflect.DeepEqual(got.Header, plain.Header) || body != wantBody {
				t.Errorf("%s %d %v %q, want %s %d %v %q", got.Status, got.ContentLength, got.Header, body, plain.Status, plain.ContentLength, plain.Header, wantBody)
			}
		})
	}
}

func TestOneConnectionServesCallAfterCall(t *testing.T) {
	h := newHeld()
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/held") {
			h.ServeHTTP(rw, r)
		}
	}), func(s *Server) { s.room.patience = 50 * time.Millisecond }) // who is served sooner is answered through net/http
	c := w.call(t)
	for i := range 6 {
		if i%3 == 2 {
			c.order("/soon")
			if r, _ := c.hear(); r.StatusCode != http.StatusOK {
				t.Fatalf("call %d: %s", i, r.Status)
			}
			continue
		}
		path := fmt.Sprint("/held/", i)
		c.order(path)
		w.by(t, 1, 0)
		h.letGo <- struct{}{}
		if r, body := c.hear(); r.Header.Get("X-Path") != path || body != "POST " {
			t.Fatalf("call %d: %s %v %q", i, r.Status, r.Header, body)
		}
		w.by(t, 0, 1)
	}
}

func TestCallsThatComeTogetherAreAnsweredInTurn(t *testing.T) {
	h := newHeld()
	w := newWorld(t, h)
	c := w.call(t)
	const calls = 5
	var all strings.Builder
	for i := range calls {
		fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nbody", i)
	}
	c.say("%s", all.String())
	for i := range calls {
		w.by(t, 1, 0)
		h.letGo <- struct{}{}
		if r, body := c.hear(); r.Header.Get("X-Path") != fmt.Sprint("/", i) || body != "POST body" {
			t.Fatalf("call %d: %v %q", i, r.Header, body)
		}
	}
	w.by(t, 0, 1)
}

func TestABodyThatIsNotCompleteFailsAndEndsTheConnection(t *testing.T) {
	h := newHeld()
	w := newWorld(t, h)
	c := w.call(t)
	c.say("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nbody")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	w.by(t, 1, 0)
	close(h.letGo)
	if r, body := c.hear(); r.StatusCode != http.StatusBadRequest || body != "POST body" || !r.Close {
		t.Errorf("%s %q, close: %t", r.Status, body, r.Close)
	}
	c.isLeft()
}

func TestWhatIsNotPlainIsLeftToNetHTTP(t *testing.T) {
	h := newHeld()
	w := newWorld(t, h)
	for name, request := range map[string]string{
		"HTTP/1.0":        "POST / HTTP/1.0\r\nHost: test\r\nContent-Length: 0\r\n\r\n",
		"no more to say":  "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"a body unknown":  "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a body too long": "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat("x", 5000),
	} {
		c := w.call(t)
		c.say("%s", request)
		select {
		case h.letGo <- struct{}{}:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: not served", name)
		}
		if n := w.room.calls.Load(); n != 0 {
			t.Errorf("%s: %d calls in the waiting room", name, n)
		}
		if r, _ := c.hear(); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, r.Status)
		}
	}
}

func TestFewWaitAsAnyOther(t *testing.T) {
	h := newHeld()
	w := newWorld(t, h, func(s *Server) { s.room.crowd = 2 })
	var callers []*caller
	for i := range 5 {
		c := w.call(t)
		c.order("/")
		callers = append(callers, c)
		w.by(t, max(0, i-1), 0)
		for deadline := time.Now().Add(20 * time.Second); w.room.calls.Load() != int64(i+1); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d calls are under way, want %d", w.room.calls.Load(), i+1)
			}
		}
	}
	close(h.letGo)
	for _, c := range callers {
		if r, _ := c.hear(); r.StatusCode != http.StatusOK {
			t.Error(r.Status)
		}
	}
	w.by(t, 0, 3)
	if n := w.room.calls.Load(); n != 0 {
		t.Errorf("%d calls are under way after the last", n)
	}
}

func TestWhoHangsUpIsServedAllTheSame(t *testing.T) {
	h := newHeld()
	done := make(chan error, 1)
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(rw, r)
		done <- r.Context().Err()
	}))
	c := w.call(t)
	c.order("/")
	w.by(t, 1, 0)
	_ = c.Close()
	h.letGo <- struct{}{}
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.by(t, 0, 0)
}

func TestAPanicEndsTheConnectionAlone(t *testing.T) {
	for name, c := range map[string]struct {
		panics func()
		logged string
	}{
		"a panic":   {func() { panic("bad luck") }, "bad luck"},
		"an abort":  {func() { panic(http.ErrAbortHandler) }, ""},
		"it leaves": {runtime.Goexit, ""},
	} {
		for _, taken := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, taken over: %t", name, taken), func(t *testing.T) {
				h := newHeld()
				w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					h.ServeHTTP(rw, r)
					if r.URL.Path == "/panic" {
						c.panics()
					}
				}), func(s *Server) {
					if !taken {
						s.room.patience = time.Minute
					}
				})
				other, broken := w.call(t), w.call(t)
				other.order("/")
				broken.order("/panic")
				if taken {
					w.by(t, 2, 0)
				}
				close(h.letGo)
				broken.isLeft()
				if r, _ := other.hear(); r.StatusCode != http.StatusOK {
					t.Error(r.Status)
				}
				if got := w.log.String(); c.logged == "" && got != "" || !strings.Contains(got, c.logged) {
					t.Errorf("logged %q, want %q", got, c.logged)
				}
			})
		}
	}
}

func TestAShutdownAnswersThoseWhoWaitAndLeavesThoseWhoDoNot(t *testing.T) {
	h := newHeld()
	w := newWorld(t, h)
	silent, waiting := w.call(t), w.call(t)
	silent.order("/silent")
	w.by(t, 1, 0)
	h.letGo <- struct{}{}
	silent.hear()
	w.by(t, 0, 1)
	waiting.order("/waiting")
	w.by(t, 1, 1)

	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.Shutdown(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown with one that waits: %v", err)
	}
	silent.isLeft()
	ended := make(chan error, 1)
	go func() { ended <- w.Shutdown(context.Background()) }()
	select {
	case err := <-ended:
		t.Fatalf("ended before the answer: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(h.letGo)
	if r, _ := waiting.hear(); r.StatusCode != http.StatusOK || !r.Close {
		t.Errorf("%s, close: %t", r.Status, r.Close)
	}
	waiting.isLeft()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestCloseLeavesAll(t *testing.T) {
	h := newHeld()
	w := newWorld(t, h)
	c := w.call(t)
	c.order("/")
	w.by(t, 1, 0)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	c.isLeft()
	close(h.letGo)
	w.by(t, 0, 0)
}

func TestWhoRestsTooLongIsLeft(t *testing.T) {
	h := newHeld()
	w := newWorld(t, h, func(s *Server) { s.IdleTimeout = 50 * time.Millisecond })
	c := w.call(t)
	c.order("/")
	w.by(t, 1, 0)
	close(h.letGo)
	c.hear()
	c.isLeft()
	w.by(t, 0, 0)
}

// A call that waits by itself keeps no buffer of net/http: that is what all this is for.
func TestACallThatWaitsKeepsLittle(t *testing.T) {
	each := func(crowd int64) int {
		h := newHeld()
		w := newWorld(t, h, func(s *Server) { s.room.crowd = crowd })
		measure := func() int {
			var m runtime.MemStats
			for range 3 { // pools are emptied by the second
				runtime.GC()
			}
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		const calls = 200
		before := measure()
		for range calls {
			c, err := net.Dial("tcp", w.address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
		for w.room.calls.Load() < calls {
			time.Sleep(time.Millisecond)
		}
		if crowd == 0 {
			w.by(t, calls, 0)
		}
		kept := (measure() - before) / calls
		close(h.letGo)
		return kept
	}
	plain, alone := each(1000), each(0)
	t.Logf("%d bytes for a call that waits in net/http, %d by itself", plain, alone)
	if alone > plain/2 {
		t.Errorf("a call that waits by itself keeps %d bytes, in net/http %d", alone, plain)
	}
}

func TestManyCallsAtOnceGetTheirOwnAnswers(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		runtime.Gosched()
		_, _ = fmt.Fprint(rw, r.URL.Path)
	}), func(s *Server) { s.room.patience = 20 * time.Microsecond }) // some are served before, some after
	var callers sync.WaitGroup
	for i := range 40 {
		c := w.call(t)
		callers.Go(func() {
			for k := range 50 {
				path := fmt.Sprintf("/%d/%d", i, k)
				if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n", path); err != nil {
					t.Error(err)
					return
				}
				r, err := http.ReadResponse(c.read, nil)
				if err != nil {
					t.Error(err)
					return
				}
				body := make([]byte, len(path))
				if _, err := r.Body.Read(body); string(body) != path {
					t.Errorf("%q, want %q: %v", body, path, err)
					return
				}
				_ = r.Body.Close()
			}
		})
	}
	callers.Wait()
}

func TestWhatComesBeforeTheAnswerIsNotTheAnswer(t *testing.T) {
	var a answer
	for _, status := range []int{http.StatusProcessing, http.StatusGone, http.StatusOK} {
		a.WriteHeader(status)
	}
	if a.code() != http.StatusGone {
		t.Errorf("%d, want %d", a.code(), http.StatusGone)
	}
}

func TestWhatAsksBeforeItSaysMoreIsNotPlain(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"a head":                func(r *http.Request) { r.Method = http.MethodHead },
		"waits for leave":       func(r *http.Request) { r.Header.Set("Expect", "100-continue") },
		"its length is unknown": func(r *http.Request) { r.ContentLength = -1 },
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		if !isPlain(r) {
			t.Fatal("a plain call is not")
		}
		if change(r); isPlain(r) {
			t.Errorf("%s: it is plain", name)
		}
	}
}

// Between net/http, which forgets a connection that is taken over, and the waiting room no call is lost.
func TestAShutdownWaitsForThoseThatAreTakenOverMeanwhile(t *testing.T) {
	for range 20 {
		var begun, done atomic.Int64
		w := newWorld(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			begun.Add(1)
			time.Sleep(2 * time.Millisecond)
			done.Add(1)
		}), func(s *Server) { s.room.patience = time.Millisecond })
		for range 50 {
			w.call(t).order("/")
		}
		for begun.Load() < 25 {
			runtime.Gosched()
		}
		if err := w.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b, d := begun.Load(), done.Load(); b != d {
			t.Fatalf("%d calls have begun and %d have been served at the end", b, d)
		}
	}
}
