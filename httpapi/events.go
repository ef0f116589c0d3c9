package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// events answers GET /admin/events: a stream that lasts until its reader leaves or is cut, its
// token is not good any more, or this process ends. Who follows is written down before
// anything is told [LAW-9].
func (s *server) events(c echo.Context) error {
	want, err := eventFilterOf(c)
	if err != nil {
		return err
	}
	leave, refusal := s.Feed.admit(c.Request().Context(), callOf(c).actor)
	if refusal == nil {
		defer leave()
	}
	if err := s.recordFollowing(c, want, refusal); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	r := &reader{
		feed: s.Feed, want: want, now: s.Now,
		response: c.Response(), control: http.NewResponseController(c.Response().Writer), // Echo's own swallows errors
	}
	if err := r.begin(c.Request().Context(), c.Request().Header.Get("Last-Event-ID")); err != nil {
		return err
	}
	s.follow(c, r)
	return nil
}

func (s *server) recordFollowing(c echo.Context, want eventFilter, refusal error) error {
	line := callOf(c).line(telematics.EventsRead, want.vehicle, s.Now())
	line.Outcome = telematics.Executed
	if refusal != nil {
		line.Outcome, line.Code = telematics.NotExecuted, asError(refusal).Code
	} else if !want.nothing && want.agency != 0 {
		line.Agency = want.agency
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.ReadBudget)
	defer cancel()
	if refusal == nil {
		vehicles := 0
		if !want.nothing {
			var err error
			if vehicles, err = s.Fleet.CountVehicles(ctx, want.agency, want.vehicle); err != nil {
				return err
			}
		}
		line.Details = map[string]any{"filter": want.described(), "vehicles": vehicles}
	}
	return s.History.Add(ctx, line)
}

// described returns the filter as an activity entry has it.
func (want eventFilter) described() map[string]any {
	filter := map[string]any{}
	if want.agency != 0 {
		filter["agency_id"] = int64(want.agency)
	}
	if want.vehicle != 0 {
		filter["vehicle_id"] = int64(want.vehicle)
	}
	if want.kinds != nil {
		filter["event"] = want.kinds
	}
	return filter
}

// follow serves a stream that has begun.
func (s *server) follow(c echo.Context, r *reader) {
	ctx, call := c.Request().Context(), callOf(c)
	ping := time.NewTicker(s.Feed.PingEvery)
	defer ping.Stop()
	expiry := time.NewTimer(call.tokenUntil.Sub(s.Now()))
	defer expiry.Stop()
	for {
		news, err := r.advance(ctx)
		if err != nil {
			r.cut(err)
			return
		}
		select {
		case <-news:
		case <-ping.C:
			// The keys may have changed since the token was verified.
			if _, err := s.Tokens.authenticate(ctx, c.Request().Header); err != nil && asError(err).Code == unauthenticated {
				r.end(tokenRefused)
				return
			}
			if r.ping() != nil {
				return
			}
		case <-expiry.C:
			r.end(tokenExpired)
			return
		case <-s.Feed.ended:
			r.end(stopping)
			return
		case <-ctx.Done():
			return
		}
	}
}

// eventFilter is what a stream tells of.
type eventFilter struct {
	agency  telematics.AgencyID  // zero: of all
	vehicle telematics.VehicleID // zero: of all
	kinds   []telematics.EventKind
	nothing bool // of an agency that the actor does not see
}

func eventFilterOf(c echo.Context) (eventFilter, error) {
	agency, visible, err := agencyQuery(c)
	if err != nil {
		return eventFilter{}, err
	}
	vehicle, err := integerQuery(c, "vehicle_id")
	want := eventFilter{agency: agency, vehicle: telematics.VehicleID(vehicle), nothing: !visible}
	if kinds := c.QueryParam("event"); kinds != "" {
		for kind := range strings.SplitSeq(kinds, ",") {
			want.kinds = append(want.kinds, telematics.EventKind(kind))
		}
	}
	return want, err
}

// takes reports whether a frame is for the reader. A reset is for everybody.
func (want eventFilter) takes(f frame) bool {
	if f.kind == telematics.ResetEvent {
		return true
	}
	return !want.nothing &&
		(want.agency == 0 || want.agency == f.agency) &&
		(want.vehicle == 0 || want.vehicle == f.vehicle) &&
		(want.kinds == nil || slices.Contains(want.kinds, f.kind))
}

const (
	// maxWrite is about how much goes out at once, in bytes.
	maxWrite = 64 << 10
	// comeBack is when a reader that has lost its stream comes back.
	comeBack = 3 * time.Second
)

// write sends what fill adds to a buffer, in one write, which may take WriteFor.
func (r *reader) write(fill func(*bytes.Buffer)) error {
	var buffer bytes.Buffer
	fill(&buffer)
	if buffer.Len() == 0 {
		return nil
	}
	_ = r.control.SetWriteDeadline(time.Now().Add(r.feed.WriteFor)) // a recorder in tests has none
	if _, err := r.response.Write(buffer.Bytes()); err != nil {
		return err
	}
	return r.control.Flush()
}

func (r *reader) ping() error {
	return r.write(func(text *bytes.Buffer) {
		// The id moves a reader on for whom there was nothing: it can come back there.
		fmt.Fprintf(text, ": ping\nid: %s\n\n", r.at)
	})
}

// end says why the stream ends. Who comes back because this process ends, does so at a
// moment of its own.
func (r *reader) end(reason string) {
	_ = r.write(func(text *bytes.Buffer) { // it ends anyway
		if reason == stopping {
			fmt.Fprintf(text, "retry: %d\n", (time.Second + rand.N(4*time.Second)).Milliseconds())
		}
		writeFrame(text, "", endEvent, noticeBody{At: timestamp(r.now()), Reason: reason})
	})
}
