package dialects

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
	v1 "motorpool/telematics/v1"
)

// sign is how a unit says that a field has no value, another value than before, or zero: after a
// message with a value comes one with the sign, and the state has what is wanted.
type sign struct {
	before, sign string
	want         any // nil: no longer known
}

// before stands for the value before the sign.
type before struct{}

// dialectSigns are the signs of a field by dialect. A dialect without any never reports the field.
type dialectSigns struct{ v1, ovms, teltonika []sign }

// null returns the signs of protocol v1, where null always means no longer known and zero is a
// value: given are the value and the zero as JSON, if the field has one.
func null(value, zero string) []sign {
	signs := []sign{{value, "null", nil}}
	if zero != "" {
		signs = append(signs, sign{value, zero, 0.0})
	}
	return signs
}

// flag returns the signs of a metric of OVMS that is yes or no. It has no word for unknown, and the
// firmware sends no empty one: that is what is left when the retained message is cleared.
func flag(metric string, yes, no any) []sign {
	return []sign{{metric + " yes", metric + " no", no}, {metric + " no", metric + " yes", yes}, {metric + " yes", metric + " ", before{}}}
}

// measure returns the signs of a number of OVMS.
func measure(metric string) []sign {
	return []sign{
		{metric + " 12", metric + " nan", nil},
		{metric + " 12", metric + " -nan", nil},
		{metric + " 12", metric + " inf", nil},
		{metric + " 12", metric + " 0", 0.0},
		{metric + " 12", metric + " ", before{}},
	}
}

// zeroed returns the signs of an element of Teltonika's whose zero means that nothing was read.
func zeroed(elements ...string) (signs []sign) {
	for _, id := range elements {
		signs = append(signs, sign{q(id, 61), q(id, 0), before{}})
	}
	return signs
}

// door returns the signs of a door of Teltonika's: its flag, and its bit of element 90.
func door(id string, bit int) []sign {
	return []sign{{q(id, 1), q(id, 0), "closed"}, {q("90", bit), q("90", 0), "closed"}, {q(id, 1), `"240":0`, before{}}}
}

func q(id string, value int) string { return fmt.Sprintf("%q:%d", id, value) }

const fix = `"latlng":"48.1,11.5","sat":7,`

var noFix = []sign{
	{fix + `"ang":90`, `"latlng":"0.0000000,0.0000000","sat":0,"ang":0`, before{}},
	{fix + `"ang":90`, `"latlng":"0,0","sat":5,"ang":0`, before{}},
	{fix + `"ang":90`, `"latlng":"48.2,11.6","sat":0,"ang":0`, before{}},
}

// v1Position returns the signs of a position of v1, which comes as a whole.
func v1Position() []sign {
	const here = `{"latitude":48.1,"longitude":11.5}`
	return []sign{
		{here, `{"latitude":null,"longitude":null}`, nil},
		{here, "null", nil},
		{here, `{"latitude":0,"longitude":0}`, before{}},
		{here, `{"latitude":0.0,"longitude":-0}`, before{}},
		{here, `{"latitude":0}`, before{}},
	}
}

