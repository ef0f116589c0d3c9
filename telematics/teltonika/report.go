package teltonika

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"motorpool/telematics"
)

// lockElement is "SSF Car Is Closed", of a CAN adapter.
const lockElement = "662"

// element maps an AVL element to a field. Of several for one field, the first with a value counts.
type element struct {
	id    string
	field telematics.Field
	read  func(float64) any // returns nil: no value
}

func divideBy(by float64) func(float64) any { return func(n float64) any { return n / by } }

// zeroOrOne maps 0 and 1 to values; any other number is unsound.
func zeroOrOne(zero, one any) func(float64) any {
	return func(n float64) any {
		switch n {
		case 0:
			return zero
		case 1:
			return one
		}
		return unsound{}
	}
}

// unsound stands for a number that the element cannot have.
type unsound struct{}

// door reads a bit of element 90.
func door(bit int) func(float64) any {
	return func(n float64) any {
		if int64(n)&int64(bit) != 0 {
			return "open"
		}
		return "closed"
	}
}

// zeroIsUnknown treats zero as no value: a CAN adapter sends zero until it has one.
func zeroIsUnknown(read func(float64) any) func(float64) any {
	return func(n float64) any {
		if n == 0 {
			return nil
		}
		return read(n)
	}
}

// elements are the elements with a field, by Teltonika's list of AVL ids.
var elements = []element{
	{"239", telematics.Ignition, zeroOrOne("off", "on")},
	{"87", telematics.MileageKm, zeroIsUnknown(divideBy(1000))},  // CAN adapter, m
	{"389", telematics.MileageKm, zeroIsUnknown(divideBy(1))},    // OBD, km
	{"105", telematics.MileageKm, zeroIsUnknown(divideBy(1000))}, // CAN adapter, counted, m
	{"16", telematics.MileageKm, divideBy(1000)},                 // counted by the unit, m
	{"89", telematics.FuelLevel, divideBy(1)},                    // CAN adapter
	{"48", telematics.FuelLevel, divideBy(1)},                    // OBD
	{"152", telematics.Battery, divideBy(1)},                     // CAN adapter
	{"411", telematics.Battery, divideBy(1)},                     // OBD
	{"57", telematics.Battery, divideBy(1)},                      // OBD, standard
	{"304", telematics.RangeKm, divideBy(1000)},                  // CAN adapter, m
	{"755", telematics.RangeKm, divideBy(1)},                     // OBD, km
	{"66", telematics.OnboardV, divideBy(1000)},                  // mV
	{"402", telematics.ServiceDueKm, divideBy(1)},                // OBD, km
	{lockElement, telematics.IsLocked, zeroOrOne(false, true)},
	{"900", telematics.EngineRuns, zeroOrOne(false, true)},
	{"36", telematics.EngineRuns, func(rpm float64) any { return rpm > 0 }},
	{"653", telematics.ParkBrake, zeroOrOne("released", "engaged")},
	{"660", telematics.Gear, zeroOrOne(nil, "P")},
	{"661", telematics.Gear, zeroOrOne(nil, "R")},
	{"659", telematics.Gear, zeroOrOne(nil, "N")},
	{"927", telematics.Gear, zeroOrOne(nil, "D")},
	{"654", telematics.DoorFrontLeft, zeroOrOne("closed", "open")},
	{"655", telematics.DoorFrontRight, zeroOrOne("closed", "open")},
	{"656", telematics.DoorRearLeft, zeroOrOne("closed", "open")},
	{"657", telematics.DoorRearRight, zeroOrOne("closed", "open")},
	{"658", telematics.DoorTrunk, zeroOrOne("closed", "open")},
	{"90", telematics.DoorFrontLeft, door(0x100)},
	{"90", telematics.DoorFrontRight, door(0x200)},
	{"90", telematics.DoorRearLeft, door(0x400)},
	{"90", telematics.DoorRearRight, door(0x800)},
	{"90", telematics.DoorTrunk, door(0x2000)},
	{"915", telematics.Charging, zeroOrOne(nil, "charging")},
	{"914", telematics.Charging, zeroOrOne("disconnected", nil)},
}

// own are elements without a field, with their names in oem_data.
var own = []struct{ id, name string }{{"21", "gsm_signal"}, {"240", "movement"}}

// Elements with the number of trouble codes (OBD, CAN adapter), and with their lists.
var (
	codeCounts = []string{"30", "160"}
	codeLists  = []string{"281", "282"}
)

