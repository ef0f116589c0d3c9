package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"motorpool/store/activity"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// eventField is the one field of an entry in the stream of events.
const eventField = "e"

// maxValue bounds a value in an event, in bytes of JSON. Reports of one vehicle must fill
// neither Redis, which keeps the last 100,000, nor the buffers of subscribers.
const maxValue = 2 << 10

// eventRow is the JSON of an event. Names are short: there are many.
type eventRow struct {
	Kind     string                    `json:"k"`
	Vehicle  telematics.VehicleID      `json:"v,omitempty"`
	Agency   telematics.AgencyID       `json:"a,omitempty"`
	AtMS     int64                     `json:"t"`
	Command  *eventCommandRow          `json:"c,omitempty"`
	Fields   json.RawMessage           `json:"f,omitempty"` // of a snapshot
	Large    []string                  `json:"l,omitempty"`
	Presence telematics.PresenceStatus `json:"p,omitempty"`
	SeenMS   int64                     `json:"s,omitempty"`
	Alarm    *eventAlarmRow            `json:"al,omitempty"`
	Halt     *eventHaltRow             `json:"h,omitempty"`
	Rental   *eventRentalRow           `json:"r,omitempty"`
	Alert    *eventAlertRow            `json:"at,omitempty"`
}

type eventAlertRow struct {
	ID        string         `json:"id"`
	Change    string         `json:"ch"`
	Rule      string         `json:"r"`
	Severity  string         `json:"s"`
	Plate     string         `json:"p,omitempty"`
	Person    string         `json:"who,omitempty"`
	Booking   int64          `json:"b,omitempty"`
	Command   string         `json:"c,omitempty"`
	Facts     map[string]any `json:"f,omitempty"`
	SinceMS   int64          `json:"si"`
	OpenedMS  int64          `json:"op"`
	ClearedMS int64          `json:"cl,omitempty"`
	SeenBy    string         `json:"sb,omitempty"`
	SeenMS    int64          `json:"sa,omitempty"`
	SeenNote  string         `json:"sn,omitempty"`
}

func newEventAlertRow(a *telematics.AlertChange) *eventAlertRow {
	return &eventAlertRow{
		ID: a.ID, Change: a.Change, Rule: a.Rule, Severity: a.Severity, Plate: a.Plate, Person: a.Person, Booking: a.Booking,
		Command: a.Command, Facts: a.Facts, SinceMS: millis(a.Since), OpenedMS: millis(a.Opened), ClearedMS: millis(a.Cleared),
		SeenBy: a.SeenBy, SeenMS: millis(a.SeenAt), SeenNote: a.SeenNote,
	}
}

func (r eventAlertRow) alert() *telematics.AlertChange {
	return &telematics.AlertChange{
		ID: r.ID, Change: r.Change, Rule: r.Rule, Severity: r.Severity, Plate: r.Plate, Person: r.Person, Booking: r.Booking,
		Command: r.Command, Facts: r.Facts, Since: instantOf(r.SinceMS), Opened: instantOf(r.OpenedMS), Cleared: instantOf(r.ClearedMS),
		SeenBy: r.SeenBy, SeenAt: instantOf(r.SeenMS), SeenNote: r.SeenNote,
	}
}

type eventRentalRow struct {
	Booking    int64           `json:"b"`
	Reference  string          `json:"ref"`
	Status     string          `json:"bs"`
	Transition string          `json:"id"`
	Kind       string          `json:"k"`
	State      string          `json:"s"`
	Step       string          `json:"st"`
	Code       telematics.Code `json:"c,omitempty"`
	NeedsStaff bool            `json:"n,omitempty"`
}

type eventHaltRow struct {
	Why     string `json:"w"`
	By      string `json:"by"`
	SinceMS int64  `json:"s"`
	InForce bool   `json:"on"`
}

type eventAlarmRow struct {
	Kind string `json:"k"`
	Text string `json:"t,omitempty"`
}

