package waitingroom

import (
	"bytes"
	"cmp"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"time"
)

// answer is what a handler answers, kept until there is somebody to take it.
type answer struct {
	header http.Header
	status int
	body   []byte
}

func (a *answer) Header() http.Header { return a.header }

// WriteHeader ignores what is not the answer yet (1xx), and what comes after it.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK {
		a.status = cmp.Or(a.status, status)
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.status == http.StatusNoContent || a.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	a.body = append(a.body, p...)
	return len(p), nil
}

func (a *answer) code() int { return cmp.Or(a.status, http.StatusOK) }

// closes reports whether the handler wants the connection to end.
func (a *answer) closes() bool { return strings.EqualFold(a.header.Get("Connection"), "close") }

// writeTo writes what net/http would send; last says that the connection ends with it.
func (a *answer) writeTo(w io.Writer, last bool) error {
	if a.header.Get("Date") == "" {
		a.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	if _, said := a.header["Content-Type"]; !said && len(a.body) > 0 && a.header.Get("Content-Encoding") == "" {
		a.header.Set("Content-Type", http.DetectContentType(a.body))
	}
	a.header.Del("Connection") // last says it
	response := http.Response{
		StatusCode: a.code(), ProtoMajor: 1, ProtoMinor: 1, Header: a.header, Close: last,
		ContentLength: int64(len(a.body)), Body: io.NopCloser(bytes.NewReader(a.body)),
	}
	text := texts.Get().(*bytes.Buffer)
	defer texts.Put(text)
	text.Reset()
	if err := response.Write(text); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes()) // in one piece
	return err
}

// texts hold an answer while it is written, and then another.
var texts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// logf is net/http's, whose server has no method for it.
func logf(s *http.Server, format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}