// alarms are the kinds of alarms, by the element that caused the record.
var alarms = map[string]string{"246": "towing", "247": "crash", "249": "jamming", "252": "unplugged"}

// DecodeReport implements telematics.Dialect. A record has a time, because a unit buffers records
// while offline. If it is not plausible, the values are dropped: they could replace newer ones.
func (Dialect) DecodeReport(m telematics.Message, received time.Time) (telematics.Report, []telematics.Dropped, error) {
	in, err := parse(m)
	if err != nil {
		return telematics.Report{}, nil, err
	}
	if in.State == nil {
		return telematics.Report{}, nil, telematics.ErrOtherKind
	}
	d := recordDecoder{said: in.State.Reported, report: telematics.Report{At: received, Values: map[telematics.Field]any{}}}
	if len(d.said) == 0 {
		return d.report, nil, nil
	}
	at, ok := d.time()
	if !ok || !telematics.IsPlausible(at, received) {
		d.drop("ts", telematics.WrongTime, "not a time in milliseconds, before 2020, or more than 5 minutes ahead; the record was not taken")
		d.dropped[len(d.dropped)-1].Said = at
		return d.report, d.dropped, nil
	}
	d.report.At = telematics.VehicleTime(at, received)
	d.elements()
	fixed := d.position()
	d.speed(fixed)
	d.charging()
	d.troubleCodes()
	d.own()
	d.alarm()
	return d.report, d.dropped, nil
}

type recordDecoder struct {
	said    map[string]json.RawMessage
	report  telematics.Report
	dropped []telematics.Dropped
}

func (d *recordDecoder) drop(id string, fault telematics.Fault, reason string) {
	d.dropped = append(d.dropped, telematics.Dropped{Field: id, Fault: fault, Reason: reason})
}

func (d *recordDecoder) time() (time.Time, bool) {
	n, err := number(d.said["ts"])
	// Beyond these bounds an int64 of nanoseconds overflows.
	if err != nil || n < 0 || n > math.MaxInt64/1e6 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(n)), true
}

var errNoNumber = errors.New("not a number")

// number reads a JSON number, also as text: firmware differs.
func number(raw json.RawMessage) (float64, error) {
	text := string(raw)
	if unquoted, err := telematics.ParseText(raw); err == nil {
		text = unquoted
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, errNoNumber
	}
	return n, nil
}

// number returns an element's value, or false if it is missing, or no number, which is listed.
func (d *recordDecoder) number(id string) (float64, bool) {
	raw, ok := d.said[id]
	if !ok {
		return 0, false
	}
	n, err := number(raw)
	if err != nil {
		d.drop(id, telematics.WrongType, err.Error())
		delete(d.said, id) // listed once
		return 0, false
	}
	return n, true
}

func (d *recordDecoder) elements() {
	for _, e := range elements {
		if _, has := d.report.Values[e.field]; has {
			continue
		}
		if n, ok := d.number(e.id); ok {
			d.set(e.id, e.field, e.read(n))
		}
	}
}

// set sets a field, if the value is valid for it; nil is no value.
func (d *recordDecoder) set(id string, f telematics.Field, value any) {
	if value == nil {
		return
	}
	if _, is := value.(unsound); is {
		d.drop(id, telematics.UnknownWord, "want 0 or 1")
		return
	}
	raw, err := json.Marshal(value)
	if err != nil {
		d.drop(id, telematics.WrongType, err.Error())
		return
	}
	parsed, err := f.Parser()(raw)
	if err != nil {
		d.drop(id, telematics.FaultOf(err), err.Error())
		return
	}
	d.report.Values[f] = parsed
}

// position reads latlng, and reports whether it is a satellite fix. Without a fix the unit repeats
// the last position, or 0,0.
func (d *recordDecoder) position() (fixed bool) {
	raw, ok := d.said["latlng"]
	if !ok {
		return false
	}
	text, err := telematics.ParseText(raw)
	if err != nil {
		d.drop("latlng", telematics.WrongType, err.Error())
		return false
	}
	first, second, _ := strings.Cut(text, ",")
	latitude, errLat := strconv.ParseFloat(strings.TrimSpace(first), 64)
	longitude, errLng := strconv.ParseFloat(strings.TrimSpace(second), 64)
	switch {
	case errLat != nil || errLng != nil:
		d.drop("latlng", telematics.WrongType, "want latitude,longitude")
		return false
	case !(math.Abs(latitude) <= 90 && math.Abs(longitude) <= 180):
		d.drop("latlng", telematics.OutOfRange, "outside 90 by 180 degrees")
		return false
	case latitude == 0 && longitude == 0:
		return false
	}
	if satellites, counted := d.number("sat"); counted && satellites == 0 {
		return false
	}
	values := d.report.Values
	values[telematics.Latitude], values[telematics.Longitude], values[telematics.LocatedAt] = latitude, longitude, d.report.At
	if heading, ok := d.number("ang"); ok {
		d.set("ang", telematics.Heading, heading)
	}
	return true
}