// eventCommandRow is the part of a command that subscribers see.
type eventCommandRow struct {
	ID           uuid.UUID           `json:"id"`
	Action       string              `json:"a"`
	Attention    *activity.Attention `json:"p,omitempty"`
	Subject      string              `json:"by"`
	Booking      int64               `json:"b,omitempty"`
	State        string              `json:"s"`
	Reason       string              `json:"r,omitempty"`
	Detail       string              `json:"d,omitempty"`
	Reported     json.RawMessage     `json:"rep,omitempty"`
	Late         bool                `json:"l,omitempty"`
	Contradicted bool                `json:"x,omitempty"`
	Attempts     int                 `json:"n,omitempty"`
	Requested    int64               `json:"req"`
	SentAt       int64               `json:"sent,omitempty"`
	ReceivedAt   int64               `json:"rec,omitempty"`
	Completed    int64               `json:"done,omitempty"`
	Deadline     int64               `json:"end"`
	Published    []int64             `json:"pub,omitempty"` // again, in milliseconds after sent
	Assurance    *int16              `json:"as,omitempty"`  // absent: of a version without it
}

func encodeEvent(e *telematics.Event) ([]byte, error) {
	row := eventRow{Kind: string(e.Kind), Vehicle: e.Vehicle, Agency: e.Agency, AtMS: millis(e.At)}
	if e.Command != nil {
		row.Command = newEventCommandRow(e.Command)
	}
	if e.Change != nil {
		row.Presence, row.SeenMS = e.Change.Presence, millis(e.Change.LastSeen)
		if err := row.addFields(e.Change.Fields); err != nil {
			return nil, err
		}
	}
	if e.Alarm != nil {
		row.Alarm = &eventAlarmRow{Kind: e.Alarm.Kind, Text: e.Alarm.Text}
	}
	if h := e.Halt; h != nil {
		row.Halt = &eventHaltRow{Why: h.Why, By: h.By, SinceMS: millis(h.Since), InForce: h.InForce}
	}
	if e.Rental != nil {
		row.Rental = new(eventRentalRow(*e.Rental))
	}
	if e.Alert != nil {
		row.Alert = newEventAlertRow(e.Alert)
	}
	return json.Marshal(row)
}

func (r *eventRow) addFields(fields telematics.Snapshot) error {
	if fields.Empty() {
		return nil
	}
	small := fields.Without(func(field telematics.Field, reading telematics.Reading) bool {
		is := isLarge(reading.Value)
		if is {
			r.Large = append(r.Large, field.String())
		}
		return is
	})
	var err error
	r.Fields, err = vehicles.EncodeSnapshot(small)
	return err
}

func newEventCommandRow(c *telematics.Command) *eventCommandRow {
	assurance := c.Assurance.Bits()
	row := &eventCommandRow{
		ID: c.ID, Action: string(c.Action), Attention: activity.EncodeAttention(c.Attention), Subject: c.Actor.Subject, Booking: c.Booking,
		State: string(c.State), Reason: c.Reason, Detail: c.Detail, Late: c.Late, Contradicted: c.BestEffort.Contradicted,
		Attempts:  c.Attempts,
		Requested: millis(c.Requested), SentAt: millis(c.SentAt), ReceivedAt: millis(c.ReceivedAt), Completed: millis(c.Completed),
		Deadline: millis(c.Deadline), Assurance: &assurance,
	}
	for _, at := range c.Retransmitted {
		row.Published = append(row.Published, at.Sub(c.SentAt).Milliseconds())
	}
	if c.Reported != nil {
		small := *c.Reported
		small.Values = maps.Clone(small.Values)
		maps.DeleteFunc(small.Values, func(_ telematics.Field, value any) bool { return isLarge(value) })
		row.Reported = v1.EncodeReport(small)
	}
	return row
}

// isLarge reports whether a value is too large for an event, as only lists and objects can be.
func isLarge(value any) bool {
	switch value.(type) {
	case []string, map[string]any:
		text, _ := json.Marshal(value) // of JSON
		return len(text) > maxValue
	}
	return false
}

