package twins

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// sectionRow is the JSON of a section of a snapshot in Redis. Most of its readings are of
// one report, so their time stands once. Values are decoded by their field.
type sectionRow struct {
	AtMS   int64                      `json:"at"` // vehicle time of the newest readings
	Values map[string]json.RawMessage `json:"v"`  // by the field's name within the section
	// The times of the others, and those of null that had a value before.
	Older map[string]int64 `json:"older,omitempty"`
	Once  map[string]bool  `json:"once,omitempty"`
	// Those whose times are of arrival.
	Undated map[string]bool `json:"undated,omitempty"`
}

// fieldsOf lists the fields of each section, in a fixed order, and nameOf the name of each
// within its section, which is empty for a section that is itself a field.
var (
	fieldsOf = map[string][]telematics.Field{}
	nameOf   = map[telematics.Field]string{}
)

func init() {
	for _, field := range telematics.Fields {
		section := field.Section()
		fieldsOf[section] = append(fieldsOf[section], field)
		nameOf[field] = strings.TrimPrefix(strings.TrimPrefix(string(field), section), ".")
	}
}

func encodeSection(section string, s telematics.Snapshot) ([]byte, error) {
	var newest time.Time
	for _, field := range fieldsOf[section] {
		if r, ok := s[field]; ok && r.At.After(newest) {
			newest = r.At
		}
	}
	w := vehicles.NewJSONWriter(32 * len(fieldsOf[section]))
	w.Add(jsontext.BeginObject, jsontext.String("at"), jsontext.Int(newest.UnixMilli()), jsontext.String("v"), jsontext.BeginObject)
	var older, once, undated []telematics.Field
	for _, field := range fieldsOf[section] {
		reading, ok := s[field]
		if !ok {
			continue
		}
		w.Add(jsontext.String(nameOf[field]))
		w.AddValue(reading.Value)
		if !reading.At.Equal(newest) {
			older = append(older, field)
		}
		if reading.Once {
			once = append(once, field)
		}
		if reading.Undated {
			undated = append(undated, field)
		}
	}
	w.Add(jsontext.EndObject)
	add := func(name string, fields []telematics.Field, value func(telematics.Field) jsontext.Token) {
		if len(fields) == 0 {
			return
		}
		w.Add(jsontext.String(name), jsontext.BeginObject)
		for _, field := range fields {
			w.Add(jsontext.String(nameOf[field]), value(field))
		}
		w.Add(jsontext.EndObject)
	}
	add("older", older, func(f telematics.Field) jsontext.Token { return jsontext.Int(s[f].At.UnixMilli()) })
	isSet := func(telematics.Field) jsontext.Token { return jsontext.True }
	add("once", once, isSet)
	add("undated", undated, isSet)
	w.Add(jsontext.EndObject)
	text, err := w.Text()
	if err != nil {
		return nil, fmt.Errorf("encode section %q: %w", section, err)
	}
	return text, nil
}

// decodeSection adds a section to a snapshot. It leaves out fields that this version of the program
// does not have.
func decodeSection(s telematics.Snapshot, section string, text string) error {
	var row sectionRow
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return fmt.Errorf("decode section %s: %w", section, err)
	}
	for name, raw := range row.Values {
		field := telematics.Field(section)
		if name != "" {
			field = telematics.Field(section + "." + name)
		}
		at, ok := row.Older[name]
		if !ok {
			at = row.AtMS
		}
		if _, known := nameOf[field]; !known {
			continue
		}
		if v, err := field.Parser()(raw); err == nil { // it is valid JSON
			s[field] = telematics.Reading{Value: v, At: time.UnixMilli(at).UTC(), Once: row.Once[name], Undated: row.Undated[name]}
		}
	}
	return nil
}
