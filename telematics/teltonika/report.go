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

// zeroIsUnknown treats zero as no value: a CAN adapter sends zero until it has read one, also after
// each of its restarts. A tank or a battery that is empty keeps its last value.
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
	{"89", telematics.FuelLevel, zeroIsUnknown(divideBy(1))},     // CAN adapter
	{"48", telematics.FuelLevel, zeroIsUnknown(divideBy(1))},     // OBD
	{"152", telematics.Battery, zeroIsUnknown(divideBy(1))},      // CAN adapter
	{"411", telematics.Battery, zeroIsUnknown(divideBy(1))},      // OBD
	{"57", telematics.Battery, zeroIsUnknown(divideBy(1))},       // OBD, standard
	{"304", telematics.RangeKm, zeroIsUnknown(divideBy(1000))},   // CAN adapter, m
	{"755", telematics.RangeKm, zeroIsUnknown(divideBy(1))},      // OBD, km
	{"66", telematics.OnboardV, divideBy(1000)},                  // mV
	{"402", telematics.ServiceDueKm, zeroIsUnknown(divideBy(1))}, // OBD, km
	{lockElement, telematics.IsLocked, zeroOrOne(false, true)},
	{"900", telematics.EngineRuns, zeroOrOne(false, true)},
	{"36", telematics.EngineRuns, func(rpm float64) any { return rpm > 0 }},
	{"653", telematics.ParkBrake, zeroOrOne("released", "engaged")},
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
}

// gears are flags: one that is set is the gear.
var gears = []struct{ id, gear string }{{"660", "P"}, {"661", "R"}, {"659", "N"}, {"927", "D"}}

// vehicleSpeeds are the speeds of a CAN adapter and of OBD, in km/h.
var vehicleSpeeds = []string{"81", "37"}

// Flags of the charging state.
const (
	plugElement   = "914"
	chargeElement = "915"
)

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
// while offline. If it is not plausible, the values are dropped: they could replace newer ones. An
// alarm counts in any case: who cuts a unit's power may reset its clock, too.
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
	d.alarm()
	at, ok := d.time()
	if !ok || !telematics.IsPlausible(at, received) {
		d.drop(
			"ts", telematics.WrongTime,
			"not a time in milliseconds, before 2020, or more than 5 minutes ahead; the values were not taken",
		)
		d.dropped[len(d.dropped)-1].Said = at
		return d.report, d.dropped, nil
	}
	d.report.At = telematics.VehicleTime(at, received)
	d.elements()
	fixed := d.position()
	d.speed(fixed)
	d.gear()
	d.charging()
	d.troubleCodes()
	d.own()
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
	parsed, err := f.Parse(raw)
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

// speed prefers the vehicle's speed. A zero of a CAN adapter that has read nothing yet does not
// count while the satellites show movement, and the unit does not sense that there is none. The
// satellites' speed is zero without a fix: if the unit then senses movement, the speed is reported
// as unknown.
func (d *recordDecoder) speed(fixed bool) {
	var satellites []string
	if fixed {
		satellites = []string{"24", "sp"}
	}
	senses, sensed := d.number("240")
	moving := (!sensed || senses != 0) && slices.ContainsFunc(satellites, func(id string) bool {
		n, ok := d.number(id)
		return ok && n > telematics.MovingKmh
	})
	for _, id := range append(slices.Clone(vehicleSpeeds), satellites...) {
		if n, ok := d.number(id); ok && (n != 0 || !moving) {
			d.set(id, telematics.SpeedKmh, n)
		}
		if _, has := d.report.Values[telematics.SpeedKmh]; has {
			return
		}
	}
	if senses == 1 {
		d.report.Values[telematics.SpeedKmh] = nil
	}
}

// flag returns whether a flag is set; ok is false if it is missing, or neither 0 nor 1, which is
// listed.
func (d *recordDecoder) flag(id string) (set, ok bool) {
	n, ok := d.number(id)
	if ok && n != 0 && n != 1 {
		d.drop(id, telematics.UnknownWord, "want 0 or 1")
		return false, false
	}
	return n == 1, ok
}

// gear reads the flags of the gears. Without one that is set, the gear is no longer known.
func (d *recordDecoder) gear() {
	for _, g := range gears {
		set, ok := d.flag(g.id)
		if _, earlier := d.report.Values[telematics.Gear]; ok && !earlier {
			d.report.Values[telematics.Gear] = nil
		}
		if set {
			d.report.Values[telematics.Gear] = g.gear
			return
		}
	}
}

// charging reads whether the vehicle charges, and whether it is plugged in. The interface has no
// word for plugged in and not charging, and none for not charging alone.
func (d *recordDecoder) charging() {
	charges, said := d.flag(chargeElement)
	plugged, plug := d.flag(plugElement)
	var state, raw any
	switch {
	case charges:
		state = "charging"
	case plug && !plugged:
		state = "disconnected"
	case plug:
		raw = "plugged"
	case !said:
		return
	}
	d.report.Values[telematics.Charging], d.report.Values[telematics.RawCharging] = state, raw
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
	add(plugElement)
	add(chargeElement)
	for _, g := range gears {
		add(g.id)
	}
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
