package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"motorpool/telematics"
)

// Subscription is what one stream sends, and for how long.
type Subscription struct {
	Filter Filter
	// LastID is the event after which the stream resumes; empty: it begins with the next event.
	LastID string
	// Until is when the access token expires.
	Until time.Time
	// Refused reports, before each ping, whether the access token is no longer accepted.
	Refused func(context.Context) bool
	// SignedOut reports, each second, whether the session of the request has ended; nil: it has
	// none.
	SignedOut func() bool
	// Now is the clock.
	Now func() time.Time
}

// subscriber is the state of one stream.
//
// It reads the log itself, in pages, until the latest event of the ring, and continues there. The
// log may order the events of several vehicles otherwise than the ring does; up to one id it has
// the same events, so none is missing and none is sent twice.
type subscriber struct {
	Subscription
	feed     *Feed
	response http.ResponseWriter
	control  *http.ResponseController
	lastID   string // of the last event that was sent, or did not match
	stalled  bool   // it was sent that the log does not answer
	next     uint64 // the position after it, while inRing
	inRing   bool
}

var (
	errTooSlow        = errors.New("the subscriber is too slow")
	errLogUnavailable = errors.New("the log of events cannot be read")
)

// Serve sends a stream that Admit has admitted. It blocks until the caller disconnects or is too
// slow, its token is no longer valid, or End is called. It returns an error only if it has not
// written a response.
func (f *Feed) Serve(ctx context.Context, w http.ResponseWriter, what Subscription) error {
	s := &subscriber{Subscription: what, feed: f, response: w, control: http.NewResponseController(w)}
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.follow(ctx)
	return nil
}

// begin writes the header and the first events. Its error comes before the header.
func (s *subscriber) begin(ctx context.Context) error {
	reset := false
	var page []telematics.Event
	if s.next, s.inRing = s.feed.ring.find(s.LastID); s.inRing {
		s.lastID = s.LastID
	} else if s.LastID != "" {
		var complete bool
		var err error
		_, until := s.feed.ring.latest()
		if page, complete, err = s.feed.Log.After(ctx, s.LastID, until, pageEvents); err != nil {
			return err
		}
		s.lastID, reset = s.LastID, !complete
	}
	if s.LastID == "" || reset {
		s.skipToEnd()
	}
	header := s.response.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // otherwise nginx collects events before it sends them
	_ = s.control.SetReadDeadline(time.Time{})
	s.response.WriteHeader(http.StatusOK)
	_ = s.write(func(text *bytes.Buffer) { // the next write fails where the caller has hung up
		fmt.Fprintf(text, "retry: %d\n", retryDelay.Milliseconds())
		if reset {
			s.writeReset(text)
		} else {
			// So a caller that loses the stream before the first event resumes here.
			fmt.Fprintf(text, "id: %s\n\n", s.lastID)
		}
		s.writeFrames(text, s.feed.newFrames(page))
	})
	return nil
}

// follow sends events until the stream ends.
func (s *subscriber) follow(ctx context.Context) {
	ping := time.NewTicker(s.feed.PingEvery)
	defer ping.Stop()
	expiry := time.NewTimer(s.Until.Sub(s.Now()))
	defer expiry.Stop()
	var session <-chan time.Time
	if s.SignedOut != nil {
		every := time.NewTicker(sessionCheck)
		defer every.Stop()
		session = every.C
	}
	for {
		more, err := s.advance(ctx)
		if err != nil {
			s.fail(err)
			return
		}
		since, changed := s.feed.stalled()
		if s.sendStalled(since) != nil {
			return
		}
		select {
		case <-more:
		case <-changed:
		case <-ping.C:
			if !s.Now().Before(s.Until) { // the timer stood still while the machine was suspended
				s.end(tokenExpired)
				return
			}
			if s.Refused(ctx) {
				s.end(tokenRefused)
				return
			}
			if s.ping() != nil {
				return
			}
		case <-session:
			if s.SignedOut() {
				s.end(tokenRefused)
				return
			}
		case <-expiry.C:
			s.end(tokenExpired)
			return
		case <-s.feed.ended:
			s.end(stopping)
			return
		case <-ctx.Done():
			return
		}
	}
}

