package teltonika

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
)

type values = map[telematics.Field]any

func TestGoldenRecords_AreDecodedInTheUnitsOfTheInterface(t *testing.T) {
	parked := time.Date(2026, 1, 2, 10, 0, 0, 123e6, time.UTC)
	for file, want := range map[string]telematics.Report{
		"record-parked.json": {At: parked, Values: values{
			telematics.Latitude: 48.1351253, telematics.Longitude: 11.5819806, telematics.LocatedAt: parked, telematics.Heading: 87.0,
			telematics.SpeedKmh: 0.0, telematics.MileageKm: 48213.907, telematics.Ignition: "off", telematics.FuelLevel: 62.0,
			telematics.OnboardV: 12.634, telematics.IsLocked: true,
			telematics.DoorFrontLeft: "closed", telematics.DoorFrontRight: "closed", telematics.DoorRearLeft: "closed",
			telematics.DoorRearRight: "closed", telematics.DoorTrunk: "closed",
			telematics.DTCs: []string{}, telematics.RawDTCs: nil,
			telematics.OEMData: map[string]any{"gsm_signal": 4.0, "movement": 0.0, "dtc_count": 0.0},
		}},
		"record-driving.json": {At: parked.Truncate(time.Second).Add(time.Minute), Values: values{
			telematics.Latitude: 48.1402, telematics.Longitude: 11.5586,
			telematics.LocatedAt: parked.Truncate(time.Second).Add(time.Minute), telematics.Heading: 272.0,
			telematics.SpeedKmh: 47.0, telematics.MileageKm: 48215.107, telematics.Ignition: "on", telematics.FuelLevel: 61.0,
			telematics.OnboardV: 14.211, telematics.IsLocked: false, telematics.EngineRuns: true, telematics.Gear: "D",
			telematics.ParkBrake:     "released",
			telematics.DoorFrontLeft: "open", telematics.DoorFrontRight: "closed", telematics.DoorRearLeft: "closed",
			telematics.DoorRearRight: "closed", telematics.DoorTrunk: "open",
			telematics.DTCs: []string{"P0420", "U0100"}, telematics.RawDTCs: nil,
			telematics.OEMData: map[string]any{"gsm_signal": 3.0, "movement": 1.0, "dtc_count": 2.0},
		}},
		// It moves, and no speed is given: the last speed is no longer valid.
		"record-no-fix.json": {At: parked.Truncate(time.Second).Add(2 * time.Minute), Alarms: []telematics.Alarm{{Kind: "unplugged"}},
			Values: values{
				telematics.SpeedKmh: nil, telematics.MileageKm: 47921.7, telematics.Ignition: "off", telematics.OnboardV: 0.0,
				telematics.OEMData: map[string]any{"gsm_signal": 2.0, "movement": 1.0},
			}},
	} {
		got, dropped, err := (Dialect{}).DecodeReport(message(golden(t, file)), received)
		if err != nil || len(dropped) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is decoded as\n%+v, dropped %v, %v; want\n%+v", file, got, dropped, err, want)
		}
	}
}

// record is a record with a valid time and the given elements.
func record(elements string) telematics.Message {
	return message(fmt.Sprintf(`{"state":{"reported":{"ts":%d%s}}}`, received.UnixMilli(), elements))
}

