package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"motorpool/telematics"
)

// sectionRow is the JSON of a section of a snapshot in Redis. Most of its readings are of
// one report, so their time stands once.
type sectionRow struct {
	AtMS   int64                      `json:"at"`    // vehicle time of the newest readings
	Values map[string]json.RawMessage `json:"v"`     // by the field's name within the section
	Older  map[string]int64           `json:"older"` // the times of the others
	Once   map[string]bool            `json:"once"`  // those of null that had a value before
}

// fieldsOf lists the fields of each section, in a fixed order, and keyOf the beginning of each in
// a row: its name within the section, which is empty for a section that is itself a field.
var (
	fieldsOf = map[string][]telematics.Field{}
	keyOf    = map[telematics.Field]string{}
)

func init() {
	for _, field := range telematics.Fields {
		section := field.Section()
		fieldsOf[section] = append(fieldsOf[section], field)
		keyOf[field] = strconv.Quote(strings.TrimPrefix(strings.TrimPrefix(string(field), section), ".")) + ":"
	}
}

// encodeSection writes the readings of one section. It runs for each report, so it builds the JSON itself.
func encodeSection(section string, s telematics.Snapshot) ([]byte, error) {
	var newest time.Time
	for _, field := range fieldsOf[section] {
		if r, ok := s[field]; ok && r.At.After(newest) {
			newest = r.At
		}
	}
	row := make([]byte, 0, 32+24*len(fieldsOf[section])) // about as long as most are
	row = append(row, `{"at":`...)
	row = strconv.AppendInt(row, newest.UnixMilli(), 10)
	row = append(row, `,"v":{`...)
	first, older, once := true, []byte(nil), []byte(nil)
	for _, field := range fieldsOf[section] {
		reading, ok := s[field]
		if !ok {
			continue
		}
		if !first {
			row = append(row, ',')
		}
		first = false
		row = append(row, keyOf[field]...)
		var err error
		if row, err = telematics.AppendValue(row, reading.Value); err != nil {
			return nil, fmt.Errorf("encode %s: %w", field, err)
		}
		if !reading.At.Equal(newest) {
			if older != nil {
				older = append(older, ',')
			}
			older = append(older, keyOf[field]...)
			older = strconv.AppendInt(older, reading.At.UnixMilli(), 10)
		}
		if reading.Once {
			if once != nil {
				once = append(once, ',')
			}
			once = append(append(once, keyOf[field]...), "true"...)
		}
	}
	row = append(row, '}')
	if older != nil {
		row = append(append(append(row, `,"older":{`...), older...), '}')
	}
	if once != nil {
		row = append(append(append(row, `,"once":{`...), once...), '}')
	}
	return append(row, '}'), nil
}

// decodeSection leaves out what this version of the program does not know.
func decodeSection(section string, text string) (telematics.Snapshot, error) {
	var row sectionRow
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return nil, fmt.Errorf("decode section %s: %w", section, err)
	}
	s := make(telematics.Snapshot, len(row.Values))
	for name, raw := range row.Values {
		field := telematics.Field(section)
		if name != "" {
			field = telematics.Field(section + "." + name)
		}
		at, ok := row.Older[name]
		if !ok {
			at = row.AtMS
		}
		if v, err := telematics.ParseValue(field, raw); err == nil {
			s[field] = telematics.Reading{Value: v, At: time.UnixMilli(at).UTC(), Once: row.Once[name]}
		}
	}
	return s, nil
}

// sectionsIn lists the sections of which a snapshot has readings, in the order of telematics.Sections.
func sectionsIn(s telematics.Snapshot) []string {
	sections := make([]string, 0, len(telematics.Sections))
	for _, section := range telematics.Sections {
		if slices.ContainsFunc(fieldsOf[section], func(f telematics.Field) bool { _, ok := s[f]; return ok }) {
			sections = append(sections, section)
		}
	}
	return sections
}
