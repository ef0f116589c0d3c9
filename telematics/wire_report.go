package telematics

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Dropped is a part of a message that was not taken, and why [TEL-4].
type Dropped struct {
	Field  string
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
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(message, &parts); err != nil {
		return Report{}, nil, fmt.Errorf("decode report: %w", err)
	}
	if parts == nil {
		return Report{}, nil, fmt.Errorf("decode report: null is not a report")
	}
	d := reportDecoder{report: Report{Values: map[Field]any{}}}
	d.time(parts["at"], received)
	for _, section := range Sections {
		if raw, ok := parts[section]; ok {
			d.place(section, raw)
		}
	}
	d.fold(parts)
	d.pairPosition()
	if raw, ok := parts["commands"]; ok && !isNull(raw) {
		d.answers(raw, received)
	}
	return d.report, d.dropped, nil
}

type reportDecoder struct {
	report  Report
	dropped []Dropped
}

func (d *reportDecoder) drop(field, reason string) {
	d.dropped = append(d.dropped, Dropped{Field: field, Reason: reason})
}

func (d *reportDecoder) time(raw json.RawMessage, received time.Time) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || parseTime(s).IsZero() {
		d.drop("at", "not an ISO 8601 time; the receiver's is taken")
	}
	d.report.At = plausible(parseTime(s), received)
}

// place takes the value at a path: a field's, or an object's that holds more.
func (d *reportDecoder) place(path string, raw json.RawMessage) {
	if _, ok := fields[Field(path)]; ok {
		value, err := ParseValue(Field(path), raw)
		if err != nil {
			d.drop(path, err.Error())
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
	for name, raw := range parts {
		d.place(path+"."+name, raw)
	}
}

// fold keeps in the raw what is sound but not in the interface's vocabulary, and
// folds the forward gears into D.
func (d *reportDecoder) fold(parts map[string]json.RawMessage) {
	var section struct {
		Gear     string   `json:"gear"`
		Charging string   `json:"charging_status"`
		DTCs     []string `json:"dtcs"`
	}
	for _, name := range []string{"telemetry", "diagnostics"} {
		// A mistyped field was dropped before: here it only stays empty.
		_ = json.Unmarshal(parts[name], &section)
	}
	if forward(section.Gear) {
		d.take(Gear, "D")
	}
	if _, ok := d.report.Values[Charging]; ok {
		d.report.Values[RawCharging] = nil
	} else if raw, err := text(encode(section.Charging)); err == nil && section.Charging != "" {
		d.take(Charging, nil)
		d.report.Values[RawCharging] = raw
	}
	d.foldDTCs(section.DTCs)
}

func (d *reportDecoder) foldDTCs(codes []string) {
	if _, ok := d.report.Values[DTCs]; ok {
		d.report.Values[RawDTCs] = nil
		return
	}
	standard, raw := []string{}, []string{}
	for _, code := range codes {
		if dtcPattern.MatchString(code) {
			standard = append(standard, code)
		} else if anyText.MatchString(code) {
			raw = append(raw, code)
		}
	}
	if len(standard)+len(raw) == 0 || len(codes) > maxTexts {
		return
	}
	d.take(DTCs, standard)
	d.report.Values[RawDTCs] = raw
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
	if _, ok := values[LocatedAt]; hasLat && lat != nil && !ok {
		values[LocatedAt] = d.report.At
	}
}

func (d *reportDecoder) answers(raw json.RawMessage, received time.Time) {
	var list []wireAnswer
	if err := json.Unmarshal(raw, &list); err != nil {
		d.drop("commands", "not a list of answers")
		return
	}
	if len(list) > maxAnswers {
		d.drop("commands", fmt.Sprintf("more than %d answers; the rest was not read", maxAnswers))
		list = list[:maxAnswers]
	}
	for _, w := range list {
		w.Report = nil
		answer, _, err := w.answer(received)
		if err != nil || answer.State == Received {
			d.drop("commands", "not a final answer")
			continue
		}
		d.report.Answers = append(d.report.Answers, answer)
	}
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
		if field.Section() == string(OEMData) && field != OEMData {
			continue // kept by the receiver, not said by the vehicle
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