func TestDecodeReport_InvalidElementsAreDroppedAndUnknownOnesIgnored(t *testing.T) {
	for _, c := range []struct {
		elements string
		want     values
		dropped  []string // ID and fault
	}{
		{``, values{}, nil},
		{`,"9999":7,"x":{"y":[]}`, values{}, nil},
		{`,"239":1`, values{telematics.Ignition: "on"}, nil},
		{`,"239":2`, values{}, []string{"239 word"}},
		{`,"239":true`, values{}, []string{"239 type"}},
		{`,"239":null`, values{}, []string{"239 type"}},
		{`,"89":101,"48":55`, values{telematics.FuelLevel: 55.0}, []string{"89 range"}},
		{`,"66":65535`, values{}, []string{"66 range"}},
		{`,"90":"x"`, values{}, []string{"90 type"}},
		{`,"90":256,"654":0`, values{
			telematics.DoorFrontLeft: "closed", telematics.DoorFrontRight: "closed", telematics.DoorRearLeft: "closed",
			telematics.DoorRearRight: "closed", telematics.DoorTrunk: "closed",
		}, nil},
		// A CAN adapter that does not know the mileage yet reports 0.
		{`,"87":0,"16":2500`, values{telematics.MileageKm: 2.5}, nil},
		{`,"660":0,"661":1`, values{telematics.Gear: "R"}, nil},
		{`,"914":1,"915":0`, values{telematics.Charging: nil, telematics.RawCharging: "plugged"}, nil},
		{`,"914":1,"915":1`, values{telematics.Charging: "charging", telematics.RawCharging: nil}, nil},
		{`,"914":0,"915":0`, values{telematics.Charging: "disconnected", telematics.RawCharging: nil}, nil},
		{`,"281":" p0420 ,X1,","30":2`, values{
			telematics.DTCs: []string{"P0420"}, telematics.RawDTCs: []string{"X1"}, telematics.OEMData: map[string]any{"dtc_count": 2.0},
		}, nil},
		{`,"281":7`, values{}, []string{"281 type"}},
		{`,"30":3`, values{telematics.OEMData: map[string]any{"dtc_count": 3.0}}, nil},
		{`,"latlng":"95,11"`, values{}, []string{"latlng range"}},
		{`,"latlng":"NaN,11"`, values{}, []string{"latlng range"}},
		{`,"latlng":"48.1"`, values{}, []string{"latlng type"}},
		{`,"latlng":48.1`, values{}, []string{"latlng type"}},
		// Without satellites, the last position and a speed of zero are repeated.
		{`,"latlng":"48.1,11.5","sat":0,"sp":0,"24":0,"240":0`, values{telematics.OEMData: map[string]any{"movement": 0.0}}, nil},
		{`,"latlng":"48.1,11.5","sat":7,"ang":361,"sp":12`, values{
			telematics.Latitude: 48.1, telematics.Longitude: 11.5, telematics.LocatedAt: received, telematics.SpeedKmh: 12.0,
		}, []string{"ang range"}},
		{`,"37":30,"240":1`, values{telematics.SpeedKmh: 30.0, telematics.OEMData: map[string]any{"movement": 1.0}}, nil},
	} {
		got, dropped, err := (Dialect{}).DecodeReport(record(c.elements), received)
		var listed []string
		for _, d := range dropped {
			listed = append(listed, d.Field+" "+string(d.Fault))
		}
		if err != nil || !got.At.Equal(received) || !reflect.DeepEqual(got.Values, c.want) || !slices.Equal(listed, c.dropped) {
			t.Errorf("%s: %v, dropped %v, %v; want %v, dropped %v", c.elements, got.Values, listed, err, c.want, c.dropped)
		}
	}
}

func TestDecodeReport_WithoutATimeHasNoValues(t *testing.T) {
	for _, ts := range []string{
		`946684800000`, fmt.Sprint(received.Add(6 * time.Minute).UnixMilli()), `"x"`, `null`, `-1`, `1e300`, `9223372036854775807`,
	} {
		got, dropped, err := (Dialect{}).DecodeReport(message(`{"state":{"reported":{"ts":`+ts+`,"662":1}}}`), received)
		if err != nil || len(got.Values) != 0 || !got.At.Equal(received) || len(dropped) != 1 || dropped[0].Fault != telematics.WrongTime {
			t.Errorf("ts %s: %+v, dropped %v, %v; want no values", ts, got, dropped, err)
		}
	}
}

func TestDecodeReport_StoredRecordChangesNothingNewer(t *testing.T) {
	read := func(at time.Time, locked int) telematics.Report {
		r, _, err := (Dialect{}).DecodeReport(
			message(fmt.Sprintf(`{"state":{"reported":{"ts":%d,"662":%d}}}`, at.UnixMilli(), locked)), received,
		)
		require.NoError(t, err)
		return r
	}
	late := read(received.Add(-time.Hour), 0)
	snapshot := telematics.Merge(telematics.Merge(nil, read(received, 1)), late)
	if locked := snapshot.Flag(telematics.IsLocked); locked == nil || !*locked {
		t.Errorf("after an hour-old record the snapshot is %v, want it unchanged", snapshot)
	}
}

func TestDecodeReport_HasTheAlarmThatCausedIt(t *testing.T) {
	for elements, want := range map[string][]telematics.Alarm{
		`,"evt":246,"246":1`: {{Kind: "towing"}}, `,"evt":247,"247":3`: {{Kind: "crash"}}, `,"evt":249,"249":1`: {{Kind: "jamming"}},
		`,"evt":246,"246":0`: nil, `,"evt":0,"246":1`: nil, `,"evt":239,"239":1`: nil, `,"evt":246`: nil,
	} {
		r, _, err := (Dialect{}).DecodeReport(record(elements), received)
		if err != nil || !reflect.DeepEqual(r.Alarms, want) {
			t.Errorf("%s: alarms %v, %v; want %v", elements, r.Alarms, err, want)
		}
		undated := message(`{"state":{"reported":{"ts":946684800000,"662":1` + elements + `}}}`)
		if r, _, err = (Dialect{}).DecodeReport(undated, received); err != nil || !reflect.DeepEqual(r.Alarms, want) || len(r.Values) > 0 {
			t.Errorf("%s, of 2000: alarms %v, values %v, %v; want %v and no values", elements, r.Alarms, r.Values, err, want)
		}
	}
}

func TestElements_ListsAllDecodedOnes(t *testing.T) {
	ids := Elements()
	for _, id := range []int{16, 21, 24, 30, 37, 66, 81, 87, 90, 239, 240, 246, 281, 662} {
		if !slices.Contains(ids, id) {
			t.Errorf("element %d is missing in %v", id, ids)
		}
	}
}
