package twins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// A section of a snapshot is an object of JSON in Redis:
//
//	at       vehicle time of the newest readings, in milliseconds
//	v        values by the field's name within the section
//	older    the times of the others, and those of null that had a value before
//	once     true for those of null that had a value before
//	undated  true for those whose times are of arrival
//
// Most readings of a section are of one report, so their time is stored once.
const (
	atMember      = "at"
	valuesMember  = "v"
	olderMember   = "older"
	onceMember    = "once"
	undatedMember = "undated"
)

// Sections are known by their places in telematics.Sections, and tokenOf has the names of their
// tokens in Redis. fieldsOf lists the fields of each section, in a fixed order. nameOf is the name
// of a field within its section, which is empty for a section that is itself a field; placesOf are
// the places of those names in fieldsOf.
var (
	tokenOf   = make([]string, len(telematics.Sections))
	fieldsOf  = make([][]telematics.Field, len(telematics.Sections))
	placesOf  = make([]map[string]int, len(telematics.Sections))
	sectionOf = map[telematics.Field]int{}
	nameOf    = map[telematics.Field]string{}
)

func init() {
	for place, section := range telematics.Sections {
		tokenOf[place], placesOf[place] = "at:"+section, map[string]int{}
	}
	for _, field := range telematics.Fields {
		section := slices.Index(telematics.Sections, field.Section())
		name := strings.TrimPrefix(strings.TrimPrefix(string(field), field.Section()), ".")
		sectionOf[field], nameOf[field] = section, name
		placesOf[section][name] = len(fieldsOf[section])
		fieldsOf[section] = append(fieldsOf[section], field)
	}
}

func encodeSection(section int, s telematics.Snapshot) ([]byte, error) {
	var newest time.Time
	for _, field := range fieldsOf[section] {
		if r, ok := s[field]; ok && r.At.After(newest) {
			newest = r.At
		}
	}
	w := vehicles.NewJSONWriter()
	w.Add(
		jsontext.BeginObject, jsontext.String(atMember), jsontext.Int(newest.UnixMilli()),
		jsontext.String(valuesMember), jsontext.BeginObject,
	)
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
	add(olderMember, older, func(f telematics.Field) jsontext.Token { return jsontext.Int(s[f].At.UnixMilli()) })
	isSet := func(telematics.Field) jsontext.Token { return jsontext.True }
	add(onceMember, once, isSet)
	add(undatedMember, undated, isSet)
	w.Add(jsontext.EndObject)
	text, err := w.Text()
	if err != nil {
		return nil, fmt.Errorf("encode section %q: %w", telematics.Sections[section], err)
	}
	return text, nil
}

// sectionReader reads the texts of sections. Readers are pooled, so that a section costs no more
// memory than its readings.
type sectionReader struct {
	text     bytes.Buffer
	tokens   *jsontext.Decoder
	readings [][]placedReading // by section, and by the field's place in it
	count    int               // of those that are there
}

type placedReading struct {
	telematics.Reading
	there bool
}

var sectionReaders = sync.Pool{New: func() any {
	r := &sectionReader{tokens: jsontext.NewDecoder(&bytes.Buffer{}), readings: make([][]placedReading, len(fieldsOf))}
	for section, fields := range fieldsOf {
		r.readings[section] = make([]placedReading, len(fields))
	}
	return r
}}

func newSectionReader() *sectionReader { return sectionReaders.Get().(*sectionReader) }

// close clears the reader and returns it to the pool.
func (r *sectionReader) close() {
	for _, readings := range r.readings {
		clear(readings)
	}
	r.count = 0
	sectionReaders.Put(r)
}

// snapshot returns what was read.
func (r *sectionReader) snapshot() telematics.Snapshot {
	s := make(telematics.Snapshot, r.count)
	for section, readings := range r.readings {
		for i := range readings {
			if readings[i].there {
				s[fieldsOf[section][i]] = readings[i].Reading
			}
		}
	}
	return s
}

// read reads a section, all of it or, with an error, nothing. It leaves out fields that this
// version of the program does not have.
func (r *sectionReader) read(section int, text string) error {
	readings := r.readings[section]
	r.text.Reset()
	r.text.WriteString(text)
	r.tokens.Reset(&r.text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	newest, err := r.members(section)
	if err != nil {
		clear(readings)
		return fmt.Errorf("decode section %s: %w", telematics.Sections[section], err)
	}
	for i := range readings {
		if readings[i].At.IsZero() {
			readings[i].At = newest
		}
		if readings[i].there {
			r.count++
		}
	}
	return nil
}

func (r *sectionReader) members(section int) (newest time.Time, err error) {
	err = r.object(func(member []byte) error {
		switch string(member) {
		case atMember:
			return r.time(&newest)
		case valuesMember:
			return r.fields(section, func(reading *placedReading, field telematics.Field) error {
				raw, err := r.tokens.ReadValue()
				if err != nil {
					return err
				}
				value, err := field.Parser()(json.RawMessage(raw)) // it is valid JSON
				reading.Value, reading.there = value, err == nil
				return nil
			})
		case olderMember:
			return r.fields(section, func(reading *placedReading, _ telematics.Field) error { return r.time(&reading.At) })
		case onceMember:
			return r.fields(section, func(reading *placedReading, _ telematics.Field) error { return r.flag(&reading.Once) })
		case undatedMember:
			return r.fields(section, func(reading *placedReading, _ telematics.Field) error { return r.flag(&reading.Undated) })
		}
		return r.tokens.SkipValue()
	})
	return newest, err
}

// object calls member with the name of each member of an object, to read its value.
func (r *sectionReader) object(member func(name []byte) error) error {
	if kind := r.tokens.PeekKind(); kind != '{' && kind != 0 {
		return fmt.Errorf("%v instead of an object", kind)
	}
	if _, err := r.tokens.ReadToken(); err != nil { // {
		return err
	}
	for r.tokens.PeekKind() != '}' {
		name, err := r.tokens.ReadValue()
		if err != nil {
			return err
		}
		if err := member(name[1 : len(name)-1]); err != nil { // no name has anything escaped
			return err
		}
	}
	_, err := r.tokens.ReadToken() // }
	return err
}

// fields calls read for each member that is named like a field of the section, with its reading.
func (r *sectionReader) fields(section int, read func(*placedReading, telematics.Field) error) error {
	return r.object(func(name []byte) error {
		if place, known := placesOf[section][string(name)]; known {
			return read(&r.readings[section][place], fieldsOf[section][place])
		}
		return r.tokens.SkipValue()
	})
}

func (r *sectionReader) time(at *time.Time) error {
	token, err := r.tokens.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '0' {
		return fmt.Errorf("%v instead of a time", token.Kind())
	}
	milliseconds, err := token.Int()
	if err != nil {
		return err
	}
	*at = time.UnixMilli(milliseconds).UTC()
	return nil
}

func (r *sectionReader) flag(is *bool) error {
	token, err := r.tokens.ReadToken()
	*is = token.Kind() == 't'
	return err
}
