package v1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// scan is one pass through the text of a report: it proves that the text is JSON, and notes
// what is said at each place of the outline. Scans are pooled, so that a report costs what is
// kept of it.
type scan struct {
	text   bytes.Buffer
	tokens *jsontext.Decoder
	said   []json.RawMessage // by place; nil: nothing
	count  int               // of what was said
}

var scans = sync.Pool{New: func() any {
	return &scan{tokens: jsontext.NewDecoder(eof), said: make([]json.RawMessage, len(outline))}
}}

// newScan reads the whole text. The scan is of use until it is closed, and as long as the
// text is not changed.
func newScan(text []byte) (*scan, error) {
	s := scans.Get().(*scan)
	s.begin(text)
	if err := s.whole(text); err != nil {
		s.close()
		return nil, fmt.Errorf("decode report: %w", err)
	}
	return s, nil
}

func (s *scan) begin(text []byte) {
	s.text = *bytes.NewBuffer(text)
	// The last one of two members with one name counts, and what is not UTF-8 is no reason to lose the rest.
	s.tokens.Reset(&s.text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

var eof = bytes.NewReader(nil)

// close gives the scan back, without what it has seen.
func (s *scan) close() {
	clear(s.said)
	s.count = 0
	s.tokens.Reset(eof)
	s.text = bytes.Buffer{}
	scans.Put(s)
}

func (s *scan) whole(text []byte) error {
	if kind := s.tokens.PeekKind(); kind != '{' && kind != 0 {
		if err := s.tokens.SkipValue(); err != nil {
			return err
		}
		return fmt.Errorf("%v is not a report", kind)
	}
	if err := s.object(text, outline[0]); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("there is nothing")
		}
		return err
	}
	switch more, err := s.more(); {
	case more:
		return errors.New("more than one report")
	default:
		return err
	}
}

// more reports whether there is more than white space left.
func (s *scan) more() (bool, error) {
	_, err := s.tokens.ReadToken()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// object notes what is said within an object.
func (s *scan) object(text []byte, p *place) error {
	if _, err := s.tokens.ReadToken(); err != nil { // {
		return err
	}
	for s.tokens.PeekKind() != '}' {
		name, err := s.tokens.ReadValue()
		if err != nil {
			return err
		}
		next := p.member(name)
		if next == nil { // not known to this version
			if err := s.tokens.SkipValue(); err != nil {
				return err
			}
			continue
		}
		clear(s.said[next.index:next.end]) // said before, with the same name
		if next.within != nil && s.tokens.PeekKind() == '{' {
			if err := s.object(text, next); err != nil {
				return err
			}
			continue
		}
		if s.said[next.index], err = s.value(text); err != nil {
			return err
		}
		s.count++
	}
	_, err := s.tokens.ReadToken() // }
	return err
}

// member returns the place of a name within an object; nil: none.
func (p *place) member(name []byte) *place {
	plain := name[1 : len(name)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		var err error
		if plain, err = jsontext.AppendUnquote(nil, name); err != nil {
			return nil
		}
	}
	return p.within[string(plain)]
}

// value reads the next value, as a part of the text: what the decoder returns is its own.
func (s *scan) value(text []byte) (json.RawMessage, error) {
	value, err := s.tokens.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(s.tokens.InputOffset())
	return text[end-len(value) : end], nil
}

// within returns what a list or an object holds: elements, or names and values by turns, appended to values. There is no error for a
// value that was read before.
func (s *scan) within(values []json.RawMessage, text []byte) ([]json.RawMessage, error) {
	s.begin(text)
	if _, err := s.tokens.ReadToken(); err != nil { // [ or {
		return values, err
	}
	for kind := s.tokens.PeekKind(); kind != ']' && kind != '}'; kind = s.tokens.PeekKind() {
		value, err := s.value(text)
		if err != nil {
			return values, err
		}
		values = append(values, value)
	}
	_, err := s.tokens.ReadToken() // ] or }
	return values, err
}
