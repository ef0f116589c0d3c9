package twins

import (
	"bytes"
	"encoding/json"
	"fmt"
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
// tokens in Redis. fieldsOf lists the fields of each section; named finds them by name. nameOf is
// the name of a field within its section, which is empty for a section that is itself a field.
var (
	tokenOf  = make([]string, len(telematics.Sections))
	fieldsOf = make([][]telematics.Field, len(telematics.Sections))
	named    = make([]map[string]telematics.Field, len(telematics.Sections))
	nameOf   = make([]string, len(telematics.NewSnapshot()))
)

func init() {
	for place, section := range telematics.Sections {
		tokenOf[place], named[place] = "at:"+section, map[string]telematics.Field{}
	}
	for _, field := range telematics.Fields {
		section := field.SectionPlace()
		name := strings.TrimPrefix(strings.TrimPrefix(field.String(), field.Section()), ".")
		nameOf[field], named[section][name] = name, field
		fieldsOf[section] = append(fieldsOf[section], field)
	}
}

func encodeSection(section int, s telematics.Snapshot) ([]byte, error) {
	var newest time.Time
	for _, field := range fieldsOf[section] {
		if at := s.Of(field).At; at.After(newest) {
			newest = at
		}
	}
	w := vehicles.NewJSONWriter()
	w.Add(
		jsontext.BeginObject, jsontext.String(atMember), jsontext.Int(newest.UnixMilli()),
		jsontext.String(valuesMember), jsontext.BeginObject,
	)
	var older, once, undated []telematics.Field
	for _, field := range fieldsOf[section] {
		reading := s.Of(field)
		if !s.Has(field) {
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

// sectionReader reads the texts of sections into a snapshot. Readers are pooled, so that a section
// costs no more memory than its readings.
type sectionReader struct {
	text     bytes.Buffer
	tokens   *jsontext.Decoder
	snapshot telematics.Snapshot
	valid    []bool // fields with a valid value, or null
}

var sectionReaders = sync.Pool{New: func() any {
	return &sectionReader{tokens: jsontext.NewDecoder(&bytes.Buffer{}), valid: make([]bool, len(nameOf))}
}}

func newSectionReader() *sectionReader {
	r := sectionReaders.Get().(*sectionReader)
	r.snapshot = telematics.NewSnapshot()
	return r
}

// close returns the reader to the pool, without its snapshot.
func (r *sectionReader) close() {
	r.snapshot = nil
	clear(r.valid)
	sectionReaders.Put(r)
}

// read reads a section, all of it or, with an error, nothing. It leaves out fields that this
// version of the program does not have.
func (r *sectionReader) read(section int, text string) error {
	r.text.Reset()
	r.text.WriteString(text)
	r.tokens.Reset(&r.text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	newest, err := r.members(section)
	for _, field := range fieldsOf[section] {
		switch reading := &r.snapshot[field]; {
		case err != nil || !r.valid[field]:
			*reading = telematics.Reading{}
		case reading.At.IsZero():
			reading.At = newest
		}
	}
	if err != nil {
		return fmt.Errorf("decode section %s: %w", telematics.Sections[section], err)
	}
	return nil
}

func (r *sectionReader) members(section int) (newest time.Time, err error) {
	err = r.object(func(member []byte) error {
		switch string(member) {
		case atMember:
			return r.time(&newest)
		case valuesMember:
			return r.fields(section, func(field telematics.Field) error {
				raw, err := r.tokens.ReadValue()
				if err != nil {
					return err
				}
				value, err := field.Parse(json.RawMessage(raw)) // it is valid JSON
				r.snapshot[field].Value, r.valid[field] = value, err == nil
				return nil
			})
		case olderMember:
			return r.fields(section, func(field telematics.Field) error { return r.time(&r.snapshot[field].At) })
		case onceMember:
			return r.fields(section, func(field telematics.Field) error { return r.flag(&r.snapshot[field].Once) })
		case undatedMember:
			return r.fields(section, func(field telematics.Field) error { return r.flag(&r.snapshot[field].Undated) })
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

// fields calls read for each member that is named like a field of the section.
func (r *sectionReader) fields(section int, read func(telematics.Field) error) error {
	return r.object(func(name []byte) error {
		if field, known := named[section][string(name)]; known {
			return read(field)
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