// decodeEvents returns a reset for an entry that this version of the program cannot decode:
// subscribers must learn that they miss an event.
func decodeEvents(entries []goredis.XMessage) []telematics.Event {
	events := make([]telematics.Event, len(entries))
	for i, entry := range entries {
		text, _ := entry.Values[eventField].(string)
		event, err := decodeEvent(text)
		if err != nil {
			event = telematics.Event{Kind: telematics.ResetEvent, At: time.Now().UTC()}
		}
		event.ID = entry.ID
		events[i] = event
	}
	return events
}

func decodeEvent(text string) (telematics.Event, error) {
	var row eventRow
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return telematics.Event{}, fmt.Errorf("decode event: %w", err)
	}
	e := telematics.Event{Kind: telematics.EventKind(row.Kind), Vehicle: row.Vehicle, Agency: row.Agency, At: instantOf(row.AtMS)}
	switch kind := e.Kind; {
	case kind == telematics.CommandEvent && row.Command != nil:
		command, err := row.Command.command(row.Vehicle, row.Agency)
		e.Command = &command
		return e, err
	case kind == telematics.StatusEvent, kind == telematics.PresenceEvent:
		fields, err := vehicles.DecodeSnapshot(row.Fields)
		e.Change = &telematics.Change{
			Vehicle: row.Vehicle, Agency: row.Agency, Fields: fields, Large: row.Large, Presence: row.Presence,
			LastSeen: instantOf(row.SeenMS),
		}
		return e, err
	case kind == telematics.AlarmEvent && row.Alarm != nil:
		e.Alarm = &telematics.Alarm{Kind: row.Alarm.Kind, Text: row.Alarm.Text}
	case kind == telematics.HaltEvent && row.Halt != nil:
		e.Halt = &telematics.HaltChange{InForce: row.Halt.InForce, Halt: telematics.Halt{
			Agency: row.Agency, Why: row.Halt.Why, By: row.Halt.By, Since: instantOf(row.Halt.SinceMS),
		}}
	case (kind == telematics.RentalEvent || kind == telematics.BookingEvent) && row.Rental != nil:
		e.Rental = new(telematics.RentalChange(*row.Rental))
	case kind == telematics.AlertEvent && row.Alert != nil:
		e.Alert = row.Alert.alert()
	case kind == telematics.ResetEvent:
	default:
		return e, fmt.Errorf("decode event: unknown kind %.32q, or what it is about is not in it", row.Kind)
	}
	return e, nil
}

func (r eventCommandRow) command(vehicle telematics.VehicleID, agency telematics.AgencyID) (telematics.Command, error) {
	c := telematics.Command{
		ID: r.ID, Vehicle: vehicle, Agency: agency, Action: telematics.Action(r.Action), Actor: telematics.Actor{Subject: r.Subject},
		Booking: r.Booking,
		State:   telematics.State(r.State), Reason: r.Reason, Detail: r.Detail, Late: r.Late,
		BestEffort: telematics.BestEffort{Contradicted: r.Contradicted}, Attempts: r.Attempts,
		Requested: instantOf(r.Requested), SentAt: instantOf(r.SentAt), ReceivedAt: instantOf(r.ReceivedAt),
		Completed: instantOf(r.Completed), Deadline: instantOf(r.Deadline), Assurance: telematics.PromisesOf(r.Assurance),
	}
	if r.Attention != nil {
		c.Attention = &telematics.Attention{
			Signal:   telematics.Signal(r.Attention.Signal),
			Duration: time.Duration(r.Attention.DurationMS) * time.Millisecond,
		}
	}
	for _, offset := range r.Published {
		c.Retransmitted = append(c.Retransmitted, c.SentAt.Add(time.Duration(offset)*time.Millisecond))
	}
	if len(r.Reported) == 0 {
		return c, nil
	}
	reported, _, err := v1.RereadReport(r.Reported, time.Now())
	if err == nil {
		c.Reported = &reported
	}
	return c, err
}

// millis returns a time in milliseconds since the epoch; zero: never.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instantOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
