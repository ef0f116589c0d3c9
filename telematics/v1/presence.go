package v1

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
)

var errTooLarge = fmt.Errorf("larger than %d bytes", telematics.MaxMessage)

// wirePresence is the JSON of a presence message.
type wirePresence struct {
	Status       telematics.PresenceStatus `json:"status"`
	Session      string                    `json:"session"`
	At           string                    `json:"at,omitempty"`
	Firmware     string                    `json:"firmware_version,omitempty"`
	Capabilities *[]string                 `json:"capabilities,omitempty"`
	Keys         json.RawMessage           `json:"keys,omitempty"`
}

// EncodePresence returns the message that a unit publishes, or registers as its last will.
func EncodePresence(p telematics.Presence) []byte {
	w := wirePresence{Status: p.Status, Session: p.Session, Firmware: p.Firmware}
	if !p.At.IsZero() {
		w.At = telematics.FormatTime(p.At)
	}
	if p.Actions != nil {
		names := make([]string, len(p.Actions))
		for i, a := range p.Actions {
			names[i] = string(a)
		}
		w.Capabilities = &names
	}
	if p.Keys != nil {
		w.Keys = encode(p.Keys)
	}
	return encode(w)
}

// DecodePresence decodes a presence message that arrived at received. Capabilities that this
// version does not know are left out, and so is a list of keys that is not valid [PRE-4]. It fails
// where the message is too large, or is no valid presence.
func DecodePresence(message []byte, received time.Time) (telematics.Presence, error) {
	if len(message) > telematics.MaxMessage {
		return telematics.Presence{}, errTooLarge
	}
	var w wirePresence
	if err := json.Unmarshal(message, &w); err != nil {
		return telematics.Presence{}, fmt.Errorf("decode presence: %w", err)
	}
	switch w.Status {
	case telematics.Online, telematics.Standby, telematics.Offline:
	default:
		return telematics.Presence{}, fmt.Errorf("decode presence: status %.32q is not online, standby or offline", w.Status)
	}
	for _, s := range []string{w.Session, w.Firmware} {
		if !telematics.IsText(s) {
			return telematics.Presence{}, errors.New("decode presence: session or firmware_version is too long, or holds a NUL")
		}
	}
	p := telematics.Presence{Status: w.Status, Session: w.Session, Firmware: w.Firmware}
	// Without a plausible time, received would be wrong: a last will is written when the
	// connection begins, and a retained message may be old.
	if at := parseTime(w.At); telematics.IsPlausible(at, received) {
		p.At = telematics.VehicleTime(at, received)
	}
	if w.Capabilities != nil {
		p.Actions = []telematics.Action{}
		for _, name := range *w.Capabilities {
			if a, err := telematics.ParseAction(name); err == nil && !slices.Contains(p.Actions, a) {
				p.Actions = append(p.Actions, a)
			}
		}
	}
	p.Keys = parseKeys(w.Keys)
	return p, nil
}

// parseKeys returns ids of keys, sorted, each once; nil unless raw is a list of at most
// telematics.MaxKeys valid ids.
func parseKeys(raw json.RawMessage) []string {
	var ids []string
	if json.Unmarshal(raw, &ids) != nil || len(ids) > telematics.MaxKeys {
		return nil
	}
	for _, id := range ids {
		if id == "" || len(id) > telematics.MaxKeyID || !telematics.IsText(id) || telematics.Printable(id) != id {
			return nil
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// parseTime returns the zero time, which VehicleTime replaces, for a text that is no time.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// encode marshals a value made only of strings, numbers and checked values; it panics for others.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("v1: encode %T: %v", v, err))
	}
	return b
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }
