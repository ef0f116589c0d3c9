package store

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"motorpool/telematics"
)

func TestASectionIsReadAsItWasWritten(t *testing.T) {
	at := time.UnixMilli(1767348000250).UTC()
	earlier := at.Add(-time.Minute)
	for name, s := range map[string]telematics.Snapshot{
		"of one report": {telematics.SpeedKmh: {Value: 48.5, At: at}, telematics.IsLocked: {Value: true, At: at}},
		"of several": {
			telematics.SpeedKmh: {Value: 0.0, At: at}, telematics.MileageKm: {Value: 1e-7, At: earlier},
			telematics.KeyStatus: {At: at, Once: true}, telematics.Gear: {Value: "D", At: earlier}, telematics.DoorTrunk: {Value: "open", At: earlier.Add(time.Millisecond)},
		},
		"location":    {telematics.Latitude: {Value: -48.137154321, At: at}, telematics.LocatedAt: {Value: earlier, At: at}},
		"lists":       {telematics.DTCs: {Value: []string{"P0420"}, At: at}, telematics.WarningLamps: {Value: []string{}, At: at}, telematics.ServiceDueKm: {Value: -200.0, At: at}},
		"texts":       {telematics.Firmware: {Value: "4.2 \"β\" \\ <\u2028>", At: at}},
		"raw beside":  {telematics.OEMData: {Value: map[string]any{"a": 1e300, "": []any{nil, "x"}}, At: at}, telematics.RawDTCs: {Value: []string{"0x1"}, At: earlier}},
		"only nulls":  {telematics.OEMData: {At: at}},
		"raw without": {telematics.RawCharging: {Value: "plugged_in", At: at}},
	} {
		t.Run(name, func(t *testing.T) {
			sections := sectionsIn(s)
			if len(sections) != 1 {
				t.Fatalf("sections %v, want one", sections)
			}
			row, err := encodeSection(sections[0], s)
			if err != nil || !json.Valid(row) {
				t.Fatalf("%s: %v", row, err)
			}
			got, err := decodeSection(sections[0], string(row))
			if err != nil || !reflect.DeepEqual(got, s) {
				t.Errorf("%s\n got %v, %v\nwant %v", row, got, err, s)
			}
		})
	}
}
