package telematics

import (
	"encoding/json"
	"strings"
	"time"
)

// Dropped is a part of a message that was not taken, and why [TEL-4].
type Dropped struct {
	Field  string
	Fault  Fault // empty: of another kind, such as half a position
	Reason string
}

// kept is how many fields a report may have more than it says: two in the raw, and when the position was.
const kept = 3

// DecodeReport reads a report that arrived at the instant received. Fields that
// are unsound are left out and listed; fields that this version does not know are
// ignored. An error means that nothing of it can be used.
func DecodeReport(message []byte, received time.Time) (Report, []Dropped, error) {
	if len(message) > MaxMessage {
		return Report{}, nil, errTooLarge
	}
	return RereadReport(message, received)
}

// RereadReport reads a stored report. It has no size limit: the store
// may write numbers and spaces longer than the unit did.
func RereadReport(message []byte, received time.Time) (Report, []Dropped, error) {
	scan, err := newScan(message)
	if err != nil {
		return Report{}, nil, err
	}
	defer scan.close()
	d := reportDecoder{report: Report{Values: make(map[Field]any, scan.count+kept)}}
	d.time(scan.said[atPlace.index], received)
	for i, raw := range scan.said {
		if raw != nil {
			d.place(outline[i], raw)
		}
	}
	d.foldGear()
	d.foldCharging()
	d.foldDTCs()
	d.pairPosition()
	d.answers(scan, received)
	return d.report, d.dropped, nil
}

type reportDecoder struct {
	report  Report
	unsound map[Field]json.RawMessage // what its field does not take
	dropped []Dropped
}

func (d *reportDecoder) drop(field, reason string) {
	d.dropped = append(d.dropped, Dropped{Field: field, Reason: reason})
}

func (d *reportDecoder) dropTime(reason string) {
	d.dropped = append(d.dropped, Dropped{Field: "at", Fault: WrongTime, Reason: reason})
}

func (d *reportDecoder) time(raw []byte, received time.Time) {
	s, _ := unquote(raw)
	at := parseTime(s)
	if at.IsZero() {
		d.dropTime("not an ISO 8601 time; the receiver's is taken")
	} else if !plausible(at, received) {
		d.dropTime("more than 5 minutes ahead, or before 2020; the receiver's is taken")
	}
	d.report.At = vehicleTime(at, received)
}

// place takes what is said in a place that is a field, or where an object ought to be.
func (d *reportDecoder) place(p *place, raw []byte) {
	switch {
	case p.parse != nil:
		value, err := p.parse.value(raw)
		if err != nil {
			d.reject(Field(p.path), raw, err)
			return
		}
		d.report.Values[Field(p.path)] = value
	case p.within == nil: // has a separate reader
	case isNull(raw): // null empties everything below it [TEL-1]
		for _, below := range outline[p.index:p.end] {
			if below.parse != nil {
				d.report.Values[Field(below.path)] = nil
			}
		}
	default:
		d.drop(p.path, "not an object")
	}
}

// reject drops a value that its field does not take.
func (d *reportDecoder) reject(f Field, raw []byte, err error) {
	d.dropped = append(d.dropped, Dropped{Field: string(f), Fault: faultOf(err), Reason: err.Error()})
	if d.unsound == nil {
		d.unsound = map[Field]json.RawMessage{}
	}
	d.unsound[f] = raw
}

// foldGear reads every forward gear as D.
func (d *reportDecoder) foldGear() {
	if gear, err := text(d.unsound[Gear]); err == nil && forward(gear.(string)) {
		d.take(Gear, "D")
	}
}

// foldCharging keeps in the raw a charging state that the interface has no word for.
func (d *reportDecoder) foldCharging() {
	if _, ok := d.report.Values[Charging]; ok {
		d.report.Values[RawCharging] = nil
		return
	}
	if raw, err := text(d.unsound[Charging]); err == nil && raw != "" {
		d.take(Charging, nil)
		d.report.Values[RawCharging] = raw
	}
}

// foldDTCs keeps in the raw the codes that are not of the standard's form.
func (d *reportDecoder) foldDTCs() {
	if _, ok := d.report.Values[DTCs]; ok {
		d.report.Values[RawDTCs] = nil
		return
	}
	var codes []json.RawMessage
	if err := json.Unmarshal(d.unsound[DTCs], &codes); err != nil || len(codes) > maxTexts {
		return // dropped before
	}
	standard, raw := []string{}, []string{}
	for _, c := range codes {
		code, err := text(c)
		switch {
		case err != nil || code == "":
		case dtcPattern.MatchString(code.(string)):
			standard = append(standard, code.(string))
		default:
			raw = append(raw, code.(string))
		}
	}
	if len(standard)+len(raw) == 0 {
		return
	}
	d.take(DTCs, standard)
	d.report.Values[RawDTCs] = raw
	if len(standard)+len(raw) < len(codes) {
		d.drop(string(DTCs), "some codes are no text; the others were taken")
	}
}

// take sets a field that was dropped before for its vocabulary.
func (d *reportDecoder) take(f Field, value any) {
	d.report.Values[f] = value
	kept := d.dropped[:0]
	for _, dropped := range d.dropped {
		if dropped.Field != string(f) {
			kept = append(kept, dropped)
		}
	}
	d.dropped = kept
}

// forward reports whether a gear drives forward in another word than D.
func forward(gear string) bool {
	switch strings.ToUpper(gear) {
	case "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "S", "L", "M", "B", "DRIVE":
		return true
	}
	return false
}

// pairPosition keeps latitude and longitude together: half a position is none.
func (d *reportDecoder) pairPosition() {
	values := d.report.Values
	lat, hasLat := values[Latitude]
	lng, hasLng := values[Longitude]
	if hasLat != hasLng || (lat == nil) != (lng == nil) {
		delete(values, Latitude)
		delete(values, Longitude)
		delete(values, LocatedAt)
		d.drop("location", "latitude and longitude only come together")
		return
	}
	if hasLat && lat == nil { // no position, so no time of one; a time alone says that the last one still stands
		values[LocatedAt] = nil
	}
	if at, ok := values[LocatedAt].(time.Time); ok && at.After(d.report.At.Add(MaxAhead)) {
		delete(values, LocatedAt)
		d.drop(string(LocatedAt), "ahead of the report")
	}
	if _, ok := values[LocatedAt]; hasLat && lat != nil && !ok {
		values[LocatedAt] = d.report.At
	}
}

// EncodeReport returns the message that a unit publishes as its telemetry.
func EncodeReport(r Report) []byte {
	values := r.wireValues()
	values["at"] = FormatTime(r.At)
	if len(r.Answers) > 0 {
		list := make([]wireAnswer, len(r.Answers))
		for i, a := range r.Answers {
			list[i] = wireAnswer{Command: a.Command.String(), Status: a.State, At: FormatTime(a.At), Reason: a.Reason, Detail: a.Detail}
		}
		values["commands"] = list
	}
	return nested(values)
}

// Nested returns the reported values as the nested objects that the wire and the
// interface share, in JSON.
func (r Report) Nested() json.RawMessage { return nested(r.wireValues()) }

// wireValues returns the reported values by path, as they are written in JSON.
func (r Report) wireValues() map[string]any {
	values := make(map[string]any, len(r.Values)+2)
	for field, value := range r.Values {
		if field.isRaw() {
			continue
		}
		if at, ok := value.(time.Time); ok {
			value = FormatTime(at)
		}
		values[string(field)] = value
	}
	return values
}
