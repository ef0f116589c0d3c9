package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"motorpool/telematics"
)

// sectionRow is the JSON of a section of a snapshot in Redis. Most of its readings are of
// one report, so their time stands once. Values are decoded when their field is known.
type sectionRow[V any] struct {
	AtMS   int64            `json:"at"`              // vehicle time of the newest readings
	Values map[string]V     `json:"v"`               // by the field's name within the section
	Older  map[string]int64 `json:"older,omitempty"` // the times of the others
	Once   map[string]bool  `json:"once,omitempty"`  // those of null that had a value before
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
	row := sectionRow[any]{AtMS: newest.UnixMilli(), Values: make(map[string]any, len(fieldsOf[section])), Older: map[string]int64{}, Once: map[string]bool{}}
	for _, field := range fieldsOf[section] {
		reading, ok := s[field]
		if !ok {
			continue
		}
		name := nameOf[field]
		row.Values[name] = reading.Value
		if !reading.At.Equal(newest) {
			row.Older[name] = reading.At.UnixMilli()
		}
		if reading.Once {
			row.Once[name] = true
		}
	}
	text, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("encode section %q: %w", section, err)
	}
	return text, nil
}

// decodeSection leaves out what this version of the program does not know.
func decodeSection(section string, text string) (telematics.Snapshot, error) {
	var row sectionRow[json.RawMessage]
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
