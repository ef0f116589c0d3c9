package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// reader is one stream on its way through the events.
//
// It reads the log itself, in pages, until it meets the events that the feed has at hand, and
// goes on there. Both are the same events in the same order, so nothing is missing and nothing
// comes twice where they meet: at one and the same event.
type reader struct {
	feed     *Feed
	want     eventFilter
	now      func() time.Time
	response *echo.Response
	control  *http.ResponseController
	at       string // id of the last event that was told, or was not for this reader
	place    cursor // behind it, once it is at hand
	met      bool   // it is at hand
}

var (
	errTooSlow = errors.New("the reader is too slow")
	errLogAway = errors.New("the log of events cannot be read")
)

// eventPage is how many events are read from the log at once.
const eventPage = 500

// begin answers: from now on, or from behind an event. Its error comes before the answer.
func (r *reader) begin(ctx context.Context, last string) error {
	reset := false
	var page []telematics.Event
	if r.place, r.met = r.feed.ring.find(last); r.met {
		r.at = last
	} else if last != "" {
		var complete bool
		var err error
		if page, complete, err = r.feed.Log.After(ctx, last, eventPage); err != nil {
			return err
		}
		r.at, reset = last, !complete
	}
	if last == "" || reset {
		r.place, r.at = r.feed.ring.end()
		r.met = true
	}
	header := r.response.Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // else nginx gathers events before it hands them on
	_ = r.control.SetReadDeadline(time.Time{})
	r.response.WriteHeader(http.StatusOK)
	_ = r.write(func(text *bytes.Buffer) { // who has left meanwhile is noticed with the next
		fmt.Fprintf(text, "retry: %d\n", comeBack.Milliseconds())
		if reset {
			r.writeReset(text)
		} else {
			fmt.Fprintf(text, "id: %s\n\n", r.at) // a cut before the first event loses none
		}
		r.writePage(text, page)
	})
	return nil
}

func (r *reader) writeReset(text *bytes.Buffer) {
	writeFrame(text, r.at, telematics.ResetEvent, noticeBody{At: timestamp(r.now()), Reason: eventsMissing})
}

// writePage adds what the log said, and moves on.
func (r *reader) writePage(text *bytes.Buffer, events []telematics.Event) {
	if len(events) > 0 {
		r.writeChunk(text, newChunk(events), 0)
	}
}

func (r *reader) writeChunk(text *bytes.Buffer, c *chunk, from int) {
	for _, f := range c.frames[from:] {
		if r.want.takes(f) {
			text.Write(c.text[f.from:f.to])
		}
	}
	r.at = c.frames[len(c.frames)-1].id
}

// atOnce is of a reader for whom there is more.
var atOnce = func() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// advance sends what there is, as much as one write takes. What it returns tells when there
// is more.
func (r *reader) advance(ctx context.Context) (news <-chan struct{}, err error) {
	if !r.met {
		news, err = r.meet(ctx)
	} else {
		err = r.write(func(text *bytes.Buffer) { news = r.gather(text) })
		if err == nil && news == nil && r.fallen() {
			err = errTooSlow
		}
	}
	if news == nil {
		news = atOnce
	}
	return news, err
}

// gather adds chunks until they are enough for one write, or until there are no more: then
// it returns what tells of the next.
func (r *reader) gather(text *bytes.Buffer) <-chan struct{} {
	for text.Len() < maxWrite {
		c, news, ok := r.feed.ring.from(r.place)
		if !ok || c == nil {
			return news
		}
		if r.place.frames < len(c.frames) {
			r.writeChunk(text, c, r.place.frames)
		}
		r.place = cursor{chunk: c.seq + 1}
	}
	return nil
}

func (r *reader) fallen() bool {
	_, _, ok := r.feed.ring.from(r.place)
	return !ok
}

// meet goes on from the log, until the reader's place is at hand. Where the log has more than
// the feed has seen, it returns what tells of the next.
func (r *reader) meet(ctx context.Context) (<-chan struct{}, error) {
	end, _ := r.feed.ring.end()
	if r.place, r.met = r.feed.ring.find(r.at); r.met {
		return nil, nil
	}
	page, complete, err := r.feed.Log.After(ctx, r.at, eventPage)
	switch {
	case err != nil:
		return nil, errors.Join(errLogAway, err)
	case !complete:
		r.place, r.at = r.feed.ring.end()
		r.met = true
		return nil, r.write(r.writeReset)
	case len(page) == 0:
		_, news, _ := r.feed.ring.from(end)
		return news, nil // nil where there is more already
	}
	return nil, r.write(func(text *bytes.Buffer) { r.writePage(text, page) })
}

// cut ends a stream that cannot go on, and says why where that can still be written.
func (r *reader) cut(err error) {
	switch {
	case errors.Is(err, errLogAway):
		r.end(logAway)
	case errors.Is(err, errTooSlow):
		r.feed.cut.Add(1)
		r.end(tooSlow)
	case errors.Is(err, os.ErrDeadlineExceeded): // half a frame may be out: there is no more to say
		r.feed.cut.Add(1)
	}
}
