package telematics

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Dropped is a part of a message that was not taken, and why [TEL-4].
type Dropped struct {
	Field  string
	Fault  Fault // empty: of another kind, such as half a position
	Reason string
}

// maxAnswers is how many command results of a report are read [TEL-3].
const maxAnswers = 8

// DecodeReport reads a report that arrived at the instant received. Fields that
// are unsound are left out and listed; fields that this version does not know are
// ignored. An error means that nothing of it can be used.
func DecodeReport(message []byte, received time.Time) (Report, []Dropped, error) {
	if len(message) > MaxMessage {
		return Report{}, nil, errTooLarge
	}
	return RereadReport(message, received)
}

// RereadReport reads a report that was taken before. It has no limit of its own: who kept
// the report may write its numbers and spaces longer than its unit did.
func RereadReport(message []byte, received time.Time) (Report, []Dropped, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(message, &parts); err != nil {
		return Report{}, nil, fmt.Errorf("decode report: %w", err)
	}
	if parts == nil {
		return Report{}, nil, fmt.Errorf("decode report: null is not a report")
	}
	d := reportDecoder{report: Report{Values: map[Field]any{}}, unsound: map[Field]json.RawMessage{}}
	d.time(parts["at"], received)
	for _, section := range Sections {
		if raw, ok := parts[section]; ok {
			d.place(section, raw)
		}
	}
	d.foldGear()
	d.foldCharging()
	d.foldDTCs()
	d.pairPosition()
	if raw, ok := parts["commands"]; ok && !isNull(raw) {
		d.answers(raw, received)
	}
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

func (d *reportDecoder) time(raw json.RawMessage, received time.Time) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || parseTime(s).IsZero() {
		d.dropTime("not an ISO 8601 time; the receiver's is taken")
	} else if !plausible(parseTime(s), received) {
		d.dropTime("more than 5 minutes ahead, or before 2020; the receiver's is taken")
	}
	d.report.At = vehicleTime(parseTime(s), received)
}

// place takes the value at a path: a field's, or an object's that holds more.
func (d *reportDecoder) place(path string, raw json.RawMessage) {
	if _, ok := fields[Field(path)]; ok {
		value, err := ParseValue(Field(path), raw)
		if err != nil {
			d.dropped = append(d.dropped, Dropped{Field: path, Fault: faultOf(err), Reason: err.Error()})
			d.unsound[Field(path)] = raw
			return
		}
		d.report.Values[Field(path)] = value
		return
	}
	within := fieldsWithin[path]
	if within == nil {
		return // not known to this version
	}
	if isNull(raw) { // null empties everything below it [TEL-1]
		for _, field := range within {
			d.report.Values[field] = nil
		}
		return
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		d.drop(path, "not an object")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		d.place(path+"."+name, parts[name])
	}
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

func (d *reportDecoder) answers(raw json.RawMessage, received time.Time) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		d.drop("commands", "not a list of answers")
		return
	}
	if len(list) > maxAnswers {
		d.drop("commands", fmt.Sprintf("more than %d answers; the last ones were read", maxAnswers))
		list = list[len(list)-maxAnswers:]
	}
	for _, raw := range list {
		answer, err := decodeRepeated(raw, received)
		if err != nil {
			d.drop("commands", err.Error())
			continue
		}
		d.report.Answers = append(d.report.Answers, answer)
	}
}

// decodeRepeated reads a final answer that a report repeats.
func decodeRepeated(raw json.RawMessage, received time.Time) (Answer, error) {
	var w wireAnswer
	if err := json.Unmarshal(raw, &w); err != nil {
		return Answer{}, fmt.Errorf("decode answer: %w", err)
	}
	w.Report = nil // the report around it says what is true now
	answer, _, err := w.answer(received)
	if err == nil && answer.State == Received {
		err = errors.New("decode answer: not a final one")
	}
	return answer, err
}

// fieldsWithin lists for every object of a report the fields below it.
var fieldsWithin = func() map[string][]Field {
	within := map[string][]Field{}
	for field := range fields {
		for path := string(field); ; {
			cut := strings.LastIndex(path, ".")
			if cut < 0 {
				break
			}
			path = path[:cut]
			within[path] = append(within[path], field)
		}
	}
	return within
}()

// EncodeReport returns the message that a unit publishes as its telemetry.
func EncodeReport(r Report) []byte {
	message := r.Nested()
	message["at"] = formatTime(r.At)
	if len(r.Answers) > 0 {
		list := make([]wireAnswer, len(r.Answers))
		for i, a := range r.Answers {
			list[i] = wireAnswer{Command: a.Command.String(), Status: a.State, At: formatTime(a.At), Reason: a.Reason, Detail: a.Detail}
		}
		message["commands"] = list
	}
	return encode(message)
}

// Nested returns the reported values as the nested objects that the wire and the
// interface share, ready for JSON.
func (r Report) Nested() map[string]any {
	root := map[string]any{}
	for field, value := range r.Values {
		if field.isRaw() {
			continue
		}
		if at, ok := value.(time.Time); ok {
			value = formatTime(at)
		}
		node := root
		path := strings.Split(string(field), ".")
		for _, name := range path[:len(path)-1] {
			child, ok := node[name].(map[string]any)
			if !ok {
				child = map[string]any{}
				node[name] = child
			}
			node = child
		}
		node[path[len(path)-1]] = value
	}
	return root
}
