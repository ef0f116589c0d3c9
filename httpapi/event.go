package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"motorpool/telematics"
)

// Events that are of a stream alone. The log knows those of telematics.EventKinds.
const endEvent telematics.EventKind = "end"

// commandEventBody is the data of a command event.
type commandEventBody struct {
	VehicleID int64       `json:"vehicle_id"`
	At        string      `json:"at"`
	Command   commandBody `json:"command"`
}

// presenceEventBody is the data of a presence event.
type presenceEventBody struct {
	VehicleID    int64                    `json:"vehicle_id"`
	At           string                   `json:"at"`
	Connectivity presenceConnectivityBody `json:"connectivity"`
}

type presenceConnectivityBody struct {
	Status   telematics.PresenceStatus `json:"status"`
	LastSeen *string                   `json:"last_seen"`
}

// noticeBody is the data of what is about the stream itself.
type noticeBody struct {
	VehicleID *int64 `json:"vehicle_id"` // null: of none
	At        string `json:"at"`
	Reason    string `json:"reason"`
}

// Reasons of a reset, and of the end of a stream.
const (
	eventsMissing = "events_missing" // reset: what came before is not complete
	tooSlow       = "too_slow"       // the reader has fallen too far behind
	tokenExpired  = "token_expired"
	tokenRefused  = "token_refused" // its key is not valid any more
	stopping      = "stopping"      // this process ends; another one serves
	logAway       = "unavailable"   // the log of events cannot be read on
)

// newChunk encodes events for all readers.
func newChunk(events []telematics.Event) *chunk {
	var text bytes.Buffer
	c := &chunk{frames: make([]frame, 0, len(events))}
	for _, e := range events {
		from := text.Len()
		writeFrame(&text, e.ID, e.Kind, newEventBody(e))
		c.frames = append(c.frames, frame{id: e.ID, kind: e.Kind, vehicle: e.Vehicle, agency: e.Agency, from: from, to: text.Len()})
	}
	c.text = bytes.Clone(text.Bytes()) // without the room that it grew into
	return c
}

// writeFrame adds one event in the form of server-sent events.
func writeFrame(text *bytes.Buffer, id string, kind telematics.EventKind, body any) {
	if id != "" {
		fmt.Fprintf(text, "id: %s\n", id)
	}
	fmt.Fprintf(text, "event: %s\ndata: ", kind)
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil { // never for what was decoded from JSON
		panic(fmt.Sprintf("encode event: %v", err))
	}
	text.WriteByte('\n') // the encoder has ended the line
}

func newEventBody(e telematics.Event) any {
	switch e.Kind {
	case telematics.CommandEvent:
		return commandEventBody{VehicleID: int64(e.Vehicle), At: timestamp(e.At), Command: newCommandBody(*e.Command)}
	case telematics.PresenceEvent:
		return presenceEventBody{VehicleID: int64(e.Vehicle), At: timestamp(e.At), Connectivity: presenceConnectivityBody{
			Status: e.Change.Presence, LastSeen: timestampOrNull(e.Change.LastSeen),
		}}
	case telematics.StatusEvent:
		body := newChangedBody(e.Change.Fields)
		body["vehicle_id"], body["at"] = int64(e.Vehicle), timestamp(e.At)
		if len(e.Change.Large) > 0 {
			body["too_large"] = e.Change.Large
		}
		return body
	default:
		return noticeBody{At: timestamp(e.At), Reason: eventsMissing}
	}
}

// newChangedBody is those parts of a vehicle status whose values are new.
func newChangedBody(fields telematics.Snapshot) map[string]any {
	body := map[string]any{}
	if reading, ok := fields[telematics.OEMData]; ok { // first: two of its names are ours
		own, _ := reading.Value.(map[string]any)
		maps.Copy(group(body, string(telematics.OEMData)), own)
	}
	for field, reading := range fields {
		switch field {
		case telematics.OEMData:
		case telematics.RSRP:
			group(body, "connectivity")["signal_quality"] = telematics.SignalQuality(fields.Number(telematics.RSRP))
		default:
			path := strings.Split(string(field), ".")
			last := len(path) - 1
			group(body, path[:last]...)[path[last]] = shown(reading.Value)
		}
	}
	return body
}

// group returns the object at a path, which it makes where there is none.
func group(body map[string]any, path ...string) map[string]any {
	for _, name := range path {
		inner, ok := body[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			body[name] = inner
		}
		body = inner
	}
	return body
}

func shown(value any) any {
	if at, ok := value.(time.Time); ok {
		return timestamp(at)
	}
	return value
}
