package events

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
)

func TestDecodeEvent_UnreadableEntryIsAReset(t *testing.T) {
	for _, text := range []any{
		nil, 7, "", "{", `{"k":"command"}`, `{"k":"of a newer version"}`, `{"k":"command","c":{"id":"x"}}`, `{"k":"status","v":"x"}`,
	} {
		events := decodeEvents([]redis.XMessage{{ID: "1-0", Values: map[string]any{"e": text}}})
		if len(events) != 1 || events[0].Kind != telematics.ResetEvent || events[0].ID != "1-0" {
			t.Errorf("%v is decoded as %+v, want a reset", text, events)
		}
	}
}

func TestDecodeEvent_UnknownFieldIsLeftOut(t *testing.T) {
	events := decodeEvents([]redis.XMessage{{ID: "1-0", Values: map[string]any{
		"e": `{"k":"status","v":42,"a":1,"t":1767348000000,"f":{"telemetry.speed_kmh":{"v":50,"at":1767348000000},` +
			`"telemetry.warp":{"v":9,"at":1767348000000}}}`,
	}}})
	if fields := events[0].Change.Fields; events[0].Kind != telematics.StatusEvent || fields.Len() != 1 ||
		*fields.Number(telematics.SpeedKmh) != 50 {
		t.Errorf("decoded as %+v, want only the speed", events[0])
	}
}

func TestEncodeEvent_LargeValuesAreOnlyNamed(t *testing.T) {
	at := time.Now().UTC().Truncate(time.Millisecond)
	fields := telematics.Snapshot{
		telematics.SpeedKmh: {Value: 50.0, At: at},
		telematics.OEMData:  {Value: map[string]any{"x": strings.Repeat("x", 60<<10)}, At: at},
	}
	text, err := encodeEvent(
		&telematics.Event{Kind: telematics.StatusEvent, Vehicle: 42, At: at, Change: &telematics.Change{Vehicle: 42, Fields: fields}},
	)
	if err != nil || len(text) > 4<<10 {
		t.Fatalf("%d bytes, error %v; want at most 4 KiB", len(text), err)
	}
	event, err := decodeEvent(string(text))
	require.NoError(t, err)
	if *event.Change.Fields.Number(telematics.SpeedKmh) != 50 ||
		!reflect.DeepEqual(event.Change.Large, []string{telematics.OEMData.String()}) {
		t.Errorf("decoded as %+v, want the speed, and the OEM data only named", event.Change)
	}
}

// The result of a command has a report as large as any.
func TestEncodeEvent_LargeValuesOfACommandAreLeftOut(t *testing.T) {
	large := map[string]any{"x": strings.Repeat("x", 60<<10)}
	command := telematics.Command{ID: uuid.New(), Action: telematics.Lock, State: telematics.Succeeded, Reported: &telematics.Report{
		At: time.Now(), Values: map[telematics.Field]any{telematics.IsLocked: true, telematics.OEMData: large},
	}}
	text, err := encodeEvent(&telematics.Event{Kind: telematics.CommandEvent, Vehicle: 42, Command: &command})
	if err != nil || len(text) > 4<<10 {
		t.Fatalf("%d bytes, error %v; want at most 4 KiB", len(text), err)
	}
	event, err := decodeEvent(string(text))
	require.NoError(t, err)
	assert.DeepEqual(t, event.Command.Reported.Values, map[telematics.Field]any{telematics.IsLocked: true}, "reported")
	assert.Equal(t, len(command.Reported.Values), 2, "values of the command, which others read")
}

func TestEncodeEvent_IsReadBackAsWritten(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 250e6, time.UTC)
	command := telematics.Command{
		ID: uuid.New(), Vehicle: 42, Agency: 7, Action: telematics.AttentionSignal,
		Attention: &telematics.Attention{Signal: telematics.Horn, Duration: time.Second},
		Actor: telematics.Actor{
			Subject: "o\"ne\n<ö>",
		},
		Booking: 17, State: telematics.Failed, Reason: "a\\b", Detail: "\u2028", Late: true,
		BestEffort: telematics.BestEffort{Contradicted: true}, Attempts: 3,
		Reported:  &telematics.Report{At: at, Values: map[telematics.Field]any{telematics.IsLocked: true}},
		Requested: at, SentAt: at, ReceivedAt: at, Completed: at, Retransmitted: []time.Time{at.Add(2 * time.Second)},
		Deadline: at.Add(time.Second),
	}
	for name, e := range map[string]telematics.Event{
		"a command": {Kind: telematics.CommandEvent, Vehicle: 42, Agency: 7, At: at, Command: &command},
		"a command just accepted": {Kind: telematics.CommandEvent, Vehicle: 42, At: at, Command: &telematics.Command{
			ID: uuid.New(), Vehicle: 42, Action: telematics.Lock, State: telematics.Accepted, Requested: at, Deadline: at,
		}},
		"a status": {Kind: telematics.StatusEvent, Vehicle: 42, Agency: 7, At: at, Change: &telematics.Change{
			Vehicle: 42, Agency: 7, Fields: telematics.Snapshot{telematics.SpeedKmh: {Value: 50.5, At: at}}.Clone(), LastSeen: at,
		}},
		"a presence": {
			Kind: telematics.PresenceEvent, Vehicle: 42, At: at, Change: &telematics.Change{Vehicle: 42, Presence: telematics.Online},
		},
		"a rental": {Kind: telematics.RentalEvent, Vehicle: 42, Agency: 7, At: at, Rental: &telematics.RentalChange{
			Booking: 17, Reference: "BK-2026-00017", Status: "upcoming", Transition: "t1", Kind: "start", State: "failed", Step: "refund",
			Code: telematics.VehicleOffline, NeedsStaff: true,
		}},
		"a booking": {
			Kind: telematics.BookingEvent, Vehicle: 42, At: at, Rental: &telematics.RentalChange{Booking: 17, Status: "cancelled"},
		},
		"a reset": {Kind: telematics.ResetEvent, At: at},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := encodeEvent(&e)
			require.NoError(t, err)
			decoded, err := decodeEvent(string(text))
			if err != nil || !reflect.DeepEqual(decoded, e) {
				t.Errorf(
					"decoded as %+v %+v %+v, error %v\nwant %+v %+v %+v", decoded, decoded.Change, decoded.Command, err,
					e, e.Change, e.Command,
				)
			}
		})
	}
}
