package telematics

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// MaxMessage is the largest message that is read, in bytes [TEL-4].
const MaxMessage = 64 << 10

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

var errTooLarge = fmt.Errorf("larger than %d bytes", MaxMessage)

// wireAnswer is the JSON of an answer [ACK-1].
type wireAnswer struct {
	Command string          `json:"command_id"`
	Status  State           `json:"status"`
	At      string          `json:"at"`
	Reason  string          `json:"reason,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	Report  json.RawMessage `json:"report,omitempty"`
}

// EncodeAnswer returns the message that a unit publishes as its answer.
func EncodeAnswer(a Answer) []byte {
	w := wireAnswer{Command: a.Command.String(), Status: a.State, At: formatTime(a.At), Reason: a.Reason, Detail: a.Detail}
	if a.Report != nil {
		w.Report = EncodeReport(*a.Report)
	}
	return encode(w)
}

// DecodeAnswer reads an answer that arrived at the instant received. What is
// unsound in its report is left out and listed; the answer itself must be sound.
func DecodeAnswer(message []byte, received time.Time) (Answer, []Dropped, error) {
	if len(message) > MaxMessage {
		return Answer{}, nil, errTooLarge
	}
	var w wireAnswer
	if err := json.Unmarshal(message, &w); err != nil {
		return Answer{}, nil, fmt.Errorf("decode answer: %w", err)
	}
	return w.answer(received)
}

func (w wireAnswer) answer(received time.Time) (Answer, []Dropped, error) {
	id, err := uuid.Parse(w.Command)
	if err != nil {
		return Answer{}, nil, fmt.Errorf("decode answer: command_id: %w", err)
	}
	switch w.Status {
	case Received, Succeeded, Rejected, Failed:
	default:
		return Answer{}, nil, fmt.Errorf("decode answer: status %.32q is none of an answer", w.Status)
	}
	for _, s := range []string{w.Reason, w.Detail} {
		if len(s) > maxText || strings.ContainsRune(s, 0) {
			return Answer{}, nil, errors.New("decode answer: reason or detail is too long, or holds a NUL")
		}
	}
	a := Answer{Command: id, State: w.Status, At: vehicleTime(parseTime(w.At), received), Reason: w.Reason, Detail: w.Detail}
	if len(w.Report) == 0 || isNull(w.Report) {
		return a, nil, nil
	}
	report, dropped, err := DecodeReport(w.Report, received)
	if err != nil {
		return a, []Dropped{{Field: "report", Reason: err.Error()}}, nil
	}
	report.Answers = nil
	a.Report = &report
	return a, dropped, nil
}

// wirePresence is the JSON of a presence message.
type wirePresence struct {
	Status       PresenceStatus `json:"status"`
	Session      string         `json:"session"`
	At           string         `json:"at,omitempty"`
	Firmware     string         `json:"firmware_version,omitempty"`
	Capabilities *[]string      `json:"capabilities,omitempty"`
}

// EncodePresence returns the message that a unit publishes, or leaves as its last will.
func EncodePresence(p Presence) []byte {
	w := wirePresence{Status: p.Status, Session: p.Session, Firmware: p.Firmware}
	if !p.At.IsZero() {
		w.At = formatTime(p.At)
	}
	if p.Actions != nil {
		names := make([]string, len(p.Actions))
		for i, a := range p.Actions {
			names[i] = string(a)
		}
		w.Capabilities = &names
	}
	return encode(w)
}

// DecodePresence reads a presence message that arrived at the instant received.
// Capabilities that this version does not know are left out.
func DecodePresence(message []byte, received time.Time) (Presence, error) {
	if len(message) > MaxMessage {
		return Presence{}, errTooLarge
	}
	var w wirePresence
	if err := json.Unmarshal(message, &w); err != nil {
		return Presence{}, fmt.Errorf("decode presence: %w", err)
	}
	switch w.Status {
	case Online, Standby, Offline:
	default:
		return Presence{}, fmt.Errorf("decode presence: status %.32q is not online, standby or offline", w.Status)
	}
	for _, s := range []string{w.Session, w.Firmware} {
		if len(s) > maxText || strings.ContainsRune(s, 0) {
			return Presence{}, errors.New("decode presence: session or firmware_version is too long, or holds a NUL")
		}
	}
	p := Presence{Status: w.Status, Session: w.Session, Firmware: w.Firmware}
	// Where no true time is said, the receiver's would be a lie: a last will is written
	// when the connection begins, and what was retained may be old.
	if at := parseTime(w.At); plausible(at, received) {
		p.At = vehicleTime(at, received)
	}
	if w.Capabilities != nil {
		p.Actions = []Action{}
		for _, name := range *w.Capabilities {
			if a, err := ParseAction(name); err == nil && !slices.Contains(p.Actions, a) {
				p.Actions = append(p.Actions, a)
			}
		}
	}
	return p, nil
}

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// parseTime returns the zero time for what is no time: vehicleTime replaces it.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// encode marshals what is built of strings, numbers and checked values only.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("telematics: encode %T: %v", v, err))
	}
	return b
}