// signs is the table of all fields. docs/protocol.md, ovms.md and teltonika.md say the same in
// words.
var signs = map[telematics.Field]dialectSigns{
	telematics.Latitude: {
		v1Position(),
		[]sign{{"v/p/latitude 48.1", "v/p/latitude 0.000000", before{}}, {"v/p/latitude 48.1", "v/p/latitude ", before{}}},
		noFix,
	},
	telematics.Longitude: {
		v1Position(),
		[]sign{{"v/p/longitude 11.5", "v/p/longitude 0.000000", before{}}, {"v/p/longitude 11.5", "v/p/longitude ", before{}}},
		noFix,
	},
	telematics.LocatedAt: {
		v1Position(), []sign{{"v/p/gpstime 2026-01-02 09:59:00 UTC", "v/p/gpstime 1970-01-01 00:00:00 UTC", before{}}},
		noFix,
	},
	telematics.Heading: {null("90", "0"), measure("v/p/direction"), noFix},
	telematics.SpeedKmh: {
		null("50", "0"), measure("v/p/speed"),
		[]sign{
			{
				`"81":50`, `"81":0`, 0.0,
			},
			{`"37":50`, `"37":0`, 0.0},
			{fix + `"24":50`, fix + `"24":0`, 0.0},
			{fix + `"sp":50`, fix + `"sp":0`, 0.0},
			{
				`"81":50`, `"240":1`, nil,
			},
			{`"81":50`, `"240":0`, before{}},
			{`"81":50`, fix + `"81":0,"37":0,"24":80`, 80.0},
			{`"81":50`, fix + `"81":0,"sp":80,"240":1`, 80.0},
			{`"81":50`, fix + `"81":0,"24":80,"240":0`, 0.0},
			{`"81":50`, fix + `"81":0,"24":3`, 0.0},
		},
	},
	telematics.MileageKm: {null("50", "0"), measure("v/p/odometer"), append(zeroed("87", "389", "105"), sign{`"16":61`, `"16":0`, 0.0})},
	telematics.Ignition:  {null(`"on"`, ""), flag("v/e/on", "on", "off"), []sign{{`"239":1`, `"239":0`, "off"}}},
	telematics.Gear: {
		null(`"P"`, ""), []sign{{"v/e/gear 1", "v/e/gear 0", "N"}, {"v/e/gear 1", "v/e/gear ", before{}}},
		[]sign{
			{
				`"660":1`, `"660":0,"661":0,"659":0`, nil,
			},
			{`"660":1`, `"660":0`, nil},
			{`"661":1`, `"661":0`, nil},
			{`"659":1`, `"659":0`, nil},
			{`"927":1`, `"927":0`, nil},
			{`"660":1`, `"660":0,"927":1`, "D"},
			{`"660":1`, `"239":1`, before{}},
		},
	},
	telematics.ParkBrake: {null(`"engaged"`, ""), flag("v/e/handbrake", "engaged", "released"), []sign{{`"653":1`, `"653":0`, "released"}}},
	telematics.FuelLevel: {null("61", "0"), nil, append(zeroed("89", "48"), sign{`"89":61`, `"89":0,"152":0,"304":0`, before{}})},
	telematics.Battery: {
		null("61", "0"), measure("v/b/soc"),
		append(zeroed("152", "411", "57"), sign{`"152":61`, `"89":0,"152":0,"304":0`, before{}}),
	},
	telematics.RangeKm: {
		null("61", "0"), measure("v/b/range/est"),
		append(zeroed("304", "755"), sign{`"304":61000`, `"89":0,"152":0,"304":0`, before{}}),
	},
	telematics.Charging: {
		null(`"charging"`, ""),
		[]sign{
			{
				"v/c/state charging", "v/c/state ", nil,
			},
			{"v/c/state topoff", "v/c/state ", nil},
			{"v/c/state charging", "v/c/state done", nil},
			{"v/c/state charging", "v/c/state stopped", nil},
		},
		[]sign{
			{
				`"915":1`, `"915":0`, nil,
			},
			{`"915":1,"914":1`, `"915":0,"914":1`, nil},
			{`"915":1,"914":1`, `"915":0,"914":0`, "disconnected"},
			{`"915":1`, `"914":1`, nil},
			{`"914":0`, `"914":1`, nil},
			{`"915":1`, `"239":1`, before{}},
		},
	},
	telematics.RawCharging: {
		[]sign{{`"paused"`, "null", nil}, {`"paused"`, `"charging"`, nil}},
		[]sign{{"v/c/state done", "v/c/state ", nil}, {"v/c/state done", "v/c/state charging", nil}},
		[]sign{{`"914":1`, `"914":0`, nil}, {`"914":1`, `"915":1`, nil}, {`"914":1`, `"915":0`, nil}},
	},
	telematics.OnboardV:   {null("12", "0"), measure("v/b/12v/voltage"), []sign{{`"66":12000`, `"66":0`, 0.0}}},
	telematics.IsLocked:   {null("true", ""), flag("v/e/locked", true, false), []sign{{`"662":1`, `"662":0`, false}}},
	telematics.EngineRuns: {null("true", ""), nil, []sign{{`"900":1`, `"900":0`, false}, {`"36":800`, `"36":0`, false}}},
	telematics.Sunroof:    {null(`"open"`, ""), nil, nil},
	telematics.KeyStatus:  {null(`"in"`, ""), nil, nil},

	telematics.DoorFrontLeft:  {null(`"open"`, ""), flag("v/d/fl", "open", "closed"), door("654", 0x100)},
	telematics.DoorFrontRight: {null(`"open"`, ""), flag("v/d/fr", "open", "closed"), door("655", 0x200)},
	telematics.DoorRearLeft:   {null(`"open"`, ""), flag("v/d/rl", "open", "closed"), door("656", 0x400)},
	telematics.DoorRearRight:  {null(`"open"`, ""), flag("v/d/rr", "open", "closed"), door("657", 0x800)},
	telematics.DoorTrunk:      {null(`"open"`, ""), flag("v/d/trunk", "open", "closed"), door("658", 0x2000)},

	telematics.WindowFrontLeft:   {null(`"open"`, ""), nil, nil},
	telematics.WindowFrontRight:  {null(`"open"`, ""), nil, nil},
	telematics.WindowRearLeft:    {null(`"open"`, ""), nil, nil},
	telematics.WindowRearRight:   {null(`"open"`, ""), nil, nil},
	telematics.SeatbeltDriver:    {null(`"fastened"`, ""), nil, nil},
	telematics.SeatbeltPassenger: {null(`"fastened"`, ""), nil, nil},

	telematics.DTCs: {
		append(null(`["P0420"]`, ""), sign{`["P0420"]`, "[]", []string{}}), nil,
		[]sign{
			{
				`"281":"P0420"`, `"281":""`, []string{},
			},
			{`"282":"P0420"`, `"282":""`, []string{}},
			{`"281":"P0420"`, `"30":0`, []string{}},
			{`"281":"P0420"`, `"160":0`, []string{}},
			{`"281":"P0420"`, `"30":1`, before{}},
		},
	},
	telematics.RawDTCs: {
		[]sign{{`["X1"]`, "null", nil}, {`["X1"]`, "[]", nil}}, nil,
		[]sign{{`"281":"X1"`, `"281":""`, nil}, {`"281":"X1"`, `"30":0`, nil}},
	},
	telematics.ServiceDueKm: {null("61", "0"), measure("v/e/serv/range"), zeroed("402")},
	telematics.OilLife:      {null("61", "0"), nil, nil},
	telematics.WarningLamps: {append(null(`["abs"]`, ""), sign{`["abs"]`, "[]", []string{}}), nil, nil},
	telematics.RSRP:         {null("-90", ""), nil, nil},
	telematics.Firmware:     {null(`"1.2"`, ""), []sign{{"m/version 1.2", "m/version ", before{}}}, nil},
	telematics.OEMData: {
		append(null(`{"a":1}`, ""), sign{`{"a":1}`, "{}", map[string]any{}}), []sign{{"v/type NL", "v/type ", nil}},
		[]sign{{`"21":4`, `"21":0`, map[string]any{"gsm_signal": 0.0}}, {`"21":4`, `"239":1`, before{}}},
	},
}