// speed prefers the vehicle's speed. That of the satellites is zero without a fix: if the unit then
// senses movement, the speed is reported as unknown.
func (d *recordDecoder) speed(fixed bool) {
	ids := []string{"81", "37"} // CAN adapter, OBD; km/h
	if fixed {
		ids = append(ids, "24", "sp")
	}
	for _, id := range ids {
		if n, ok := d.number(id); ok {
			d.set(id, telematics.SpeedKmh, n)
		}
		if _, has := d.report.Values[telematics.SpeedKmh]; has {
			return
		}
	}
	if moves, ok := d.number("240"); ok && moves == 1 {
		d.report.Values[telematics.SpeedKmh] = nil
	}
}

// charging reports the state that the interface has no word for: plugged in, and not charging.
func (d *recordDecoder) charging() {
	if _, has := d.report.Values[telematics.Charging]; has {
		d.report.Values[telematics.RawCharging] = nil
		return
	}
	if plugged, ok := d.number("914"); ok && plugged == 1 {
		d.report.Values[telematics.Charging], d.report.Values[telematics.RawCharging] = nil, "plugged"
	}
}

// troubleCodes reads the list of codes; without one, a count of zero is an empty list.
func (d *recordDecoder) troubleCodes() {
	for _, id := range codeLists {
		raw, ok := d.said[id]
		if !ok {
			continue
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			d.drop(id, telematics.WrongType, "not a string")
			continue
		}
		d.codes(id, text)
		return
	}
	for _, id := range codeCounts {
		if n, ok := d.number(id); ok && n == 0 {
			d.report.Values[telematics.DTCs], d.report.Values[telematics.RawDTCs] = []string{}, nil
			return
		}
	}
}

func (d *recordDecoder) codes(id, text string) {
	standard, raw := []string{}, []string{}
	for code := range strings.SplitSeq(text, ",") {
		code = strings.ToUpper(strings.TrimSpace(code))
		switch {
		case code == "":
		case telematics.IsDTC(code):
			standard = append(standard, code)
		case telematics.IsText(code):
			raw = append(raw, code)
		}
	}
	if len(standard) > telematics.MaxTexts || len(raw) > telematics.MaxTexts {
		d.drop(id, telematics.OutOfRange, "too many codes")
		return
	}
	d.report.Values[telematics.DTCs], d.report.Values[telematics.RawDTCs] = standard, nil
	if len(raw) > 0 {
		d.report.Values[telematics.RawDTCs] = raw
	}
}

// own reads the elements that the interface has no field for.
func (d *recordDecoder) own() {
	data := map[string]any{}
	for _, o := range own {
		if n, ok := d.number(o.id); ok {
			data[o.name] = n
		}
	}
	for _, id := range codeCounts {
		if n, ok := d.number(id); ok {
			data["dtc_count"] = n
			break
		}
	}
	if len(data) > 0 {
		d.report.Values[telematics.OEMData] = data
	}
}

func (d *recordDecoder) alarm() {
	event, ok := d.number("evt")
	if !ok {
		return
	}
	id := strconv.FormatFloat(event, 'f', -1, 64)
	kind, known := alarms[id]
	if value, ok := d.number(id); known && ok && value != 0 {
		d.report.Alarms = append(d.report.Alarms, telematics.Alarm{Kind: kind})
	}
}

// Elements lists the AVL ids that are read, in ascending order. They must be enabled in the unit.
func Elements() []int {
	ids := map[int]bool{24: true, 37: true, 81: true}
	add := func(id string) { ids[atoi(id)] = true }
	for _, e := range elements {
		add(e.id)
	}
	for _, o := range own {
		add(o.id)
	}
	for _, id := range slices.Concat(codeCounts, codeLists) {
		add(id)
	}
	for id := range alarms {
		add(id)
	}
	return slices.Sorted(maps.Keys(ids))
}
