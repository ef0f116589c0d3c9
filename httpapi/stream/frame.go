package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
)

// Events about the stream itself, of which the log has none.
const (
	endEvent     telematics.EventKind = "end"     // the last one
	stalledEvent telematics.EventKind = "stalled" // the log does not answer: events come late
	resumedEvent telematics.EventKind = "resumed" // it does again
)

// notice is the data of events about the stream itself.
type notice struct {
	VehicleID *int64 `json:"vehicle_id"` // always null
	At        string `json:"at"`
	Reason    string `json:"reason"`
}

func newNotice(at time.Time, reason string) notice {
	return notice{At: telematics.FormatTime(at), Reason: reason}
}

// Reasons of events about the stream itself.
const (
	eventsMissing  = "events_missing" // reset: earlier events may be missing
	tooSlow        = "too_slow"       // the subscriber is further behind than the ring reaches
	tokenExpired   = "token_expired"
	tokenRefused   = "token_refused" // the token is not valid any more
	stopping       = "stopping"      // this process ends; another one serves
	logUnavailable = "unavailable"   // the log of events cannot be read
	logAvailable   = "available"     // resumed: it can again
)

// Filter selects the events of a subscriber.
type Filter struct {
	Agency  telematics.AgencyID    // zero: all; NoAgency: no event at all
	Vehicle telematics.VehicleID   // zero: all
	Kinds   []telematics.EventKind // nil: all
	Persons bool                   // also alerts about persons, which belong to no vehicle
}

// matches reports whether a subscriber gets a frame. All get a reset, even with NoAgency; a halt
// of all agencies matches any other.
func (f Filter) matches(e frame) bool {
	if e.kind == telematics.ResetEvent {
		return true
	}
	ofAll := e.kind == telematics.HaltEvent && e.agency == 0
	aboutPerson := e.kind == telematics.AlertEvent && e.vehicle == 0
	return f.Agency != telematics.NoAgency && (f.Persons || !aboutPerson) &&
		(f.Agency == 0 || f.Agency == e.agency || ofAll) &&
		(f.Vehicle == 0 || f.Vehicle == e.vehicle) &&
		(f.Kinds == nil || slices.Contains(f.Kinds, e.kind))
}

// newFrames encodes events for all subscribers.
func (f *Feed) newFrames(events []telematics.Event) []frame {
	frames := make([]frame, len(events))
	for i, e := range events {
		body := f.Body(e)
		if body == nil {
			body = newNotice(e.At, eventsMissing)
		}
		var text bytes.Buffer
		writeFrame(&text, e.ID, e.Kind, body)
		// Cloned without the buffer's spare capacity.
		frames[i] = frame{id: e.ID, kind: e.Kind, vehicle: e.Vehicle, agency: e.Agency, text: bytes.Clone(text.Bytes())}
	}
	return frames
}

// writeFrame adds one event in the form of server-sent events.
func writeFrame(text *bytes.Buffer, id string, kind telematics.EventKind, body any) {
	if id != "" {
		fmt.Fprintf(text, "id: %s\n", id)
	}
	fmt.Fprintf(text, "event: %s\ndata: ", kind)
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil { // cannot happen: its values were decoded from JSON
		panic(fmt.Sprintf("encode event: %v", err))
	}
	text.WriteByte('\n') // ends the event; the encoder has ended the line
}
