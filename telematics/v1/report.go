package v1

import (
	"encoding/json"
	"strings"
	"time"

	"motorpool/telematics"
)

// kept is how many fields decoding may add to a report: two raw values, and the time of the
// position.
const kept = 3

// DecodeReport decodes a report that arrived at received. Fields that are not
// valid are left out and listed; fields that this version does not know are
// ignored. An error means that nothing of the report can be used.
func DecodeReport(message []byte, received time.Time) (telematics.Report, []telematics.Dropped, error) {
	if len(message) > telematics.MaxMessage {
		return telematics.Report{}, nil, errTooLarge
	}
	return RereadReport(message, received)
}

// RereadReport decodes a stored report, like DecodeReport but without its size limit: the store may
// write numbers and spaces longer than the unit did. It fails where the message is no JSON object.
func RereadReport(message []byte, received time.Time) (telematics.Report, []telematics.Dropped, error) {
	scan, err := newScan(message)
	if err != nil {
		return telematics.Report{}, nil, err
	}
	defer scan.close()
	d := reportDecoder{report: telematics.Report{Values: make(map[telematics.Field]any, scan.count+kept)}}
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
	report  telematics.Report
	unsound map[telematics.Field]json.RawMessage // values that their parsers refused
	dropped []telematics.Dropped
}

func (d *reportDecoder) drop(field, reason string) {
	d.dropped = append(d.dropped, telematics.Dropped{Field: field, Reason: reason})
}

func (d *reportDecoder) dropTime(said time.Time, reason string) {
	d.dropped = append(d.dropped, telematics.Dropped{Field: "at", Fault: telematics.WrongTime, Reason: reason, Said: said})
}

func (d *reportDecoder) time(raw []byte, received time.Time) {
	s, _ := telematics.ParseText(raw)
	at := parseTime(s)
	if at.IsZero() {
		d.dropTime(at, "not an ISO 8601 time; the receiver's is taken")
	} else if !telematics.IsPlausible(at, received) {
		d.dropTime(at, "more than 5 minutes ahead, or before 2020; the receiver's is taken")
	}
	d.report.At = telematics.VehicleTime(at, received)
}

// place reads the value found at a place: that of a field, or one where an object is expected.
func (d *reportDecoder) place(p *place, raw []byte) {
	switch {
	case p.field != 0:
		value, err := p.field.Parse(raw)
		if err != nil {
			d.reject(p.field, raw, err)
			return
		}
		d.report.Values[p.field] = value
	case p.within == nil: // has a separate reader
	case isNull(raw): // null empties everything below it [TEL-1]
		for _, below := range outline[p.index:p.end] {
			if below.field != 0 {
				d.report.Values[below.field] = nil
			}
		}
	default:
		d.drop(p.path, "not an object")
	}
}

// reject drops a value that its parser refused.
func (d *reportDecoder) reject(f telematics.Field, raw []byte, err error) {
	d.dropped = append(d.dropped, telematics.Dropped{Field: f.String(), Fault: telematics.FaultOf(err), Reason: err.Error()})
	if d.unsound == nil {
		d.unsound = map[telematics.Field]json.RawMessage{}
	}
	d.unsound[f] = raw
}

// foldGear maps every forward gear to D.
func (d *reportDecoder) foldGear() {
	if gear, err := telematics.ParseText(d.unsound[telematics.Gear]); err == nil && forward(gear) {
		d.restore(telematics.Gear, "D")
	}
}

// foldCharging keeps a charging state that the interface has no word for in RawCharging.
func (d *reportDecoder) foldCharging() {
	if _, ok := d.report.Values[telematics.Charging]; ok {
		d.report.Values[telematics.RawCharging] = nil
		return
	}
	if raw, err := telematics.ParseText(d.unsound[telematics.Charging]); err == nil && raw != "" {
		d.restore(telematics.Charging, nil)
		d.report.Values[telematics.RawCharging] = raw
	}
}

// foldDTCs keeps codes that do not have the standard's form in RawDTCs.
func (d *reportDecoder) foldDTCs() {
	if _, ok := d.report.Values[telematics.DTCs]; ok {
		d.report.Values[telematics.RawDTCs] = nil
		return
	}
	var codes []json.RawMessage
	if err := json.Unmarshal(d.unsound[telematics.DTCs], &codes); err != nil || len(codes) > telematics.MaxTexts {
		return // dropped before
	}
	standard, raw := []string{}, []string{}
	for _, c := range codes {
		code, err := telematics.ParseText(c)
		switch {
		case err != nil || code == "":
		case telematics.IsDTC(code):
			standard = append(standard, code)
		default:
			raw = append(raw, code)
		}
	}
	if len(standard)+len(raw) == 0 {
		return
	}
	d.restore(telematics.DTCs, standard)
	d.report.Values[telematics.RawDTCs] = raw
	if len(standard)+len(raw) < len(codes) {
		d.drop(telematics.DTCs.String(), "some codes are no text; the others were taken")
	}
}

// restore sets a field that was dropped before because of its vocabulary.
func (d *reportDecoder) restore(f telematics.Field, value any) {
	d.report.Values[f] = value
	kept := d.dropped[:0]
	for _, dropped := range d.dropped {
		if dropped.Field != f.String() {
			kept = append(kept, dropped)
		}
	}
	d.dropped = kept
}

// forward reports whether a word other than D means a forward gear.
func forward(gear string) bool {
	switch strings.ToUpper(gear) {
	case "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "S", "L", "M", "B", "DRIVE":
		return true
	}
	return false
}

// pairPosition drops a position with only one coordinate, or of a receiver without a fix, and
// completes or checks its time.
func (d *reportDecoder) pairPosition() {
	values := d.report.Values
	lat, hasLat := values[telematics.Latitude]
	lng, hasLng := values[telematics.Longitude]
	why := ""
	switch {
	case hasLat != hasLng, (lat == nil) != (lng == nil):
		why = "latitude and longitude only come together"
	case lat == 0.0 && lng == 0.0: // in the Gulf of Guinea: a receiver without a fix
		why = "latitude and longitude are 0: no position"
	}
	if why != "" {
		delete(values, telematics.Latitude)
		delete(values, telematics.Longitude)
		delete(values, telematics.LocatedAt)
		d.drop("location", why)
		return
	}
	if hasLat && lat == nil {
		// No position, so it has no time. A time without a position confirms the last one.
		values[telematics.LocatedAt] = nil
	}
	if at, ok := values[telematics.LocatedAt].(time.Time); ok && at.After(d.report.At.Add(telematics.MaxAhead)) {
		delete(values, telematics.LocatedAt)
		d.drop(telematics.LocatedAt.String(), "ahead of the report")
	}
	if _, ok := values[telematics.LocatedAt]; hasLat && lat != nil && !ok {
		values[telematics.LocatedAt] = d.report.At
	}
}

// EncodeReport returns the message that a unit publishes as its telemetry.
func EncodeReport(r telematics.Report) []byte {
	message := r.Nested()
	message["at"] = telematics.FormatTime(r.At)
	if len(r.Answers) > 0 {
		list := make([]wireAnswer, len(r.Answers))
		for i, a := range r.Answers {
			list[i] = wireAnswer{
				Command: a.Command.String(), Status: a.State, At: telematics.FormatTime(a.At), Reason: a.Reason,
				Detail: a.Detail,
			}
		}
		message["commands"] = list
	}
	return encode(message)
}
