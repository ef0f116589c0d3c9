package store

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/telematics"
)

func TestAnEntryThatCannotBeReadIsAReset(t *testing.T) {
	for _, text := range []any{
		nil, 7, "", "{", `{"k":"command"}`, `{"k":"of a newer version"}`, `{"k":"command","c":{"id":"x"}}`, `{"k":"status","v":"x"}`,
	} {
		events := decodeEvents([]redis.XMessage{{ID: "1-0", Values: map[string]any{"e": text}}})
		if len(events) != 1 || events[0].Kind != telematics.ResetEvent || events[0].ID != "1-0" {
			t.Errorf("%v is read as %+v", text, events)
		}
	}
}

func TestAFieldOfANewerVersionIsLeftOut(t *testing.T) {
	events := decodeEvents([]redis.XMessage{{ID: "1-0", Values: map[string]any{
		"e": `{"k":"status","v":42,"a":1,"t":1767348000000,"f":{"telemetry.speed_kmh":{"v":50,"at":1767348000000},"telemetry.warp":{"v":9,"at":1767348000000}}}`,
	}}})
	if fields := events[0].Change.Fields; events[0].Kind != telematics.StatusEvent || len(fields) != 1 || *fields.Number(telematics.SpeedKmh) != 50 {
		t.Errorf("read as %+v", events[0])
	}
}

func TestAnEventIsSmallWhateverTheVehicleSays(t *testing.T) {
	at := time.Now().UTC().Truncate(time.Millisecond)
	fields := telematics.Snapshot{
		telematics.SpeedKmh: {Value: 50.0, At: at},
		telematics.OEMData:  {Value: map[string]any{"x": strings.Repeat("x", 60<<10)}, At: at},
	}
	text, err := encodeEvent(&telematics.Event{Kind: telematics.StatusEvent, Vehicle: 42, At: at, Change: &telematics.Change{Vehicle: 42, Fields: fields}})
	if err != nil || len(text) > 4<<10 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	event, err := decodeEvent(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if *event.Change.Fields.Number(telematics.SpeedKmh) != 50 || !reflect.DeepEqual(event.Change.Large, []telematics.Field{telematics.OEMData}) {
		t.Errorf("read as %+v", event.Change)
	}
}