func TestSigns_FieldWithoutAValueNowHasNone(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	read := func(d telematics.Dialect, subject, payload string, at time.Time) telematics.Report {
		r, _, err := d.DecodeReport(telematics.Message{Dialect: d, Unit: "u", Subject: subject, Payload: []byte(payload)}, at)
		if err != nil {
			return telematics.Report{At: at} // it is no report
		}
		return r
	}
	decoders := map[telematics.Protocol]func(telematics.Field, string, time.Time) telematics.Report{
		telematics.DefaultProtocol: func(f telematics.Field, text string, at time.Time) telematics.Report {
			return read(v1.Dialect{}, "", v1Message(t, f, text, at), at)
		},
		ovms.Protocol: func(_ telematics.Field, text string, at time.Time) telematics.Report {
			metric, value, _ := strings.Cut(text, " ")
			return read(ovms.Dialect{}, "metric/"+metric, value, at)
		},
		teltonika.Protocol: func(_ telematics.Field, text string, at time.Time) telematics.Report {
			return read(teltonika.Dialect{}, "", fmt.Sprintf(`{"state":{"reported":{"ts":%d,%s}}}`, at.UnixMilli(), text), at)
		},
	}
	if len(decoders) != len(Spoken) {
		t.Fatalf("%d protocols have signs, want all: %v", len(decoders), Spoken.Names())
	}
	for _, field := range telematics.Fields {
		row, ok := signs[field]
		if !field.IsOfArrival() && (!ok || len(row.v1) == 0) {
			t.Errorf("%s is missing in the table", field)
		}
		for protocol, list := range map[telematics.Protocol][]sign{
			telematics.DefaultProtocol: row.v1, ovms.Protocol: row.ovms, teltonika.Protocol: row.teltonika,
		} {
			for _, s := range list {
				had := telematics.Merge(nil, decoders[protocol](field, s.before, at))
				has := telematics.Merge(had, decoders[protocol](field, s.sign, at.Add(time.Minute)))
				want := s.want
				if _, same := want.(before); same {
					want = had[field].Value
				}
				if had[field].Value == nil || !reflect.DeepEqual(has.Of(field).Value, want) {
					t.Errorf(
						"%s, %s: %v after %s is %v after %s, want %v", protocol, field, had[field].Value, s.before,
						has.Of(field).Value, s.sign, want,
					)
				}
			}
		}
	}
}

// v1Message returns a report with a value, as JSON, at the place of a field; a position is given as
// a whole, and a raw value at its field's place.
func v1Message(t *testing.T, f telematics.Field, value string, at time.Time) string {
	t.Helper()
	place := map[telematics.Field]string{
		telematics.Latitude: "location", telematics.Longitude: "location", telematics.LocatedAt: "location",
		telematics.RawCharging: telematics.Charging.String(), telematics.RawDTCs: telematics.DTCs.String(),
	}[f]
	if place == "" {
		place = f.String()
	}
	var message any = json.RawMessage(value)
	names := strings.Split(place, ".")
	for i := len(names) - 1; i >= 0; i-- {
		message = map[string]any{names[i]: message}
	}
	message.(map[string]any)["at"] = at
	text, err := json.Marshal(message)
	require.NoError(t, err)
	return string(text)
}