// advance sends the available events, at most one write. The returned channel is closed when there
// are more.
func (s *subscriber) advance(ctx context.Context) (more <-chan struct{}, err error) {
	if s.inRing {
		err = s.write(func(text *bytes.Buffer) { more = s.writeFromRing(text) })
		if err == nil && more == nil && s.isBehindRing() {
			err = errTooSlow
		}
	} else {
		more, err = s.readLog(ctx)
	}
	if more == nil {
		more = closed
	}
	return more, err
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// writeFromRing adds the next frames, up to about maxWrite, and returns nil; or, where there are
// none, a channel that is closed when there are more.
func (s *subscriber) writeFromRing(text *bytes.Buffer) <-chan struct{} {
	frames, more, _ := s.feed.ring.from(s.next)
	for len(frames) > 0 && text.Len() < maxWrite {
		s.writeFrames(text, frames[:1])
		frames = frames[1:]
		s.next++
	}
	return more
}

func (s *subscriber) isBehindRing() bool {
	_, _, ok := s.feed.ring.from(s.next)
	return !ok
}

// readLog sends a page of the log, unless the subscriber's position is in the ring now. Where the
// log has no more events than the ring had before, it returns a channel that is closed by the next
// one.
func (s *subscriber) readLog(ctx context.Context) (more <-chan struct{}, err error) {
	end, until := s.feed.ring.latest()
	if s.next, s.inRing = s.feed.ring.find(s.lastID); s.inRing {
		return nil, nil
	}
	page, complete, err := s.feed.Log.After(ctx, s.lastID, until, pageEvents)
	switch {
	case err != nil:
		return nil, errors.Join(errLogUnavailable, err)
	case !complete:
		s.skipToEnd()
		return nil, s.write(s.writeReset)
	case len(page) == 0:
		_, more, _ = s.feed.ring.from(end)
		return more, nil // nil where there are more already
	}
	return nil, s.write(func(text *bytes.Buffer) { s.writeFrames(text, s.feed.newFrames(page)) })
}

func (s *subscriber) skipToEnd() {
	s.next, s.lastID = s.feed.ring.latest()
	s.inRing = true
}

func (s *subscriber) writeReset(text *bytes.Buffer) {
	writeFrame(text, s.lastID, telematics.ResetEvent, newNotice(s.Now(), eventsMissing))
}

// writeFrames adds the matching ones of some frames.
func (s *subscriber) writeFrames(text *bytes.Buffer, frames []frame) {
	for _, f := range frames {
		if s.Filter.matches(f) {
			text.Write(f.text)
		}
		s.lastID = f.id
	}
}

// sendStalled sends the event stalled or resumed, if the state of the log has changed.
func (s *subscriber) sendStalled(since time.Time) error {
	stalled := !since.IsZero()
	if stalled == s.stalled {
		return nil
	}
	s.stalled = stalled
	return s.write(func(text *bytes.Buffer) {
		if stalled {
			writeFrame(text, "", stalledEvent, newNotice(since, logUnavailable))
		} else {
			writeFrame(text, "", resumedEvent, newNotice(s.Now(), logAvailable))
		}
	})
}

func (s *subscriber) ping() error {
	return s.write(func(text *bytes.Buffer) {
		// The id lets a caller without matching events resume here.
		fmt.Fprintf(text, ": ping\nid: %s\n\n", s.lastID)
	})
}

// fail ends a stream that cannot continue, with the reason where that can still be written.
func (s *subscriber) fail(err error) {
	switch {
	case errors.Is(err, errLogUnavailable):
		s.end(logUnavailable)
	case errors.Is(err, errTooSlow):
		s.feed.metrics.cut.Inc()
		s.end(tooSlow)
	// Part of an event may have been sent, so nothing can follow.
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.feed.metrics.cut.Inc()
	}
}

// end sends why the stream ends. When this process ends, each client gets a random delay before it
// reconnects.
func (s *subscriber) end(reason string) {
	_ = s.write(func(text *bytes.Buffer) { // the stream ends in any case
		if reason == stopping {
			fmt.Fprintf(text, "retry: %d\n", (minRetryAtStop + rand.N(moreRetryAtStop)).Milliseconds())
		}
		writeFrame(text, "", endEvent, newNotice(s.Now(), reason))
	})
}

// write sends what fill adds to a buffer, in one write, which may take WriteTimeout.
func (s *subscriber) write(fill func(*bytes.Buffer)) error {
	var buffer bytes.Buffer
	fill(&buffer)
	if buffer.Len() == 0 {
		return nil
	}
	// Not supported by recorders in tests.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.feed.WriteTimeout))
	if _, err := s.response.Write(buffer.Bytes()); err != nil {
		return err
	}
	return s.control.Flush()
}
